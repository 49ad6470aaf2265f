"""Calling an asset is its unit test: no run, no IO manager, no instance."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster import AssetExecutionContext
from polars.testing import assert_frame_equal
from support.declare import declare

import dagster_dataframely as dd

VARIABLE = "DAGSTER_DATAFRAMELY_QUARANTINE_DIR"


class Orders(dy.Schema):
    """Two rules in all."""

    id = dy.Int64(primary_key=True, nullable=False)
    amount = dy.Int64(nullable=True, min=0, metadata=dd.severity(min="error"))


CLEAN = pl.DataFrame({"id": [2, 1], "amount": [5, None]})
"""No rule fails."""

SOME = pl.DataFrame({"id": [2, 1], "amount": [5, -5]})
"""The second row is an error row."""

NONE_LEFT = SOME[1:]
"""Only an error row."""

ERROR_ROWS = NONE_LEFT.with_columns(
    dy_rule__id__nullability=pl.lit("valid"),
    dy_rule__amount__min=pl.lit("invalid"),
    dy_rule__primary_key=pl.lit("valid"),
)
"""What the quarantine of either has."""

CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__amount__min",
    "dy_rule__primary_key",
]


@pytest.fixture(autouse=True)
def _no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def iterate(yielded: object) -> Iterator[Any]:
    """The events of a call, which Dagster types as an object."""
    return cast("Iterator[Any]", yielded)


def events(yielded: object) -> list[Any]:
    return list(iterate(yielded))


def same(raw: Any) -> object:
    return raw


@pytest.mark.parametrize("raw", [CLEAN, CLEAN.lazy()], ids=["eager", "lazy"])
def test_without_a_quarantine_an_asset_is_called_with_its_inputs_alone(
    raw: pl.DataFrame | pl.LazyFrame,
) -> None:
    table, *checks = events(declare(Orders, same, key_prefix="shop")(raw))
    key = dg.AssetKey(["shop", "orders"])
    assert isinstance(table, dg.MaterializeResult)
    assert table.asset_key == key
    assert type(table.value) is pl.DataFrame
    assert_frame_equal(table.value, CLEAN)
    assert [(type(c), c.asset_key, c.check_name, c.passed) for c in checks] == [
        (dg.AssetCheckResult, key, name, True) for name in CHECKS
    ]


def test_a_quarantined_asset_takes_a_context_first() -> None:
    orders = declare(Orders, same, quarantine=True)
    with pytest.raises(dg.DagsterInvalidInvocationError, match="context"):
        orders(CLEAN)
    table, *_ = events(orders(dg.build_asset_context(), CLEAN))
    assert_frame_equal(table.value, CLEAN)


def test_context_and_inputs_may_be_given_by_name() -> None:
    called = declare(Orders, same, quarantine=True)(context=dg.build_asset_context(), raw=CLEAN)
    assert_frame_equal(events(called)[0].value, CLEAN)


def test_the_context_a_function_declares_is_passed_on() -> None:
    seen: list[object] = []

    @dd.asset(Orders, quarantine=True)
    def orders(context: AssetExecutionContext, raw: pl.DataFrame) -> pl.DataFrame:
        seen.append(context.resources.unit)
        return raw

    context = dg.build_asset_context(resources={"unit": "eur"})
    assert len(events(orders(context, CLEAN))) == 1 + len(CHECKS)
    assert seen == ["eur"]


def test_an_abort_raises_out_of_the_call() -> None:
    seen: list[str | None] = []
    with pytest.raises(dd.errors.ValidationAbortError):
        seen.extend(event.check_name for event in iterate(declare(Orders, same)(SOME)))
    assert seen == CHECKS


def test_the_directory_is_read_when_the_call_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = declare(Orders, same, quarantine=True)
    for name in ("first", "second"):
        monkeypatch.setenv(VARIABLE, str(tmp_path / name))
        table, *_ = events(orders(dg.build_asset_context(), SOME))
        assert_frame_equal(table.value, SOME[:1])
        path = tmp_path / name / "orders_quarantine.parquet"
        assert_frame_equal(pl.read_parquet(path), ERROR_ROWS)
        assert table.metadata["dataframely/quarantine_address"].value == str(path)


def test_without_a_directory_only_a_call_with_error_rows_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders = declare(Orders, same, quarantine=True)
    assert events(orders(dg.build_asset_context(), CLEAN))
    with pytest.raises(dd.errors.QuarantineDirError, match=VARIABLE) as caught:
        events(orders(dg.build_asset_context(), SOME))
    assert caught.value.asset == "orders"
    monkeypatch.setenv(VARIABLE, " ")
    with pytest.raises(dd.errors.InvalidSettingError, match=VARIABLE):
        events(orders(dg.build_asset_context(), SOME))


GRID = dg.MultiPartitionsDefinition(
    {
        "region": dg.StaticPartitionsDefinition(["eu"]),
        "day": dg.DailyPartitionsDefinition("2026-01-01"),
    }
)


@pytest.mark.parametrize(
    ("prefix", "partitions_def", "partition_key", "expected"),
    [
        (None, None, None, "orders_quarantine.parquet"),
        (["a", "b"], None, None, "a/b/orders_quarantine.parquet"),
        (
            "a",
            dg.DailyPartitionsDefinition("2026-01-01"),
            "2026-01-01",
            "a/orders_quarantine/2026-01-01.parquet",
        ),
        (
            None,
            GRID,
            dg.MultiPartitionKey({"region": "eu", "day": "2026-01-01"}),
            "orders_quarantine/2026-01-01/eu.parquet",
        ),
        (None, GRID, "2026-01-01|eu", "orders_quarantine/2026-01-01/eu.parquet"),
    ],
    ids=["plain", "prefix", "partition", "grid", "grid, as text"],
)
def test_error_rows_lie_below_the_directory_by_key_and_partition(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prefix: list[str] | None,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    partition_key: str | None,
    expected: str,
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    orders = declare(
        Orders, same, quarantine=True, key_prefix=prefix, partitions_def=partitions_def
    )
    events(orders(dg.build_asset_context(partition_key=partition_key), SOME))
    found = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.as_posix() for path in found] == [expected]
    assert_frame_equal(pl.read_parquet(tmp_path / expected), ERROR_ROWS)


@pytest.mark.parametrize("partition_key", ["..", "../up", "a/../../up", "/abs", "a/.."])
def test_no_partition_leaves_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition_key: str
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "inside"))
    partitions_def = dg.StaticPartitionsDefinition([partition_key])
    orders = declare(Orders, same, quarantine=True, partitions_def=partitions_def)
    with pytest.raises(dd.errors.QuarantineDirError) as caught:
        events(orders(dg.build_asset_context(partition_key=partition_key), SOME))
    assert caught.value.asset == "orders"
    assert list(tmp_path.rglob("*.parquet")) == []


def test_no_key_leaves_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "inside"))
    orders = declare(Orders, same, quarantine=True, key=["..", "orders"])
    with pytest.raises(dd.errors.QuarantineDirError):
        events(orders(dg.build_asset_context(), SOME))
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_directory_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv(VARIABLE, str(blocked))
    with pytest.raises(dd.errors.QuarantineDirError, match=VARIABLE):
        events(declare(Orders, same, quarantine=True)(dg.build_asset_context(), SOME))
    assert blocked.read_text() == "in the way"


async def collect(yielded: object) -> list[Any]:
    return [event async for event in cast("AsyncIterator[Any]", yielded)]


def test_an_asynchronous_asset_is_called_and_awaited() -> None:
    @dd.asset(Orders)
    async def orders(raw: pl.DataFrame) -> pl.DataFrame:
        await asyncio.sleep(0)
        return raw

    table, *checks = asyncio.run(collect(orders(CLEAN)))
    assert_frame_equal(table.value, CLEAN)
    assert [check.check_name for check in checks] == CHECKS


def test_invoke_returns_table_quarantine_checks_and_metadata() -> None:
    result = dd.testing.invoke(declare(Orders, same, quarantine=True), SOME)
    assert result.table is not None
    assert_frame_equal(result.table, SOME[:1])
    assert result.quarantine is not None
    assert_frame_equal(result.quarantine, ERROR_ROWS)
    assert {name: check.passed for name, check in result.checks.items()} == {
        name: name != "dy_rule__amount__min" for name in CHECKS
    }
    assert result.failed == ["dy_rule__amount__min"]
    assert result.metadata["dataframely/error_rows"] == 1


@pytest.mark.parametrize("quarantine", [False, True])
def test_invoke_of_a_clean_frame_or_a_skip(*, quarantine: bool) -> None:
    orders = declare(Orders, same, quarantine=quarantine)
    clean, skipped = dd.testing.invoke(orders, raw=CLEAN), dd.testing.invoke(orders, None)
    assert clean.table is not None
    assert_frame_equal(clean.table, CLEAN)
    assert (clean.quarantine, clean.failed, list(clean.checks)) == (None, [], CHECKS)
    assert (skipped.table, skipped.quarantine, skipped.failed) == (None, None, [])
    assert list(skipped.checks) == CHECKS
    assert skipped.metadata == {}


@pytest.mark.parametrize(
    ("raw", "quarantine", "error"),
    [
        (SOME, False, dd.errors.ValidationAbortError),
        (NONE_LEFT, True, dd.errors.NothingSurvivedError),
        (CLEAN.rename({"id": "key"}), True, dd.errors.ColumnSchemaError),
        ([1], True, dd.errors.ReturnValueError),
    ],
    ids=["abort", "nothing survives", "other columns", "no frame"],
)
def test_invoke_raises_where_a_run_fails(
    raw: object, error: type[Exception], *, quarantine: bool
) -> None:
    orders = declare(Orders, same, quarantine=quarantine)
    with pytest.raises(error):
        dd.testing.invoke(orders, raw)


def test_invoke_needs_no_directory_and_uses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert dd.testing.invoke(declare(Orders, same, quarantine=True), SOME).quarantine is not None
    assert list(tmp_path.iterdir()) == []


class Limit(dg.Config):
    """A config parameter."""

    rows: int


class Unit(dg.ConfigurableResource[None]):
    """A resource parameter."""

    factor: int


@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize("with_context", [False, True])
def test_invoke_passes_inputs_config_resources_and_partition(
    *, quarantine: bool, with_context: bool
) -> None:
    keys: list[str] = []
    arguments: dict[str, Any] = {
        "quarantine": quarantine,
        "partitions_def": dg.StaticPartitionsDefinition(["x", "y"]),
    }

    if with_context:

        @dd.asset(Orders, **arguments)
        def orders(
            context: AssetExecutionContext, raw: pl.DataFrame, config: Limit, unit: Unit
        ) -> pl.DataFrame:
            keys.append(context.partition_key)
            return raw.head(config.rows).with_columns(pl.col("amount") * unit.factor)
    else:

        @dd.asset(Orders, **arguments)
        def orders(raw: pl.DataFrame, config: Limit, unit: Unit) -> pl.DataFrame:
            return raw.head(config.rows).with_columns(pl.col("amount") * unit.factor)

    result = dd.testing.invoke(
        orders, CLEAN, config=Limit(rows=1), resources={"unit": Unit(factor=3)}, partition_key="y"
    )
    assert result.table is not None
    assert result.table.to_dicts() == [{"id": 2, "amount": 15}]
    assert result.metadata["dagster/partition_row_count"] == 1
    assert keys == (["y"] if with_context else [])


@pytest.mark.parametrize("quarantine", [False, True])
def test_invoke_takes_an_asset_that_was_moved_to_another_key(*, quarantine: bool) -> None:
    module = ModuleType("module")
    vars(module)["orders"] = declare(Orders, same, quarantine=quarantine)
    (moved,) = dg.load_assets_from_modules([module], key_prefix="shop")
    assert isinstance(moved, dg.AssetsDefinition)
    result = dd.testing.invoke(moved, SOME if quarantine else CLEAN)
    assert result.table is not None
    assert (result.quarantine is not None) is quarantine
    keys = {check.asset_key for check in result.checks.values()}
    assert keys == {dg.AssetKey(["shop", "orders"])}


@pytest.mark.parametrize("quarantine", [False, True])
def test_invoke_awaits_an_asynchronous_asset(*, quarantine: bool) -> None:
    @dd.asset(Orders, quarantine=quarantine)
    async def orders(raw: pl.DataFrame) -> pl.DataFrame:
        await asyncio.sleep(0)
        return raw

    result = dd.testing.invoke(orders, SOME if quarantine else CLEAN)
    assert result.table is not None
    assert_frame_equal(result.table, SOME[:1] if quarantine else CLEAN)
    assert (result.quarantine is not None) is quarantine


WHO: ContextVar[str] = ContextVar("who")


@pytest.mark.parametrize("fails", [False, True])
def test_invoke_awaits_an_asynchronous_asset_where_a_loop_runs(*, fails: bool) -> None:
    seen: list[str] = []

    @dd.asset(Orders, quarantine=True)
    async def orders(raw: pl.DataFrame) -> pl.DataFrame:
        await asyncio.sleep(0)
        seen.append(WHO.get())
        return raw

    async def notebook() -> dd.testing.Invocation:
        WHO.set("me")
        return dd.testing.invoke(orders, NONE_LEFT if fails else SOME)

    if fails:
        with pytest.raises(dd.errors.NothingSurvivedError):
            asyncio.run(notebook())
    else:
        result = asyncio.run(notebook())
        assert result.table is not None
        assert_frame_equal(result.table, SOME[:1])
        assert result.quarantine is not None
        assert_frame_equal(result.quarantine, ERROR_ROWS)
    assert seen == ["me"]


def test_a_call_inside_a_run_of_another_asset_is_still_a_call(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    inner = declare(Orders, same, quarantine=True)

    @dg.asset
    def outer() -> None:
        assert len(events(inner(dg.build_asset_context(), SOME))) == 1 + len(CHECKS)

    resources = {"io_manager": dg.mem_io_manager}
    assert dg.materialize([outer], instance=instance, resources=resources).success
    assert [path.name for path in tmp_path.iterdir()] == ["orders_quarantine.parquet"]
