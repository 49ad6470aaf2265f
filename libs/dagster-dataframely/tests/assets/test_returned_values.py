"""What a function returns decides, whatever it is annotated with."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, cast

import dagster as dg
import polars as pl
import pytest
from support.described_orders import FRAME, Orders, as_frame
from support.execution import Execute

import dagster_dataframely as dd

RETURNED: list[Callable[[], object]] = [
    lambda: FRAME,
    FRAME.lazy,
    lambda: dg.MaterializeResult(value=FRAME),
    lambda: dg.MaterializeResult(value=FRAME.lazy()),
    lambda: None,
]


def unannotated(returned: object):  # type: ignore[no-untyped-def]  # noqa: ANN201
    def orders():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return returned

    return orders


def as_lazy_frame(returned: Any) -> Callable[[], pl.LazyFrame]:
    def orders() -> pl.LazyFrame:
        return returned  # type: ignore[no-any-return]

    return orders


def as_result(returned: Any) -> Callable[[], object]:
    def orders() -> dg.MaterializeResult[pl.LazyFrame]:
        return returned  # type: ignore[no-any-return]

    return orders


def as_number(returned: Any) -> Callable[[], object]:
    def orders() -> int:
        return returned  # type: ignore[no-any-return]

    return orders


def as_optional_union(returned: Any) -> Callable[[], object]:
    def orders() -> "pl.DataFrame | pl.LazyFrame | None":
        return returned  # type: ignore[no-any-return]

    return orders


def as_coroutine(returned: Any) -> Callable[[], object]:
    async def orders() -> pl.DataFrame:
        await asyncio.sleep(0)
        return returned  # type: ignore[no-any-return]

    return orders


@pytest.mark.parametrize(
    "annotated",
    [unannotated, as_frame, as_lazy_frame, as_result, as_number, as_optional_union, as_coroutine],
)
@pytest.mark.parametrize("build", RETURNED, ids=["eager", "lazy", "result", "lazy result", "none"])
def test_what_is_returned_decides_and_not_the_annotation(
    call: Execute, build: Callable[[], object], annotated: Callable[[object], Any]
) -> None:
    outcome = call(dd.asset(Orders)(annotated(build())))
    assert outcome.success
    outcome.assert_stored(table=None if build() is None else FRAME, quarantine=None)


@pytest.mark.parametrize(
    ("build", "annotated"),
    [*zip(RETURNED, [as_number, as_frame, as_lazy_frame, unannotated, as_frame], strict=True)]
    + [(build, as_coroutine) for build in RETURNED[::2]],
)
def test_what_is_returned_decides_in_a_run_too(
    run: Execute, build: Callable[[], object], annotated: Callable[[object], Any]
) -> None:
    outcome = run(dd.asset(Orders, quarantine=True)(annotated(build())))
    assert outcome.success
    outcome.assert_stored(table=None if build() is None else FRAME, quarantine=None)


def test_an_asynchronous_function_sets_error_rows_aside(execute: Execute) -> None:
    frame = pl.DataFrame({"id": [1, 2], "amount": [2, -2]})
    outcome = execute(dd.asset(Orders, quarantine=True)(as_coroutine(frame.lazy())))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.quarantine is not None
    assert outcome.quarantine["id"].to_list() == [2]


def pandas_like() -> object:
    """An object that says it is a pandas frame."""
    return type("DataFrame", (), {"__module__": "pandas.core.frame"})()


def generated() -> Iterator[pl.DataFrame]:
    yield FRAME


REFUSED_VALUES = [
    pytest.param(lambda: [FRAME], "`list`", "", id="list"),
    pytest.param(lambda: FRAME["id"], "`polars.Series`", "", id="series"),
    pytest.param(pandas_like, "`pandas.DataFrame`", "pl.from_pandas(frame)", id="pandas"),
    pytest.param(lambda: dg.Output(FRAME), "`dagster.Output`", "Return its value.", id="output"),
    pytest.param(generated, "`generator`", "do not yield it", id="generator"),
    pytest.param(
        lambda: dg.MaterializeResult(value=None),
        "`NoneType`",
        "return `None` itself",
        id="value none",
    ),
    pytest.param(dg.MaterializeResult, "`value`", "", id="without value"),
    pytest.param(lambda: dg.MaterializeResult(value=[1]), "`list`", "", id="value list"),
    pytest.param(
        lambda: dg.MaterializeResult(value=FRAME, asset_key="orders"),
        "`asset_key`",
        "",
        id="asset key",
    ),
    pytest.param(
        lambda: dg.MaterializeResult(
            value=FRAME, check_results=[dg.AssetCheckResult(passed=True, check_name="a")]
        ),
        "`check_results`",
        "",
        id="check results",
    ),
]


@pytest.mark.parametrize(("build", "found", "fix"), REFUSED_VALUES)
def test_anything_else_is_refused_with_what_was_found_and_what_to_write(
    execute: Execute, build: Callable[[], object], found: str, fix: str
) -> None:
    outcome = execute(dd.asset(Orders, quarantine=True)(as_number(build())))
    assert (outcome.success, outcome.error) == (False, "ReturnValueError")
    assert found in outcome.message
    assert fix in outcome.message
    assert "`None` to skip" in outcome.message
    assert outcome.checks == {}
    outcome.assert_stored(table=None, quarantine=None)


@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()], ids=["eager", "lazy"])
def test_metadata_tags_and_data_version_of_a_result_land_on_the_materialization(
    run: Execute, instance: dg.DagsterInstance, frame: pl.DataFrame | pl.LazyFrame
) -> None:
    @dd.asset(Orders)
    def orders() -> object:
        return dg.MaterializeResult(
            value=frame,
            metadata={"mine": 7, "dagster/row_count": 99, "dataframely/rows_in": 99},
            tags={"mine": "yes"},
            data_version=dg.DataVersion("v7"),
        )

    outcome = run(orders)
    assert outcome.metadata is not None
    keys = ("mine", "dagster/row_count", "dataframely/rows_in")
    assert [outcome.metadata[key] for key in keys] == [7, 2, 2]
    event = instance.get_latest_materialization_event(orders.key)
    assert event is not None
    assert event.asset_materialization is not None
    tags = event.asset_materialization.tags or {}
    assert (tags["mine"], tags["dagster/data_version"]) == ("yes", "v7")


def test_a_direct_invocation_passes_metadata_tags_and_data_version_on() -> None:
    result = dg.MaterializeResult(
        value=FRAME, metadata={"mine": 7}, tags={"a": "b"}, data_version=dg.DataVersion("v7")
    )
    events = cast("Iterator[Any]", dd.asset(Orders)(as_result(result))())
    materialization = next(events)
    assert materialization.metadata["mine"] == 7
    assert (materialization.tags, materialization.data_version) == (
        result.tags,
        result.data_version,
    )
