"""What a quarantine holds from run to run: after a clean one, in either layout, beside an old table."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Materialize
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely.errors import QuarantineColumnsError


class Orders(dy.Schema):
    """An error rule, a warn rule, and a column for partitions."""

    id = dy.Int64(nullable=True, min=0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))
    day = dy.String(nullable=True)


class MoreOrders(Orders):
    """A rule was added."""

    @dy.rule()
    def small(cls) -> pl.Expr:
        return cls.id.col < 100


DIRTY = pl.DataFrame({"id": [1, -2], "note": ["a", "long note"], "day": ["mon", "mon"]})
"""The second row fails the error rule and the warn rule."""

CLEAN = DIRTY[:1]

RULES = {"dy_rule__id__min": "invalid", "dy_rule__note__max_length": "invalid"}

DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])

Read = Callable[[str | None], pl.DataFrame | None]


QUARANTINED: dict[str, Any] = {
    "name": "orders",
    "quarantine": True,
    "metadata": {"partition_expr": "day"},
}


@pytest.fixture
def read(manager: Any, tmp_path: Path, files: FileIOManager) -> Read:
    """What is stored as the quarantine of an asset or a partition, read without the manager."""

    def read(partition: str | None) -> pl.DataFrame | None:
        if hasattr(manager, "database"):
            import duckdb

            with duckdb.connect(manager.database) as connection:
                try:
                    found = connection.execute("select * from public.orders_quarantine")
                except duckdb.CatalogException:
                    return None
                frame: pl.DataFrame = found.pl()
                return frame if partition is None else frame.filter(day=partition)
        if hasattr(manager, "base_dir"):
            parts = ["orders_quarantine", *([] if partition is None else [partition])]
            path = Path(manager.base_dir).joinpath(*parts[:-1], f"{parts[-1]}.parquet")
            return pl.read_parquet(path) if path.exists() else None
        return files.read("orders_quarantine", partition)

    return read


@pytest.mark.parametrize("partition", [None, "mon"])
def test_a_clean_run_leaves_no_old_error_rows(
    materialize: Materialize,
    manager: object,
    read: Read,
    partition: str | None,
) -> None:
    arguments: dict[str, Any] = {"partitions_def": DAYS} if partition else {}
    materialize(declare(Orders, CLEAN, **QUARANTINED, **arguments), manager, partition)
    assert read(partition) is None
    materialize(declare(Orders, DIRTY, **QUARANTINED, **arguments), manager, partition)
    rows = read(partition)
    assert rows is not None
    assert rows["id"].to_list() == [-2]
    materialize(declare(Orders, CLEAN, **QUARANTINED, **arguments), manager, partition)
    rows = read(partition)
    assert rows is not None
    assert rows.is_empty()
    # And once more, with nothing left to take away.
    assert materialize(
        declare(Orders, CLEAN, **QUARANTINED, **arguments), manager, partition
    ).success


@pytest.mark.parametrize(
    ("partitions_def", "partition"),
    [
        (dg.DailyPartitionsDefinition("2013-01-01"), "2013-01-02"),
        (dg.DynamicPartitionsDefinition(name="days"), "mon"),
        (dg.MultiPartitionsDefinition({"day": DAYS, "origin": DAYS}), "mon|tue"),
    ],
    ids=["time windows", "dynamic", "grid"],
)
def test_a_clean_run_leaves_no_old_error_rows_of_any_kind_of_partition(
    materialize: Materialize,
    files: FileIOManager,
    instance: dg.DagsterInstance,
    partitions_def: dg.PartitionsDefinition[Any],
    partition: str,
) -> None:
    instance.add_dynamic_partitions("days", ["mon"])
    for returned in (DIRTY, CLEAN):
        materialize(
            declare(Orders, returned, partitions_def=partitions_def, **QUARANTINED),
            files,
            partition,
        )
    rows = files.read("orders_quarantine", partition)
    assert rows is not None
    assert rows.is_empty()


def test_a_clean_run_of_one_partition_leaves_the_others(
    materialize: Materialize,
    manager: object,
    read: Read,
) -> None:
    for day in ("mon", "tue"):
        rows = DIRTY.with_columns(day=pl.lit(day))
        materialize(declare(Orders, rows, partitions_def=DAYS, **QUARANTINED), manager, day)
    materialize(declare(Orders, CLEAN, partitions_def=DAYS, **QUARANTINED), manager, "mon")
    found = {day: read(day) for day in ("mon", "tue")}
    assert {day: None if rows is None else rows.height for day, rows in found.items()} == {
        "mon": 0,
        "tue": 1,
    }


@pytest.mark.parametrize("returned", [None, DIRTY.drop("id")], ids=["skip", "other columns"])
def test_a_run_that_writes_no_table_leaves_the_error_rows_of_the_last_one(
    materialize: Materialize, files: FileIOManager, returned: object
) -> None:
    materialize(declare(Orders, DIRTY, **QUARANTINED), files)
    run = dg.materialize(
        [declare(Orders, returned, **QUARANTINED)],
        resources={"io_manager": files},
        raise_on_error=False,
    )
    assert run.success is (returned is None)
    rows = files.read("orders_quarantine")
    assert rows is not None
    assert rows.height == 1


def test_error_rows_stay_where_the_table_of_a_clean_run_cannot_be_written(
    materialize: Materialize, files: FileIOManager
) -> None:
    materialize(declare(Orders, DIRTY, **QUARANTINED), files)
    before = files.files

    class Full(type(files)):  # type: ignore[misc]
        def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
            message = "No space left"
            raise OSError(message)

    with pytest.raises(OSError, match="No space left"):
        materialize(declare(Orders, CLEAN, **QUARANTINED), Full(files.root))
    rows = files.read("orders_quarantine")
    assert rows is not None
    assert (rows.height, files.files) == (1, before)


def test_a_clean_direct_invocation_clears_the_file_of_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR", str(tmp_path))
    path = tmp_path / "orders_quarantine.parquet"

    def call(frame: pl.DataFrame) -> None:
        events: Any = declare(Orders, frame, **QUARANTINED)(dg.build_asset_context())
        assert list(events)

    call(CLEAN)
    assert not path.exists()
    call(DIRTY)
    assert pl.read_parquet(path).height == 1
    assert dd.testing.invoke(declare(Orders, CLEAN, **QUARANTINED)).quarantine is None
    assert pl.read_parquet(path).height == 1
    call(CLEAN)
    assert pl.read_parquet(path).is_empty()
    monkeypatch.delenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR")
    call(CLEAN)


def test_a_clean_run_of_a_hand_wired_asset_clears_what_its_writer_can_clear(
    files: FileIOManager,
) -> None:
    frames = iter([DIRTY, CLEAN])

    @dg.asset(check_specs=dd.wiring.check_specs(Orders, asset="orders"), output_required=False)
    def orders(context: dg.AssetExecutionContext) -> Any:
        writer = dd.wiring.delegating_writer(context)
        yield from dd.wiring.process(Orders, next(frames), asset="orders", quarantine_writer=writer)

    heights = []
    for _run in range(2):
        dg.materialize([orders], resources={"io_manager": files})
        rows = files.read("orders_quarantine")
        assert rows is not None
        heights.append(rows.height)
    assert heights == [1, 0]


def test_a_writer_that_is_a_function_is_not_called_without_error_rows() -> None:
    def refuse(frame: pl.DataFrame) -> str:
        raise AssertionError(frame)

    assert list(dd.wiring.process(Orders, CLEAN, asset="orders", quarantine_writer=refuse))


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
