"""The columns of a quarantine, in either layout, beside an old table."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Materialize
from support.quarantined import CLEAN, DAYS, DIRTY, QUARANTINED, Orders, Read

import dagster_dataframely as dd
from dagster_dataframely.errors import QuarantineColumnsError


class MoreOrders(Orders):
    """A rule was added."""

    @dy.rule()
    def small(cls) -> pl.Expr:
        return cls.id.col < 100


RULES = {"dy_rule__id__min": "invalid", "dy_rule__note__max_length": "invalid"}


@pytest.mark.parametrize("partition", [None, "mon"])
@pytest.mark.parametrize("given", [pl.DataFrame.clone, pl.DataFrame.lazy])
def test_the_list_layout_names_rules_run_and_time(
    materialize: Materialize,
    manager: object,
    read: Read,
    given: Callable[[pl.DataFrame], Any],
    partition: str | None,
) -> None:
    arguments: dict[str, Any] = {"partitions_def": DAYS} if partition else {}
    before = dt.datetime.now(dt.UTC)
    result = materialize(
        declare(Orders, given(DIRTY), quarantine_layout="list", **QUARANTINED, **arguments),
        manager,
        partition,
    )
    rows = read(partition)
    assert rows is not None
    (row,) = rows.rows(named=True)
    written_at = row.pop("dy_written_at")
    assert row == {
        "id": -2,
        "note": "long note",
        "day": "mon",
        "dy_failed_rules": ["id|min", "note|max_length"],
        "dy_run_id": result.run_id,
    }
    assert before <= written_at.astimezone(dt.UTC) <= dt.datetime.now(dt.UTC)


@pytest.mark.io_managers
@pytest.mark.parametrize("partition", [None, "mon"])
def test_a_new_rule_changes_nothing_about_a_list_quarantine(
    materialize: Materialize, duckdb: object, duckdb_file: Path, partition: str | None
) -> None:
    from duckdb import connect

    arguments: dict[str, Any] = {"partitions_def": DAYS} if partition else {}
    for schema in (Orders, MoreOrders):
        asset = declare(schema, DIRTY, quarantine_layout="list", **QUARANTINED, **arguments)
        materialize(asset, duckdb, partition)
    with connect(str(duckdb_file)) as connection:
        rows = connection.execute("select id, dy_failed_rules from public.orders_quarantine")
        assert rows.fetchall() == [(-2, ["id|min", "note|max_length"])]


@pytest.mark.io_managers
@pytest.mark.parametrize("partition", [None, "mon"])
@pytest.mark.parametrize(
    ("first", "second", "added", "removed"),
    [
        (Orders, MoreOrders, ("dy_rule__small",), ()),
        (MoreOrders, Orders, (), ("dy_rule__small",)),
    ],
    ids=["rule added", "rule removed"],
)
def test_a_quarantine_table_with_other_columns_fails_before_anything_is_written(
    materialize: Materialize,
    duckdb: object,
    duckdb_file: Path,
    partition: str | None,
    first: type[dy.Schema],
    second: type[dy.Schema],
    added: tuple[str, ...],
    removed: tuple[str, ...],
) -> None:
    from duckdb import connect

    def stored() -> list[Any]:
        with connect(str(duckdb_file)) as connection:
            tables = ["public.orders", "public.orders_quarantine"]
            return [connection.execute(f"select * from {name}").fetchall() for name in tables]

    arguments: dict[str, Any] = {"partitions_def": DAYS} if partition else {}
    materialize(declare(first, DIRTY, **QUARANTINED, **arguments), duckdb, partition)
    before = stored()
    other = DIRTY.with_columns(id=pl.Series([5, -5]))
    with pytest.raises(QuarantineColumnsError, match='quarantine_layout="list"') as caught:
        materialize(declare(second, other, **QUARANTINED, **arguments), duckdb, partition)
    assert (caught.value.added, caught.value.removed) == (added, removed)
    assert stored() == before
    # A clean run needs no columns, so it is not refused.
    assert materialize(
        declare(second, CLEAN, **QUARANTINED, **arguments), duckdb, partition
    ).success


@pytest.mark.io_managers
def test_columns_in_another_order_are_written_under_their_names(
    materialize: Materialize, duckdb: object, duckdb_file: Path
) -> None:
    from duckdb import connect

    class Reordered(dy.Schema):
        day = dy.String(nullable=True)
        note = Orders.columns()["note"]
        id = Orders.columns()["id"]

    materialize(declare(Orders, DIRTY, **QUARANTINED), duckdb)
    with connect(str(duckdb_file)) as connection:
        connection.execute("drop table public.orders")
    materialize(declare(Reordered, DIRTY.select("day", "note", "id"), **QUARANTINED), duckdb)
    with connect(str(duckdb_file)) as connection:
        rows = connection.execute("select id, note, day from public.orders_quarantine")
        assert rows.fetchall() == [(-2, "long note", "mon")]


def test_a_storage_without_lists_gets_the_rules_as_text() -> None:
    from dagster_dataframely._quarantine.frame import quarantine_frame
    from dagster_dataframely._schema.read import read_schema
    from dagster_dataframely._settings import QuarantineLayout
    from dagster_dataframely._validation.in_memory import evaluate

    rules = read_schema(Orders)
    error_rows = evaluate(DIRTY, rules, sample=0).error_rows
    frame = quarantine_frame(error_rows, rules, QuarantineLayout.LIST, lists=False)
    assert frame["dy_failed_rules"].to_list() == ["id|min, note|max_length"]


def test_the_function_for_hand_wired_assets_knows_both_layouts() -> None:
    columns = dd.wiring.quarantine_frame(Orders, DIRTY)
    assert_frame_equal(
        columns, DIRTY[1:].with_columns(pl.lit(w).alias(n) for n, w in RULES.items())
    )
    rows = dd.wiring.quarantine_frame(Orders, DIRTY, quarantine_layout="list")
    assert rows["dy_failed_rules"].to_list() == [["id|min", "note|max_length"]]
    assert rows["dy_run_id"].to_list() == [None]


@pytest.mark.parametrize(
    ("asset", "arguments"),
    [
        (declare(Orders, DIRTY, quarantine_layout="list", **QUARANTINED), {}),
        ("orders", {"quarantine_layout": "list"}),
    ],
    ids=["definition", "key"],
)
def test_a_quarantine_spec_has_the_columns_of_the_layout(
    asset: Any, arguments: dict[str, Any]
) -> None:
    spec = dd.build_quarantine_spec(Orders, asset, **arguments)
    columns = spec.metadata["dagster/column_schema"].columns
    assert [column.name for column in columns] == [
        *Orders.column_names(),
        "dy_failed_rules",
        "dy_run_id",
        "dy_written_at",
    ]
    assert spec.description is not None
    assert "the names of the rules each row fails" in spec.description
