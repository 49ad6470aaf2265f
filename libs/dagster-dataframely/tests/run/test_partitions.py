"""A partitioned asset: its checks, counts, files and fan-ins are per partition."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster import AssetExecutionContext
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Execute
from support.storage import FileIOManager, Store

import dagster_dataframely as dd


class Trips(dy.Schema):
    """One rule is enough to set rows aside."""

    id = dy.Int64(nullable=True)
    km = dy.Int64(nullable=True, min=0)


CLEAN = pl.DataFrame({"id": [1, 2, 3], "km": [1, 2, 3]})
"""No rule fails."""

DIRTY = pl.DataFrame({"id": [4, 5, 6], "km": [4, -5, 6]})
"""One error row between two valid ones."""

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-04")
CITIES = dg.StaticPartitionsDefinition(["rome", "oslo"])
GRID = dg.MultiPartitionsDefinition({"day": DAYS, "city": CITIES})

# The dimensions are named so that their order by name is not the order of the declaration.
DAY_1_OSLO = dg.MultiPartitionKey({"day": "2026-01-01", "city": "oslo"})
DAY_1_ROME = dg.MultiPartitionKey({"day": "2026-01-01", "city": "rome"})
DAY_2_OSLO = dg.MultiPartitionKey({"day": "2026-01-02", "city": "oslo"})

PARTITIONS = [
    pytest.param(DAYS, "2026-01-01", "2026-01-02", id="days"),
    pytest.param(CITIES, "rome", "oslo", id="static"),
    pytest.param(GRID, DAY_1_OSLO, DAY_2_OSLO, id="grid"),
]


def by_partition(context: AssetExecutionContext) -> pl.DataFrame:
    """The clean frame for the first key of each kind of partitions, and else the dirty one."""
    return CLEAN if context.partition_key in {"2026-01-01", "rome", DAY_1_OSLO} else DIRTY


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
