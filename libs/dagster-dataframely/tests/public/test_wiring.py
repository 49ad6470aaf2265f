"""The parts of the decorator, put together by hand, in a run."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import polars as pl
import pytest
from dagster import AssetCheckExecutionContext, AssetExecutionContext
from support.execution import Execute
from support.storage import FileIOManager
from support.wired_orders import (
    CLEAN,
    DRIFTED,
    ERROR_ROWS,
    FAILING,
    NONE_LEFT,
    SOME,
    Checks,
    Orders,
    all_checks,
)

import dagster_dataframely as dd
from dagster_dataframely import wiring

SET_ASIDE = all_checks("WARN", dy_rule__amount__min="WARN", dy_rule__note__max_length="WARN")


def declare_by_hand(frame: object, *, quarantine: bool = True) -> dg.AssetsDefinition:
    @dg.asset(
        key_prefix="shop",
        metadata=wiring.schema_metadata(Orders),
        check_specs=wiring.check_specs(Orders, asset=["shop", "orders"]),
        output_required=False,
    )
    def orders(context: AssetExecutionContext) -> Iterator[Any]:
        writer = wiring.delegating_writer(context) if quarantine else None
        yield from wiring.process(Orders, frame, asset=["shop", "orders"], quarantine_writer=writer)

    return orders


EXITS = [
    pytest.param(CLEAN, True, None, all_checks(), CLEAN, None, id="clean"),
    pytest.param(SOME, True, None, SET_ASIDE, SOME[::2], ERROR_ROWS, id="set aside"),
    pytest.param(
        SOME, False, "ValidationAbortError", all_checks(**FAILING), None, None, id="abort"
    ),
    pytest.param(
        NONE_LEFT,
        True,
        "NothingSurvivedError",
        all_checks(dy_rule__amount__min="ERROR"),
        None,
        ERROR_ROWS,
        id="nothing survives",
    ),
    pytest.param(
        DRIFTED,
        True,
        "ColumnSchemaError",
        {"dy_schema__columns": (False, "ERROR")},
        None,
        None,
        id="other columns",
    ),
    pytest.param(None, True, None, all_checks(), None, None, id="skip"),
]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("frame", "quarantine", "error", "checks", "table", "error_rows"), EXITS)
def test_an_asset_that_yields_from_process_has_the_six_exits(
    run: Execute,
    frame: pl.DataFrame | None,
    error: str | None,
    checks: Checks,
    table: pl.DataFrame | None,
    error_rows: pl.DataFrame | None,
    *,
    lazy: bool,
    quarantine: bool,
) -> None:
    given = frame.lazy() if lazy and frame is not None else frame
    outcome = run(declare_by_hand(given, quarantine=quarantine))
    assert (outcome.success, outcome.error) == (error is None, error)
    assert outcome.checks == checks
    outcome.assert_stored(table=table, quarantine=error_rows)


def test_an_asset_by_hand_has_the_columns_tab_and_checks_of_the_decorators() -> None:
    @dd.asset(Orders, key_prefix="shop", quarantine=True)
    def orders() -> None: ...

    by_hand = declare_by_hand(CLEAN)
    assert by_hand.metadata_by_key == orders.metadata_by_key
    assert list(by_hand.check_specs) == list(orders.check_specs)


def test_an_asset_by_hand_fails_on_a_collision_before_anything_is_written(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    @dg.asset(key=["shop", "orders_quarantine"])
    def other() -> pl.DataFrame:
        return CLEAN

    orders = declare_by_hand(SOME)
    with pytest.raises(dd.errors.QuarantineKeyCollisionError):
        dg.materialize(
            [orders, other],
            selection=[orders],
            instance=instance,
            resources={"io_manager": files},
        )
    assert files.files == []


def checks_with_evaluate(key: str) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(specs=wiring.check_specs(Orders, asset=key))
    def checks(context: AssetCheckExecutionContext, stored: pl.DataFrame) -> Iterator[Any]:
        yield from wiring.evaluate(Orders, stored, asset=key)

    return checks


def checks_with_process(key: str) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(specs=wiring.check_specs(Orders, asset=key))
    def checks(stored: pl.DataFrame) -> Iterator[Any]:
        events = wiring.process(
            Orders, stored, asset=key, quarantine_writer=lambda frame: "nowhere"
        )
        try:
            for event in events:
                if isinstance(event, dg.AssetCheckResult):
                    yield event
        except (dd.errors.ValidationAbortError, dd.errors.NothingSurvivedError):
            return

    return checks


@pytest.mark.parametrize(
    ("build", "frame", "expected"),
    [
        (checks_with_evaluate, CLEAN, all_checks()),
        (checks_with_evaluate, SOME, all_checks(**FAILING)),
        (checks_with_evaluate, NONE_LEFT, all_checks(dy_rule__amount__min="ERROR")),
        (checks_with_process, CLEAN, all_checks()),
        (checks_with_process, SOME, SET_ASIDE),
        (checks_with_process, NONE_LEFT, all_checks(dy_rule__amount__min="ERROR")),
    ],
)
def test_checks_of_their_own_report_on_what_a_plain_asset_stored(
    files: FileIOManager,
    instance: dg.DagsterInstance,
    build: Any,
    frame: pl.DataFrame,
    expected: Checks,
) -> None:
    @dg.asset(metadata=wiring.schema_metadata(Orders))
    def stored() -> pl.DataFrame:
        return frame

    result = dg.materialize(
        [stored, build("stored")], instance=instance, resources={"io_manager": files}
    )
    assert result.success
    assert {
        evaluation.check_name: (evaluation.passed, evaluation.severity.name)
        for evaluation in result.get_asset_check_evaluations()
    } == expected
    assert files.files == ["stored.parquet"]


def test_columns_alone_go_on_an_asset_that_holds_no_frame(instance: dg.DagsterInstance) -> None:
    @dg.asset(metadata=wiring.schema_metadata(Orders))
    def external() -> None: ...

    resources = {"io_manager": dg.mem_io_manager}
    assert dg.materialize([external], instance=instance, resources=resources).success
    spec = dg.AssetSpec("elsewhere", metadata=wiring.schema_metadata(Orders))
    expected = {"dagster/column_schema": wiring.table_schema(Orders)}
    assert external.metadata_by_key[external.key] == expected
    assert spec.metadata == expected
    assert [column.name for column in wiring.table_schema(Orders).columns] == CLEAN.columns
