"""What is stored is looked at before anything is written."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely._io_managers.holds import holds
from dagster_dataframely.errors import (
    QuarantineAddressError,
    QuarantineColumnsError,
    QuarantineReadError,
    StoredTableError,
)


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


DIRTY = pl.DataFrame({"id": [1, 2], "amount": [1.0, -2.0]})
"""The second row fails a rule."""
CLEAN = DIRTY.with_columns(amount=pl.lit(1.0))
HOUR, UTC_HOUR = pl.Datetime("us"), pl.Datetime("us", "UTC")


def materialize(manager: Any, asset: dg.AssetsDefinition, **arguments: Any) -> Any:
    resources = {"io_manager": manager, **arguments.pop("resources", {})}
    return dg.materialize([asset], resources=resources, **arguments)


def orders(frame: Any, schema: type[dy.Schema] = Orders, **arguments: Any) -> dg.AssetsDefinition:
    return dd.asset(schema, name="orders", quarantine=True, **arguments)(lambda: frame)


@pytest.mark.parametrize(
    ("stored", "new", "expected"),
    [
        (pl.Int64(), pl.Int32(), True),
        (pl.Int32(), pl.Int64(), False),
        (pl.Int16(), pl.UInt8(), True),
        (pl.UInt16(), pl.Int8(), False),
        (pl.Float64(), pl.Float32(), True),
        (pl.Int64(), pl.Float64(), False),
        (pl.String(), pl.Enum(["a"]), True),
        (pl.Enum(["a"]), pl.String(), False),
        (pl.Decimal(12, 4), pl.Decimal(10, 2), True),
        (pl.Decimal(12, 2), pl.Decimal(12, 4), False),
        (pl.Datetime("us"), pl.Datetime("ms"), True),
        (pl.Datetime("ms"), pl.Datetime("us"), False),
        (UTC_HOUR, pl.Datetime("us", "Europe/Berlin"), True),
        (HOUR, UTC_HOUR, False),
        (pl.Duration("us"), pl.Duration("ms"), True),
        (pl.Date(), HOUR, False),
        (pl.List(pl.Int64()), pl.List(pl.Int32()), True),
        (pl.List(pl.Int64()), pl.List(pl.Float64()), False),
        (pl.List(pl.Int64()), pl.Array(pl.Int64(), 2), True),
        (pl.Array(pl.Int64(), 2), pl.List(pl.Int64()), False),
        (pl.Struct({"a": pl.Int64()}), pl.Struct({"a": pl.Int32()}), True),
        (pl.Struct({"a": pl.Int64()}), pl.Struct({"b": pl.Int64()}), False),
        (pl.Int64(), pl.Null(), True),
        (pl.Boolean(), pl.Int64(), False),
    ],
)
def test_a_dtype_holds_the_values_of_another(stored: Any, new: Any, *, expected: bool) -> None:
    assert holds(stored, new) is expected


@pytest.mark.parametrize("storage", ["Delta Lake", "Iceberg"])
def test_a_known_storage_has_the_numbers_that_a_new_table_would_have(storage: str) -> None:
    narrowest = pl.Int8() if storage == "Delta Lake" else pl.Int32()
    assert holds(narrowest, pl.UInt8(), storage)
    assert holds(pl.Int64(), pl.UInt64(), storage)
    assert not holds(pl.Int64(), pl.Int32(), storage)
    assert not holds(pl.Float64(), pl.Float32(), storage)
    assert not holds(pl.Decimal(12, 4), pl.Decimal(10, 2), storage)
    assert not holds(pl.List(pl.Int64()), pl.List(pl.Int32()), storage)


def schema_of(**columns: dy.Column) -> type[dy.Schema]:
    return type("Changed", (dy.Schema,), {"id": dy.Int64(primary_key=True), **columns})


@pytest.mark.io_managers
@pytest.mark.parametrize(
    ("columns", "values", "typed"),
    [
        ({"v": dy.Float64()}, {"v": [1.5]}, 'alter table public.orders alter "v" type DOUBLE'),
        ({"w": dy.Int64()}, {"w": [7]}, 'alter table public.orders add column "w" BIGINT'),
        ({'a"b': dy.Int64()}, {'a"b': [7]}, 'alter table public.orders add column "a""b" BIGINT'),
        ({}, {}, 'alter table public.orders drop column "v"'),
    ],
    ids=["dtype", "renamed", "quotation mark", "removed"],
)
def test_duckdb_is_told_what_to_alter_before_a_row_is_deleted(
    duckdb: object,
    duckdb_file: Path,
    columns: dict[str, dy.Column],
    values: dict[str, list[Any]],
    typed: str,
) -> None:
    from duckdb import connect

    first = schema_of(v=dy.Int64())
    materialize(duckdb, orders(pl.DataFrame({"id": [1], "v": [7]}), first))
    changed = orders(pl.DataFrame({"id": [2], **values}), schema_of(**columns))
    with pytest.raises(StoredTableError) as raised:
        materialize(duckdb, changed)
    assert typed in [fix.strip("`") for fix in (d.fix for d in raised.value.differences)]
    assert f"`{typed}`" in str(raised.value)
    with connect(str(duckdb_file)) as connection:
        assert connection.execute("select * from public.orders").fetchall() == [(1, 7)]
        for difference in raised.value.differences:
            connection.execute(difference.fix.strip("`"))
    assert materialize(duckdb, changed).success


@pytest.mark.io_managers
def test_a_table_that_was_altered_is_written_by_name(duckdb: object, duckdb_file: Path) -> None:
    from duckdb import connect

    first, second = schema_of(net=dy.Float64()), schema_of(gross=dy.Float64(), net=dy.Float64())
    materialize(duckdb, orders(pl.DataFrame({"id": [1], "net": [10.0]}), first))
    with connect(str(duckdb_file)) as connection:
        connection.execute('alter table public.orders add column "gross" DOUBLE')
    frame = pl.DataFrame({"id": [2], "gross": [11.9], "net": [10.0]})
    assert materialize(duckdb, orders(frame, second)).success
    with connect(str(duckdb_file)) as connection:
        found = connection.execute("select id, net, gross from public.orders").fetchall()
    assert found == [(2, 10.0, 11.9)]


class Positions(dg.IOManager):
    """Stores rows by position, as many a hand-written manager of a database does."""

    def __init__(self) -> None:
        self.tables: dict[str, pl.DataFrame] = {}
        self.loads = 0

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        name = context.asset_key.path[-1]
        if name in self.tables:
            obj = pl.DataFrame(obj.rows(), schema=self.tables[name].schema, orient="row")
        self.tables[name] = obj

    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        self.loads += 1
        return self.tables[context.asset_key.path[-1]]


def test_a_manager_that_is_not_known_is_asked_for_what_it_has(instance: dg.DagsterInstance) -> None:
    first = schema_of(net=dy.Float64(), gross=dy.Float64())
    swapped = schema_of(gross=dy.Float64(), net=dy.Float64())
    manager = Positions()
    frame = pl.DataFrame({"id": [1], "net": [10.0], "gross": [11.9]})
    materialize(manager, orders(frame, first), instance=instance)
    materialize(manager, orders(frame, swapped), instance=instance)
    assert manager.tables["orders"].to_dicts() == frame.to_dicts()
    renamed = orders(
        frame.rename({"net": "taxed"}), schema_of(taxed=dy.Float64(), gross=dy.Float64())
    )
    with pytest.raises(StoredTableError, match=r"`taxed` is missing there.*`net` is Float64 there"):
        materialize(manager, renamed, instance=instance)
    Positions.replaces_tables = True  # type: ignore[attr-defined]
    try:
        assert materialize(manager, renamed, instance=instance).success
    finally:
        del Positions.replaces_tables  # type: ignore[attr-defined]


def test_a_manager_that_is_not_known_loads_a_table_only_after_a_change(
    instance: dg.DagsterInstance,
) -> None:
    manager = Positions()
    asset = dd.asset(Orders, name="orders")(lambda: CLEAN)
    for _ in range(3):
        materialize(manager, asset, instance=instance)
    assert manager.loads == 1


class Broken(Positions):
    """What it has cannot be read."""

    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        message = "denied"
        raise PermissionError(message)


def test_what_cannot_be_read_is_told_from_what_is_not_there() -> None:
    manager = Broken()
    assert materialize(manager, orders(DIRTY)).success
    stored = dict(manager.tables)
    with pytest.raises(QuarantineReadError, match=r"`orders_quarantine`.*PermissionError: denied"):
        materialize(manager, orders(CLEAN))
    assert manager.tables == stored


class WriteOnly(Positions):
    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        raise NotImplementedError


def test_a_manager_that_cannot_load_has_nothing_to_clear() -> None:
    manager = WriteOnly()
    for frame in (DIRTY, CLEAN):
        assert materialize(manager, orders(frame)).success
    assert manager.tables["orders"].equals(CLEAN)


class OneAddress(Positions):
    """Goes by the metadata of the definition."""

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        self.tables[context.definition_metadata["table"]] = obj

    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        assert context.upstream_output is not None
        return self.tables[context.upstream_output.definition_metadata["table"]]


@pytest.mark.parametrize("frame", [DIRTY, CLEAN], ids=["dirty", "clean"])
def test_table_and_quarantine_never_share_an_address(frame: pl.DataFrame) -> None:
    manager = OneAddress()
    asset = orders(frame, metadata={"table": "sales"})
    with pytest.raises(QuarantineAddressError, match=r"OneAddress.*quarantine_io_manager_key"):
        materialize(manager, asset)
    manager.tables = {"sales": CLEAN}
    with pytest.raises(QuarantineAddressError):
        materialize(manager, asset)
    manager.tables = {"sales": dd.wiring.quarantine_frame(Orders, DIRTY)}
    with pytest.raises(QuarantineAddressError):
        materialize(manager, asset)


def test_another_manager_takes_the_error_rows(files: FileIOManager, tmp_path: Path) -> None:
    other = type(files)(tmp_path / "restricted")
    asset = orders(DIRTY, quarantine_io_manager_key="restricted")
    assert materialize(files, asset, resources={"restricted": other}).success
    assert (files.files, other.files) == (["orders.parquet"], ["orders_quarantine.parquet"])
    spec = dd.build_quarantine_spec(Orders, asset)
    assert spec.metadata["dagster/io_manager_key"] == "restricted"
    clean = orders(CLEAN, quarantine_io_manager_key="restricted")
    assert materialize(files, clean, resources={"restricted": other}).success
    error_rows = other.read("orders_quarantine")
    assert error_rows is not None
    assert error_rows.is_empty()


def test_a_shared_address_is_parted_by_another_manager(files: FileIOManager) -> None:
    manager = OneAddress()
    arguments: Any = {"metadata": {"table": "sales"}, "quarantine_io_manager_key": "restricted"}
    result = materialize(manager, orders(DIRTY, **arguments), resources={"restricted": files})
    assert result.success
    assert files.files == ["orders_quarantine.parquet"]
    assert manager.tables["sales"].height == 1


def test_writes_and_clearings_are_recorded_where_wanted(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    key = dg.AssetKey("orders_quarantine")

    def counts() -> list[int]:
        records = instance.fetch_materializations(key, limit=10).records
        events = [r.asset_materialization for r in reversed(records)]
        return [int(e.metadata["dagster/row_count"].value) for e in events if e is not None]  # type: ignore[arg-type]

    materialize(files, orders(DIRTY), instance=instance)
    assert counts() == []
    for frame in (DIRTY, CLEAN, CLEAN):
        materialize(files, orders(frame, quarantine_events=True), instance=instance)
    assert counts() == [1, 0]


def test_events_of_a_partition_carry_it(files: FileIOManager, instance: dg.DagsterInstance) -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])
    asset = orders(DIRTY, partitions_def=days, quarantine_events=True)
    materialize(files, asset, instance=instance, partition_key="tue")
    (record,) = instance.fetch_materializations(dg.AssetKey("orders_quarantine"), limit=9).records
    assert record.partition_key == "tue"


@pytest.mark.io_managers
def test_columns_that_a_storage_loses_are_written_where_the_setting_says_so(
    duckdb: object, instance: dg.DagsterInstance
) -> None:
    schema = schema_of(took=dy.Duration())
    frame = pl.DataFrame({"id": [1], "took": [dt.timedelta(hours=1)]})
    result = materialize(duckdb, orders(frame, schema, unstorable="warn"), instance=instance)
    assert result.success
    logged = [entry.user_message for entry in instance.all_logs(result.run_id) if entry.level == 30]
    assert any("`took` (Duration)" in line for line in logged)


@pytest.mark.io_managers
def test_the_schema_for_examples_can_be_stored_in_duckdb(duckdb: object) -> None:
    asset = dd.asset(dd.data.OrdersSchema, name="orders")(dd.data.valid_orders)
    assert materialize(duckdb, asset).success


@pytest.mark.io_managers
def test_a_rule_added_is_named_where_the_quarantine_is_a_table(tmp_path: Path) -> None:
    from dagster_polars import PolarsDeltaIOManager

    manager = PolarsDeltaIOManager(base_dir=str(tmp_path))
    materialize(manager, orders(DIRTY))
    more = schema_of(amount=dy.Float64(min=0.0, max=10.0))
    with pytest.raises(QuarantineColumnsError, match="`dy_rule__amount__max` is missing there"):
        materialize(manager, orders(DIRTY, more))


def test_fields_of_structs_are_stored_in_the_declared_order(files: FileIOManager) -> None:
    schema = schema_of(geo=dy.Struct({"lat": dy.Float64(), "lon": dy.Float64()}, nullable=True))
    given = pl.DataFrame({"id": [1, 2], "geo": [{"lon": 2.0, "lat": 1.0}, None]})
    for frame in (given, given.lazy()):
        materialize(files, orders(frame, schema))
        stored = files.read("orders")
        assert stored is not None
        assert stored.schema["geo"] == pl.Struct({"lat": pl.Float64(), "lon": pl.Float64()})
        assert stored["geo"].to_list() == [{"lat": 1.0, "lon": 2.0}, None]


def test_fields_of_structs_in_lists_too(files: FileIOManager) -> None:
    point = dy.Struct({"a": dy.Int64(), "b": dy.Int64()})
    schema = schema_of(l=dy.List(point))
    frame = pl.DataFrame({"id": [1], "l": [[{"b": 2, "a": 1}]]})
    materialize(files, orders(frame, schema))
    stored = files.read("orders")
    assert stored is not None
    assert stored.schema["l"] == schema.columns()["l"].dtype


def test_decimals_are_no_matter_of_precision_alone() -> None:
    assert holds(pl.Decimal(38, 2), pl.Series([Decimal("1.25")]).dtype)


@pytest.mark.io_managers
def test_nothing_is_warned_of_where_nothing_is_lost(
    duckdb: object, instance: dg.DagsterInstance
) -> None:
    result = materialize(duckdb, orders(CLEAN, unstorable="warn"), instance=instance)
    assert result.success
    lines = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert not any("does not give back" in line for line in lines)


class Sinking(dg.IOManager):
    """Says that it writes a lazy frame out at once."""

    sinks_lazy_frames = True

    def __init__(self) -> None:
        self.plans: list[str] = []

    def handle_output(self, context: dg.OutputContext, obj: pl.LazyFrame) -> None:
        self.plans.append(obj.explain())
        obj.collect()

    def load_input(self, context: dg.InputContext) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("sinks", [True, False])
def test_staged_rows_go_to_a_manager_that_says_it_sinks_them(*, sinks: bool) -> None:
    def plan() -> pl.LazyFrame:
        return CLEAN.lazy()

    manager = Sinking()
    manager.sinks_lazy_frames = sinks
    assert materialize(manager, dd.asset(Orders, name="orders")(plan)).success
    (plan_text,) = manager.plans
    assert ("Parquet SCAN" in plan_text) is sinks


class Folders(dg.IOManager):
    """A file for each partition, below a folder for each asset."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, context: Any) -> Path:
        folder = self.root / context.asset_key.path[-1]
        folder.mkdir(exist_ok=True)
        return Path(f"{folder}/{context.asset_partition_key}.parquet")

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        obj.write_parquet(self.path(context))

    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        path = self.path(context)
        if not path.exists():
            raise FileNotFoundError(str(path))
        return pl.read_parquet(path)


def test_a_partition_key_that_leaves_the_folder_shares_no_address(tmp_path: Path) -> None:
    days = dg.StaticPartitionsDefinition(["mon", "../x"])
    asset = orders(DIRTY, partitions_def=days)
    assert materialize(Folders(tmp_path), asset, partition_key="mon").success
    with pytest.raises(QuarantineAddressError):
        materialize(Folders(tmp_path), asset, partition_key="../x")
    assert [path.name for path in tmp_path.glob("*.parquet")] == []


class Forgetful(Positions):
    """Says something else each time, whatever it is asked for."""

    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        self.loads += 1
        message = f"nothing, for the {self.loads}. time"
        raise FileNotFoundError(message)


def test_other_words_are_no_shared_address() -> None:
    assert materialize(Forgetful(), orders(DIRTY)).success
