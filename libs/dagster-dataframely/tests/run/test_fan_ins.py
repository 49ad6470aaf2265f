"""Partitions of a table, and of its error rows, are inputs of other assets."""

from typing import Any

import dagster as dg
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Execute
from support.storage import FileIOManager
from support.trips import (
    CLEAN,
    DAY_1_OSLO,
    DAY_2_OSLO,
    DAYS,
    DIRTY,
    GRID,
    Trips,
    by_partition,
)

import dagster_dataframely as dd

DAY_1_ROME = dg.MultiPartitionKey({"day": "2026-01-01", "city": "rome"})


@pytest.mark.parametrize("frame_type", [pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize(
    ("partitions_def", "keys", "key_type"),
    [
        pytest.param(DAYS, ["2026-01-01", "2026-01-02"], str, id="days"),
        pytest.param(GRID, [DAY_1_OSLO, DAY_2_OSLO], dg.MultiPartitionKey, id="grid"),
    ],
)
def test_an_unpartitioned_asset_fans_in_over_every_partition(
    run: Execute,
    instance: dg.DagsterInstance,
    files: FileIOManager,
    frame_type: type[pl.DataFrame | pl.LazyFrame],
    partitions_def: dg.PartitionsDefinition[Any],
    keys: list[str],
    key_type: type,
) -> None:
    trips = declare(Trips, by_partition, partitions_def=partitions_def, quarantine=True)
    seen: dict[object, type] = {}

    def body(trips: dict[Any, Any]) -> object:
        seen.update({key: type(frame) for key, frame in trips.items()})
        assert {type(key) for key in trips} == {key_type}
        return pl.concat(frame for _, frame in sorted(trips.items()))

    body.__annotations__["trips"] = dict.__class_getitem__((key_type, frame_type))
    fan_in = dd.asset(Trips, name="fan_in")(body)
    for key in keys:
        run(trips, partition_key=key)
    result = dg.materialize(
        [trips, fan_in],
        selection=[fan_in],
        instance=instance,
        resources={"io_manager": files},
    )
    assert result.success
    assert seen == dict.fromkeys(keys, frame_type)
    table = files.read(["fan_in"])
    assert table is not None
    assert_frame_equal(table, pl.concat([CLEAN, DIRTY.filter(pl.col("km") > 0)]))


@pytest.mark.filterwarnings(
    "ignore:Class `MultiToSingleDimensionPartitionMapping`:dagster.BetaWarning"
)
def test_one_dimension_fans_in_over_the_other(
    run: Execute, instance: dg.DagsterInstance, files: FileIOManager
) -> None:
    trips = declare(Trips, by_partition, partitions_def=GRID, quarantine=True)

    @dd.asset(
        Trips,
        partitions_def=DAYS,
        ins={
            "trips": dg.AssetIn(partition_mapping=dg.MultiToSingleDimensionPartitionMapping("day"))
        },
    )
    def by_day(trips: dict[dg.MultiPartitionKey, pl.LazyFrame]) -> pl.LazyFrame:
        assert set(trips) == {DAY_1_OSLO, DAY_1_ROME}
        return pl.concat(trips[key] for key in sorted(trips))

    for key in (DAY_1_OSLO, DAY_1_ROME, DAY_2_OSLO):
        assert run(trips, partition_key=key).success
    result = dg.materialize(
        [trips, by_day],
        selection=[by_day],
        instance=instance,
        resources={"io_manager": files},
        partition_key="2026-01-01",
    )
    assert result.success
    table = files.read(["by_day"], "2026-01-01")
    assert table is not None
    assert_frame_equal(table, pl.concat([CLEAN, DIRTY.filter(pl.col("km") > 0)]))


@pytest.mark.io_managers
@pytest.mark.parametrize("partitions_def", [DAYS, GRID], ids=["days", "grid"])
def test_a_fan_in_loads_through_the_released_parquet_manager(
    instance: dg.DagsterInstance, tmp_path: Any, partitions_def: dg.PartitionsDefinition[Any]
) -> None:
    from dagster_polars import PolarsParquetIOManager

    trips = declare(Trips, by_partition, partitions_def=partitions_def, quarantine=True)
    resources = {"io_manager": PolarsParquetIOManager(base_dir=str(tmp_path))}
    key_type = str if partitions_def is DAYS else dg.MultiPartitionKey
    keys: list[str] = ["2026-01-01", "2026-01-02"] if key_type is str else [DAY_1_OSLO, DAY_2_OSLO]

    def body(trips: dict[Any, Any]) -> object:
        assert [*trips] == keys
        return pl.concat(trips.values())

    body.__annotations__["trips"] = dict.__class_getitem__((key_type, pl.LazyFrame))
    fan_in = dd.asset(
        Trips,
        name="fan_in",
        ins={"trips": dg.AssetIn(metadata={"allow_missing_partitions": True})},
    )(body)
    for key in keys:
        dg.materialize([trips], instance=instance, resources=resources, partition_key=key)
    result = dg.materialize(
        [trips, fan_in], selection=[fan_in], instance=instance, resources=resources
    )
    assert result.success
    assert_frame_equal(
        pl.read_parquet(tmp_path / "fan_in.parquet"),
        pl.concat([CLEAN, DIRTY.filter(pl.col("km") > 0)]),
    )


def test_a_partitioned_quarantine_fans_in_through_its_spec(
    run: Execute, instance: dg.DagsterInstance, files: FileIOManager
) -> None:
    trips = declare(Trips, by_partition, partitions_def=DAYS, quarantine=True)
    spec = dd.build_quarantine_spec(Trips, trips)
    loaded: dict[str, pl.DataFrame] = {}

    @dg.asset
    def report(trips_quarantine: dict[str, pl.DataFrame]) -> None:
        loaded.update(trips_quarantine)

    for key in ("2026-01-01", "2026-01-02", "2026-01-03"):
        run(trips, partition_key=key)
    dg.materialize(
        [trips, spec, report],
        selection=[report],
        instance=instance,
        resources={"io_manager": files},
    )
    assert list(loaded) == ["2026-01-02", "2026-01-03"]
    expected = DIRTY[1:2].with_columns(dy_rule__km__min=pl.lit("invalid"))
    assert_frame_equal(loaded["2026-01-02"], expected)
