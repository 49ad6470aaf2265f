"""One function, an asset for each member of a collection, and exits that they share."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import polars as pl
import pytest
from support.declare import declare
from support.execution import Execution, left_by_call
from support.shop import (
    CHECKS,
    CLEAN,
    DIRTY,
    FAILED,
    LINE_RULES,
    LINES,
    NOTES,
    ORDER_RULES,
    ORDERS,
    Shop,
)
from support.storage import Store, left_by_run

from dagster_dataframely.testing import invoke_collection


def words(frame: pl.DataFrame, rules: list[str], **columns: list[str]) -> pl.DataFrame:
    """Error rows with what each rule says of them, `valid` where nothing else is said."""
    valid = {f"dy_rule__{rule}": ["valid"] * frame.height for rule in rules}
    return frame.with_columns(pl.Series(name, words) for name, words in (valid | columns).items())


ERROR_ROWS = {
    "orders": words(
        DIRTY["orders"][1:3],
        ORDER_RULES,
        dy_rule__total__min=["valid", "invalid"],
        dy_filter__has_lines=["invalid", "unknown"],
    ),
    "lines": words(
        DIRTY["lines"][[2, 4]],
        LINE_RULES,
        dy_rule__amount__max=["valid", "invalid"],
        dy_filter__has_lines=["invalid", "invalid"],
    ),
}


SURVIVORS = {
    "orders": DIRTY["orders"][[0, 3]],
    "lines": DIRTY["lines"][[0, 1, 3]],
    "notes": NOTES,
}


Execute = Callable[[dg.AssetsDefinition], dict[str, Execution]]


@pytest.fixture(params=["run", "call"])
def execute(request: pytest.FixtureRequest, store: Store) -> Execute:
    """Execute the assets of a collection in a run or by a direct invocation."""

    def run(asset: dg.AssetsDefinition) -> dict[str, Execution]:
        result = store.materialize(asset)
        return {name: left_by_run(result, dg.AssetKey(name), store.files) for name in CHECKS}

    def call(asset: dg.AssetsDefinition) -> dict[str, Execution]:
        return {name: left_by_call(member) for name, member in invoke_collection(asset).items()}

    return run if request.param == "run" else call


def assert_stored(
    members: Mapping[str, Execution],
    *,
    tables: Mapping[str, pl.DataFrame],
    quarantines: Mapping[str, pl.DataFrame],
) -> None:
    for name, member in members.items():
        member.assert_stored(table=tables.get(name), quarantine=quarantines.get(name))


@pytest.mark.parametrize("quarantine", [True, False])
def test_members_without_error_rows_are_written(execute: Execute, *, quarantine: bool) -> None:
    members = execute(declare(Shop, Shop.cast(CLEAN), quarantine=quarantine))
    assert all(member.success for member in members.values())
    assert_stored(members, tables=CLEAN, quarantines={})
    assert {name: list(member.checks) for name, member in members.items()} == CHECKS
    assert {name: member.failed_rows for name, member in members.items()} == {
        "orders": {},
        "lines": {"dy_rule__amount__max": 1},
        "notes": {},
    }
    assert members["lines"].failed == {"dy_rule__amount__max": "WARN"}


@pytest.mark.parametrize("engine", ["auto", "in-memory", "streaming"])
def test_error_rows_of_every_member_are_set_aside(execute: Execute, engine: str) -> None:
    members = execute(declare(Shop, Shop.cast(DIRTY), quarantine=True, engine=engine))
    assert all(member.success for member in members.values())
    assert_stored(members, tables=SURVIVORS, quarantines=ERROR_ROWS)
    assert {name: member.failed_rows for name, member in members.items()} == FAILED
    assert set(members["orders"].failed.values()) == {"WARN"}
    orders, lines = members["orders"].table, members["lines"].table
    assert orders is not None
    assert lines is not None
    without_warn_rows = lines.with_columns(amount=pl.lit(None, pl.Int64))
    # `Collection.is_valid` cannot take a member that is ignored in filters (Dataframely 3.1).
    tables = {"orders": orders, "lines": without_warn_rows}
    assert Shop.is_valid(tables)


def test_an_error_row_of_one_member_keeps_all_from_being_written(store: Store) -> None:
    frames = CLEAN | {"notes": pl.DataFrame({"text": ["long text"]})}
    assert store.materialize(declare(Shop, Shop.cast(CLEAN))).success
    result = store.materialize(declare(Shop, Shop.cast(frames)))
    assert store.error_of(result)[0] == "ValidationAbortError"
    assert store.failures(result, asset="notes") == {"dy_rule__text__max_length": 1}
    for name, checks in CHECKS.items():
        assert list(store.found(result, asset=name)) == checks
    assert not result.get_asset_materialization_events()
    assert store.files.files == ["lines.parquet", "notes.parquet", "orders.parquet"]


def test_a_filter_keeps_all_from_being_written_without_a_quarantine(store: Store) -> None:
    result = store.materialize(declare(Shop, Shop.cast(CLEAN | {"orders": ORDERS[:1]})))
    name, message = store.error_of(result)
    assert (name, "`has_lines` (2)" in message) == ("ValidationAbortError", True)
    assert store.failures(result, asset="lines") == {
        "dy_rule__amount__max": 1,
        "dy_filter__has_lines": 2,
    }
    assert store.files.files == []


def test_a_member_of_which_nothing_survives_keeps_all_from_being_written(store: Store) -> None:
    frames = CLEAN | {"orders": ORDERS.with_columns(total=-1)}
    result = store.materialize(declare(Shop, Shop.cast(frames), quarantine=True))
    name, message = store.error_of(result)
    assert (name, "`orders`" in message) == ("NothingSurvivedError", True)
    assert store.files.files == ["lines_quarantine.parquet", "orders_quarantine.parquet"]
    found = store.found(result, asset="lines")["dy_filter__has_lines"]
    assert (found[:2], found[2]["dy_failed_count"]) == ((False, "ERROR"), 3)
    address = found[2]["dataframely/quarantine_address"]
    assert address.startswith("lines_quarantine")
    quarantine = store.files.read("lines_quarantine")
    assert quarantine is not None
    assert quarantine["dy_filter__has_lines"].to_list() == ["invalid"] * 3


def test_another_column_of_one_member_keeps_all_from_being_looked_at(store: Store) -> None:
    frames = {**DIRTY, "lines": DIRTY["lines"].drop("amount")}
    result = store.materialize(declare(Shop, dict(frames), quarantine=True), partition_key=None)
    assert store.error_of(result)[0] == "ColumnSchemaError"
    for name in CHECKS:
        assert list(store.found(result, asset=name)) == ["dy_schema__columns"]
    assert store.found(result, asset="lines")["dy_schema__columns"][0] is False
    assert store.files.files == []


def test_a_run_that_skips_writes_no_member(execute: Execute) -> None:
    members = execute(declare(Shop, None, quarantine=True))
    assert all(member.success for member in members.values())
    assert_stored(members, tables={}, quarantines={})
    assert {name: list(member.checks) for name, member in members.items()} == CHECKS
    assert {name: member.failed_rows for name, member in members.items()} == {
        "orders": {},
        "lines": {},
        "notes": {},
    }


@pytest.mark.parametrize("returned", [{"notes": None}, {}], ids=["None", "not there"])
def test_an_optional_member_is_skipped_alone(execute: Execute, returned: dict[str, Any]) -> None:
    frames = {"orders": ORDERS, "lines": LINES} | returned
    members = execute(declare(Shop, frames))
    assert_stored(members, tables={"orders": ORDERS, "lines": LINES}, quarantines={})
    assert list(members["notes"].checks) == CHECKS["notes"]
    assert members["notes"].failed == {}
