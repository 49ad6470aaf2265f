"""Table and quarantine go through the IO manager the asset is bound to, whichever it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Materialize
from support.sales import DAYS, ERROR_ROWS, SALES, SURVIVORS, Sales
from support.storage import FileIOManager

import dagster_dataframely as dd

GRID = dg.MultiPartitionsDefinition(
    {"region": dg.StaticPartitionsDefinition(["eu", "us"]), "day": DAYS}
)


ReadBack = Callable[..., tuple[Any, ...]]


@pytest.fixture
def read_back(instance: dg.DagsterInstance) -> ReadBack:
    """Table and quarantine of an asset, as a downstream asset loads them."""

    def read_back(
        asset: dg.AssetsDefinition,
        manager: object,
        partition_key: str | None = None,
        *,
        frame_type: type = pl.DataFrame,
    ) -> tuple[Any, ...]:
        seen: list[Any] = []

        def report(table: Any, quarantine: Any) -> None:
            seen.extend([table, quarantine])

        report.__annotations__.update(table=frame_type, quarantine=frame_type)
        spec = dd.build_quarantine_spec(Sales, asset)
        reader = dg.asset(
            partitions_def=asset.partitions_def,
            ins={"table": dg.AssetIn(key=asset.key), "quarantine": dg.AssetIn(key=spec.key)},
        )(report)
        dg.materialize(
            [asset, spec, reader],
            selection=[reader],
            instance=instance,
            resources={"io_manager": manager},
            partition_key=partition_key,
        )
        return tuple(seen)

    return read_back


@pytest.mark.parametrize(
    ("prefix", "frame"), [([], SALES), (["shop"], SALES.lazy())], ids=["eager", "prefix, lazy"]
)
def test_table_and_quarantine_are_read_back_through_the_manager(
    manager: object,
    materialize: Materialize,
    read_back: ReadBack,
    prefix: list[str],
    frame: pl.DataFrame | pl.LazyFrame,
) -> None:
    sales = declare(Sales, frame, quarantine=True, key_prefix=prefix or None)
    assert materialize(sales, manager).success
    table, quarantine = read_back(sales, manager)
    assert_frame_equal(table, SURVIVORS)
    assert_frame_equal(quarantine, ERROR_ROWS)


def test_the_columns_tab_is_the_same_before_and_after_a_run(
    manager: object, materialize: Materialize, instance: dg.DagsterInstance
) -> None:
    sales = declare(Sales, SALES, quarantine=True)
    materialize(sales, manager)
    event = instance.get_latest_materialization_event(dg.AssetKey("sales"))
    assert event is not None
    assert event.asset_materialization is not None
    stored = event.asset_materialization.metadata["dagster/column_schema"].value
    assert stored == dd.wiring.table_schema(Sales)
    assert stored == sales.metadata_by_key[sales.key]["dagster/column_schema"]


def test_the_quarantine_key_emits_no_event(
    manager: object, materialize: Materialize, instance: dg.DagsterInstance
) -> None:
    result = materialize(declare(Sales, SALES, quarantine=True), manager)
    assert instance.get_asset_keys() == [dg.AssetKey("sales")]
    logs = instance.all_logs(result.run_id)
    assert {log.dagster_event.asset_key for log in logs if log.dagster_event} == {
        None,
        dg.AssetKey("sales"),
    }
    assert instance.get_latest_materialization_event(dg.AssetKey("sales_quarantine")) is None


def test_the_manager_sees_the_same_output_but_for_the_key(
    materialize: Materialize, instance: dg.DagsterInstance
) -> None:
    seen: list[dict[str, Any]] = []

    class Recorder(dg.ConfigurableIOManager):
        level: int

        def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
            config = context.resource_config or {}
            seen.append(
                {
                    "key": context.asset_key,
                    "partition": context.asset_partition_key,
                    "definition_metadata": context.definition_metadata,
                    "spec": context.asset_spec.replace_attributes(key="any"),
                    "level": config["level"],
                    "type": context.dagster_type,
                    "names": [context.step_key, context.name, context.op_def.name],
                    "rows": obj.height,
                }
            )

        def load_input(self, context: dg.InputContext) -> None: ...

    sales = declare(
        Sales,
        SALES,
        quarantine=True,
        partitions_def=DAYS,
        metadata={"mine": 1, "partition_expr": "day"},
    )
    materialize(sales, Recorder(level=3), "mon")
    quarantine, table = seen
    assert quarantine["key"] == dg.AssetKey("sales_quarantine")
    assert quarantine["level"] == 3
    assert quarantine["definition_metadata"]["partition_expr"] == "day"
    assert quarantine["names"] == [f"{name}_quarantine" for name in table["names"]]
    assert table == {**quarantine, "key": dg.AssetKey("sales"), "names": table["names"]}


def test_the_quarantine_is_written_before_the_table(
    files: FileIOManager, materialize: Materialize
) -> None:
    class FailsOnTheTable(type(files)):  # type: ignore[misc]
        def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
            if context.asset_key.path[-1] == "sales":
                raise OSError
            super().handle_output(context, obj)

    with pytest.raises(OSError, match=r"^$"):
        materialize(declare(Sales, SALES, quarantine=True), FailsOnTheTable(files.root))
    assert files.files == ["sales_quarantine.parquet"]


def test_a_manager_that_cannot_write_the_quarantine_fails_the_run(
    files: FileIOManager, materialize: Materialize
) -> None:
    class FailsOnTheQuarantine(type(files)):  # type: ignore[misc]
        def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
            if context.asset_key.path[-1] == "sales_quarantine":
                raise OSError
            super().handle_output(context, obj)

    with pytest.raises(OSError, match=r"^$"):
        materialize(declare(Sales, SALES, quarantine=True), FailsOnTheQuarantine(files.root))
    assert files.files == []


@pytest.mark.filterwarnings("ignore:Parameter `io_manager_def`:dagster.BetaWarning")
@pytest.mark.parametrize("how", ["io_manager_key", "io_manager_def"])
def test_the_quarantine_goes_to_the_manager_the_asset_names(
    files: FileIOManager, instance: dg.DagsterInstance, how: str
) -> None:
    bound = {"io_manager_key": "lake"} if how == "io_manager_key" else {"io_manager_def": files}
    resources: dict[str, object] = {"io_manager": dg.mem_io_manager}
    result = dg.materialize(
        [declare(Sales, SALES, quarantine=True, **bound)],
        instance=instance,
        resources=resources | ({"lake": files} if how == "io_manager_key" else {}),
    )
    assert result.success
    assert files.files == ["sales.parquet", "sales_quarantine.parquet"]


def test_a_quarantine_spec_loads_from_the_manager_the_asset_names(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    loaded: list[pl.DataFrame] = []

    @dg.asset
    def report(sales_quarantine: pl.DataFrame) -> None:
        loaded.append(sales_quarantine)

    sales = declare(Sales, SALES, quarantine=True, io_manager_key="lake", group_name="shop")
    spec = dd.build_quarantine_spec(Sales, sales)
    assert spec.group_name == "shop"
    resources = {"io_manager": dg.mem_io_manager, "lake": files}
    dg.materialize([sales], instance=instance, resources=resources)
    dg.materialize([spec, report], instance=instance, resources=resources)
    assert_frame_equal(loaded[0], ERROR_ROWS)


@pytest.mark.parametrize("frame_type", [pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize("name", ["files", pytest.param("parquet", marks=pytest.mark.io_managers)])
def test_a_downstream_asset_loads_the_quarantine_as_it_asks(
    request: pytest.FixtureRequest,
    materialize: Materialize,
    read_back: ReadBack,
    name: str,
    frame_type: type,
) -> None:
    manager = request.getfixturevalue(name)
    sales = declare(Sales, SALES, quarantine=True)
    materialize(sales, manager)
    _, quarantine = read_back(sales, manager, frame_type=frame_type)
    assert isinstance(quarantine, (pl.DataFrame, pl.LazyFrame))
    assert type(quarantine) is frame_type
    assert_frame_equal(quarantine.lazy().collect(), ERROR_ROWS)


@pytest.mark.parametrize("partitions", ["days", "grid"])
def test_each_partition_has_its_own_table_and_quarantine(
    manager: object, materialize: Materialize, read_back: ReadBack, partitions: str
) -> None:
    @dd.asset(
        Sales,
        quarantine=True,
        partitions_def=DAYS if partitions == "days" else GRID,
        metadata={
            "partition_expr": "day" if partitions == "days" else {"day": "day", "region": "region"}
        },
    )
    def sales(context: dg.AssetExecutionContext) -> pl.DataFrame:
        key = context.partition_key
        if isinstance(key, dg.MultiPartitionKey):
            wanted = key.keys_by_dimension
            both_kinds = pl.concat(
                [SALES, SALES.with_columns(pl.col("id") + 10, amount=-pl.col("amount"))]
            )
            return both_kinds.filter(day=wanted["day"], region=wanted["region"])
        return SALES.filter(day=key)

    keys: list[str] = ["mon", "tue"]
    if partitions == "grid":
        keys = [
            dg.MultiPartitionKey({"day": "mon", "region": "us"}),
            dg.MultiPartitionKey({"day": "tue", "region": "us"}),
        ]
    for key in [*keys, keys[0]]:  # The second run of a partition replaces only what is its own.
        assert materialize(sales, manager, key).success
    for key, day in zip(keys, ["mon", "tue"], strict=True):
        table, quarantine = read_back(sales, manager, key)
        assert table["day"].to_list() == [day]
        assert table["amount"].to_list() >= [0.0]
        assert_frame_equal(quarantine, ERROR_ROWS.filter(day=day))


@pytest.mark.io_managers
def test_parquet_files_lie_side_by_side(
    parquet: object, materialize: Materialize, tmp_path: Path
) -> None:
    materialize(declare(Sales, SALES, quarantine=True), parquet)
    materialize(declare(Sales, SALES, quarantine=True, key_prefix="shop"), parquet)
    materialize(
        declare(Sales, SALES, quarantine=True, name="by_day", partitions_def=DAYS), parquet, "mon"
    )
    materialize(
        declare(Sales, SALES, quarantine=True, name="grid", partitions_def=GRID), parquet, "mon|us"
    )
    root = tmp_path / "storage"
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*.parquet")) == [
        "by_day/mon.parquet",
        "by_day_quarantine/mon.parquet",
        "grid/mon/us.parquet",
        "grid_quarantine/mon/us.parquet",
        "sales.parquet",
        "sales_quarantine.parquet",
        "shop/sales.parquet",
        "shop/sales_quarantine.parquet",
    ]


@pytest.mark.io_managers
def test_duckdb_tables_lie_side_by_side(
    duckdb: object, duckdb_file: Path, materialize: Materialize
) -> None:
    from duckdb import connect

    materialize(declare(Sales, SALES, quarantine=True), duckdb)
    materialize(declare(Sales, SALES, quarantine=True, key_prefix="shop"), duckdb)
    materialize(
        declare(
            Sales,
            SALES,
            quarantine=True,
            name="by_day",
            partitions_def=DAYS,
            metadata={"partition_expr": "day"},
        ),
        duckdb,
        "mon",
    )
    with connect(str(duckdb_file)) as connection:
        tables = connection.sql("select table_schema, table_name from information_schema.tables")
        assert sorted(tables.fetchall()) == [
            ("public", "by_day"),
            ("public", "by_day_quarantine"),
            ("public", "sales"),
            ("public", "sales_quarantine"),
            ("shop", "sales"),
            ("shop", "sales_quarantine"),
        ]
