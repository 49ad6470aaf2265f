"""Calling an asset is its unit test: no run, no IO manager, no instance."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import dagster as dg
import polars as pl
import pytest
from dagster import AssetExecutionContext
from polars.testing import assert_frame_equal
from support.called_orders import CHECKS, CLEAN, ERROR_ROWS, SOME, VARIABLE, Orders, same
from support.declare import declare

import dagster_dataframely as dd


@pytest.fixture(autouse=True)
def _no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def iterate(yielded: object) -> Iterator[Any]:
    """The events of a call, which Dagster types as an object."""
    return cast("Iterator[Any]", yielded)


def events(yielded: object) -> list[Any]:
    return list(iterate(yielded))


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
