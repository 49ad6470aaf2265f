"""`invoke` calls an asset and collects what comes of it."""

import asyncio
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import polars as pl
import pytest
from dagster import AssetExecutionContext
from polars.testing import assert_frame_equal
from support.called_orders import CHECKS, CLEAN, ERROR_ROWS, NONE_LEFT, SOME, VARIABLE, Orders, same
from support.declare import declare

import dagster_dataframely as dd
from dagster_dataframely.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def _no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


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


DAYS = dg.StaticPartitionsDefinition(["mon", "tue", "wed"])


def test_invoke_takes_the_partitions_of_a_range() -> None:
    seen: list[Any] = []

    @dd.asset(Orders, partitions_def=DAYS, quarantine=True)
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        seen.append(context.partition_keys)
        return SOME

    result = dd.testing.invoke(orders, partition_keys=["tue", "wed"])
    assert [*seen[0]] == ["tue", "wed"]
    assert result.table is not None
    assert result.quarantine is not None


@pytest.mark.parametrize(
    "arguments",
    [
        {"partition_keys": []},
        {"partition_keys": ["wed", "mon"]},
        {"partition_keys": ["mon", "wed"]},
        {"partition_keys": ["sun"]},
        {"partition_keys": ["mon"], "partition_key": "mon"},
    ],
)
def test_invoke_refuses_what_is_no_range(arguments: Any) -> None:
    orders = declare(Orders, same, partitions_def=DAYS)
    with pytest.raises(InvalidArgumentError, match="partition_keys"):
        dd.testing.invoke(orders, SOME, **arguments)
    with pytest.raises(InvalidArgumentError, match="partition_keys"):
        dd.testing.invoke(declare(Orders, same), SOME, partition_keys=["mon"])
