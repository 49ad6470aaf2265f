"""A partitioned asset: its checks, counts and files are per partition."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster import AssetExecutionContext
from support.declare import declare
from support.execution import Execute
from support.storage import FileIOManager, Store
from support.trips import (
    CITIES,
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

PARTITIONS = [
    pytest.param(DAYS, "2026-01-01", "2026-01-02", id="days"),
    pytest.param(CITIES, "rome", "oslo", id="static"),
    pytest.param(GRID, DAY_1_OSLO, DAY_2_OSLO, id="grid"),
]


@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
@pytest.mark.parametrize("partitions_def", [None, DAYS, GRID], ids=["none", "days", "grid"])
def test_check_specs_carry_the_partitions_of_their_asset(
    partitions_def: dg.PartitionsDefinition[Any] | None, granularity: str
) -> None:
    specs = [
        *declare(
            Trips,
            by_partition,
            partitions_def=partitions_def,
            quarantine=True,
            check_granularity=granularity,
        ).check_specs
    ]
    assert len(specs) == 2
    assert [spec.partitions_def for spec in specs] == [partitions_def] * 2


@pytest.mark.parametrize(("partitions_def", "clean_key", "dirty_key"), PARTITIONS)
def test_evaluations_carry_the_partition_of_their_run(
    run: Execute,
    instance: dg.DagsterInstance,
    partitions_def: dg.PartitionsDefinition[Any],
    clean_key: str,
    dirty_key: str,
) -> None:
    trips = declare(Trips, by_partition, partitions_def=partitions_def, quarantine=True)
    seen: dict[str, set[tuple[str | None, bool]]] = {}
    for key in (clean_key, dirty_key):
        for event in run(trips, partition_key=key).events:
            if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                evaluation = event.asset_check_evaluation_data
                found = (evaluation.partition, evaluation.passed)
                seen.setdefault(evaluation.check_name, set()).add(found)
    assert seen == {
        "dy_schema__columns": {(clean_key, True), (dirty_key, True)},
        "dy_rule__km__min": {(clean_key, True), (dirty_key, False)},
    }


@pytest.mark.parametrize(("partitions_def", "clean_key", "dirty_key"), PARTITIONS)
def test_counts_are_those_of_the_partition_that_was_written(
    execute: Execute,
    partitions_def: dg.PartitionsDefinition[Any],
    clean_key: str,
    dirty_key: str,
) -> None:
    trips = declare(Trips, by_partition, partitions_def=partitions_def, quarantine=True)
    names = ("dagster/row_count", "dagster/partition_row_count", "dataframely/error_rows")
    counted = {}
    for key in (clean_key, dirty_key):
        outcome = execute(trips, partition_key=key)
        assert outcome.metadata is not None
        counted[key] = tuple(outcome.metadata[name] for name in names)
    assert counted == {clean_key: (3, 3, 0), dirty_key: (2, 2, 1)}


def test_an_asset_without_partitions_has_no_partition_row_count(execute: Execute) -> None:
    @dd.asset(Trips)
    def trips() -> pl.DataFrame:
        return CLEAN

    metadata = execute(trips).metadata
    assert metadata is not None
    assert metadata["dagster/row_count"] == 3
    assert "dagster/partition_row_count" not in metadata


class Pair(dy.Collection):
    """Two members that are one table each."""

    trips: dy.LazyFrame[Trips]
    others: dy.LazyFrame[Trips]


def as_one(returned: pl.DataFrame | None) -> dg.AssetsDefinition:
    return declare(Trips, returned, deps=["day"], quarantine=True)


def as_member(returned: pl.DataFrame | None) -> dg.AssetsDefinition:
    frames = None if returned is None else {"trips": returned, "others": CLEAN}
    return declare(Pair, frames, quarantine=True)


@pytest.mark.parametrize("returned", [CLEAN, DIRTY, None], ids=["clean", "dirty", "skip"])
@pytest.mark.parametrize("declare_whole", [as_one, as_member])
@pytest.mark.parametrize(
    "tags",
    [
        {"dagster/partition": "rome"},
        {
            "dagster/asset_partition_range_start": "rome",
            "dagster/asset_partition_range_end": "oslo",
        },
    ],
    ids=["one", "range"],
)
def test_an_asset_without_partitions_is_whole_beside_one_that_has_some(
    store: Store,
    declare_whole: Callable[[pl.DataFrame | None], dg.AssetsDefinition],
    returned: pl.DataFrame | None,
    tags: dict[str, str],
) -> None:
    @dg.asset(partitions_def=CITIES)
    def day() -> None: ...

    result = store.materialize(day, declare_whole(returned), tags=tags)
    assert result.success
    check = "dy_rule__km__min"
    status = "FAILED" if returned is DIRTY else "SUCCEEDED"
    assert store.statuses("trips", check) == {None: status}
    event = store.instance.get_latest_materialization_event(dg.AssetKey("trips"))
    if returned is None:
        assert event is None
        return
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert "dagster/partition_row_count" not in metadata
    if returned is DIRTY:
        address = metadata["dataframely/quarantine_address"].value
        assert address == f"trips_quarantine at {store.files.root / 'trips_quarantine.parquet'}"
    assert store.files.read("trips") is not None


@pytest.mark.parametrize(("partitions_def", "clean_key", "dirty_key"), PARTITIONS)
def test_the_quarantine_lies_under_the_same_partition(
    run: Execute,
    files: FileIOManager,
    partitions_def: dg.PartitionsDefinition[Any],
    clean_key: str,
    dirty_key: str,
) -> None:
    trips = declare(
        Trips, by_partition, partitions_def=partitions_def, quarantine=True, key_prefix="city"
    )
    for key in (clean_key, dirty_key):
        assert run(trips, partition_key=key).success
    clean, dirty = (str(key).replace("|", "/") for key in (clean_key, dirty_key))
    assert set(files.files) == {
        f"city/trips/{clean}.parquet",
        f"city/trips/{dirty}.parquet",
        f"city/trips_quarantine/{dirty}.parquet",
    }
    outcome = run(trips, partition_key=dirty_key)
    outcome.assert_stored(
        table=DIRTY.filter(pl.col("km") > 0),
        quarantine=DIRTY[1:2].with_columns(dy_rule__km__min=pl.lit("invalid")),
    )


def test_the_address_names_key_and_partition(run: Execute, files: FileIOManager) -> None:
    metadata = run(
        declare(Trips, by_partition, partitions_def=DAYS, quarantine=True),
        partition_key="2026-01-02",
    ).metadata
    assert metadata is not None
    address = metadata["dataframely/quarantine_address"]
    assert "trips_quarantine" in address
    assert "2026-01-02" in address


@pytest.mark.parametrize(("partitions_def", "clean_key", "dirty_key"), PARTITIONS)
def test_a_call_writes_error_rows_under_the_partition(
    call: Execute,
    partitions_def: dg.PartitionsDefinition[Any],
    clean_key: str,
    dirty_key: str,
) -> None:
    trips = declare(Trips, by_partition, partitions_def=partitions_def, quarantine=True)
    assert call(trips, partition_key=clean_key).quarantine is None
    outcome = call(trips, partition_key=dirty_key)
    outcome.assert_stored(
        table=DIRTY.filter(pl.col("km") > 0),
        quarantine=DIRTY[1:2].with_columns(dy_rule__km__min=pl.lit("invalid")),
    )


def test_none_leaves_its_partition_unmaterialized(
    run: Execute, instance: dg.DagsterInstance, files: FileIOManager
) -> None:
    @dd.asset(Trips, partitions_def=DAYS)
    def trips(context: AssetExecutionContext) -> pl.DataFrame | None:
        return CLEAN if context.partition_key == "2026-01-01" else None

    outcomes = [run(trips, partition_key=key) for key in ("2026-01-01", "2026-01-02")]
    assert [outcome.success for outcome in outcomes] == [True, True]
    assert [outcome.failed for outcome in outcomes] == [{}, {}]
    assert instance.get_materialized_partitions(trips.key) == {"2026-01-01"}
    assert files.files == ["trips/2026-01-01.parquet"]


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")
# Dagster 1.13 calls it where an evaluation without a partition meets a planned one with a partition.
@pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp:DeprecationWarning")
def test_one_run_over_a_range_writes_table_and_quarantine_for_the_range(
    instance: dg.DagsterInstance,
) -> None:
    written: list[tuple[str, set[str], int]] = []

    class Recorder(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
            keys = {*context.asset_partition_keys}
            written.append((context.asset_key.to_user_string(), keys, obj.height))

        def load_input(self, context: dg.InputContext) -> None: ...

    @dd.asset(
        Trips,
        quarantine=True,
        partitions_def=DAYS,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def trips(context: AssetExecutionContext) -> pl.DataFrame:
        assert context.partition_keys == ["2026-01-01", "2026-01-02"]
        return DIRTY

    result = dg.materialize(
        [trips],
        instance=instance,
        resources={"io_manager": Recorder()},
        tags={
            "dagster/asset_partition_range_start": "2026-01-01",
            "dagster/asset_partition_range_end": "2026-01-02",
        },
    )
    assert result.success
    keys = {"2026-01-01", "2026-01-02"}
    assert written == [("trips_quarantine", keys, 1), ("trips", keys, 2)]
    assert instance.get_materialized_partitions(trips.key) == keys
