"""Checks of a stored table with partitions: one of them, a range, or all."""

import dagster as dg
import pytest
from support.storage import Store
from support.stored_trips import CHECKS, CLEAN, DAYS, DIRTY, DRIFTED, FAILED, Trips, table

import dagster_dataframely as dd

GRID = dg.MultiPartitionsDefinition(
    {"day": DAYS, "city": dg.StaticPartitionsDefinition(["rome", "oslo"])}
)


BY_DAY = {"mon": DIRTY, "tue": CLEAN, "thu": DIRTY[2:]}
"""Wednesday is never materialized."""


@pytest.fixture
def days(store: Store) -> dg.AssetsDefinition:
    trips = table(BY_DAY, partitions_def=DAYS)
    for day in BY_DAY:
        assert store.materialize(trips, partition_key=day).success
    return trips


def test_a_run_with_a_partition_checks_that_partition(store: Store) -> None:
    trips = table(BY_DAY, partitions_def=DAYS)
    checks = dd.build_rule_checks(Trips, asset=trips)
    assert [spec.partitions_def for spec in checks.check_specs] == [DAYS] * len(CHECKS)
    for day, failed in {"mon": FAILED, "tue": {}}.items():
        result = store.materialize(trips, checks, partition_key=day)
        assert (set(store.found(result, day)), store.failures(result, day)) == (set(CHECKS), failed)
        assert store.found(result) == {}
    assert store.failures(store.check(checks, trips, partition="mon"), "mon") == FAILED
    assert store.statuses("trips", "dy_rule__km__min") == {"mon": "FAILED", "tue": "SUCCEEDED"}


def test_a_run_without_a_partition_checks_each_that_is_materialized(
    store: Store, days: dg.AssetsDefinition
) -> None:
    checks = dd.build_rule_checks(Trips, asset=days)
    result = store.check(checks, days)
    by_day = {day: store.failures(result, day) for day in ("mon", "tue", "wed", "thu")}
    assert by_day == {"mon": FAILED, "tue": {}, "wed": {}, "thu": {"dy_rule__city__max_length": 1}}
    assert store.found(result, "wed") == {}
    columns = {"dy_partitions": 3, "dy_failed_partitions": 0, "dy_severity": "error"}
    sums = {**columns, "dy_failed_count": 0}
    assert store.found(result) == {
        "dy_schema__columns": (True, "ERROR", columns),
        "dy_rule__id__nullability": (True, "ERROR", sums),
        "dy_rule__km__min": (
            False,
            "ERROR",
            sums | {"dy_failed_count": 2, "dy_failed_partitions": 1},
        ),
        "dy_rule__city__max_length": (
            False,
            "WARN",
            sums | {"dy_failed_count": 2, "dy_failed_partitions": 2, "dy_severity": "warn"},
        ),
        "dy_rule__primary_key": (
            False,
            "ERROR",
            sums | {"dy_failed_count": 2, "dy_failed_partitions": 1},
        ),
    }
    said = {
        e.check_name: e.description for e in result.get_asset_check_evaluations() if not e.partition
    }
    assert said["dy_rule__id__nullability"] == "Passes in 3 partitions"
    assert said["dy_rule__city__max_length"] == "Fails in 2 of 3 partitions"
    assert store.statuses("trips", "dy_rule__city__max_length") == {
        None: "FAILED",
        "mon": "FAILED",
        "tue": "SUCCEEDED",
        "thu": "FAILED",
    }


def test_each_evaluation_is_about_the_partitions_latest_materialization(
    store: Store, days: dg.AssetsDefinition
) -> None:
    store.check(dd.build_rule_checks(Trips, asset=days), days)
    key = dg.AssetCheckKey(days.key, "dy_rule__km__min")
    infos = store.instance.event_log_storage.get_asset_check_partition_info([key])
    current = {info.partition_key: info.is_current for info in infos if info.partition_key}
    assert current == {"mon": True, "tue": True, "thu": True}


def test_a_range_of_partitions_has_an_evaluation_for_each(
    store: Store, days: dg.AssetsDefinition
) -> None:
    checks = dd.build_rule_checks(Trips, asset=days)
    tags = {"asset_partition_range_start": "mon", "asset_partition_range_end": "wed"}
    result = store.check(checks, days, **tags)
    assert [store.failures(result, day) for day in DAYS.get_partition_keys()] == [
        FAILED,
        {},
        {},
        {},
    ]
    assert store.found(result) == {}
    assert [day for day in DAYS.get_partition_keys() if store.found(result, day)] == ["mon", "tue"]


def test_without_a_materialized_partition_every_check_passes(store: Store) -> None:
    trips = table(BY_DAY, partitions_def=DAYS)
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.check(checks, trips)
    nothing = {"dy_partitions": 0, "dy_failed_partitions": 0, "dy_failed_count": 0}
    assert store.found(result) == dict.fromkeys(CHECKS, (True, "ERROR", nothing))


def test_a_partition_with_other_columns_does_not_hide_the_next(store: Store) -> None:
    by_day = {"mon": DRIFTED, "tue": DIRTY, "wed": DRIFTED.drop("city")}
    trips = table(by_day, partitions_def=DAYS)
    for day in by_day:
        assert store.materialize(trips, partition_key=day).success
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.check(checks, trips)
    name, message = store.error_of(result)
    assert (name, "`city`" in message) == ("ColumnSchemaError", False)
    assert (
        set(store.found(result, "mon")) == set(store.found(result, "wed")) == {"dy_schema__columns"}
    )
    assert store.failures(result, "tue") == FAILED
    assert store.found(result) == {}


def test_a_grid_is_checked_cell_by_cell(store: Store) -> None:
    cells = {"rome|mon": DIRTY, "oslo|tue": CLEAN}
    trips = table(cells, partitions_def=GRID)
    checks = dd.build_rule_checks(Trips, asset=trips)
    for cell, failed in {"rome|mon": FAILED, "oslo|tue": {}}.items():
        city, day = cell.split("|")
        key = dg.MultiPartitionKey({"city": city, "day": day})
        assert store.failures(store.materialize(trips, checks, partition_key=key), cell) == failed
    result = store.check(checks, trips)
    assert {cell: store.failures(result, cell) for cell in cells} == {
        "rome|mon": FAILED,
        "oslo|tue": {},
    }


def test_dynamic_partitions(store: Store) -> None:
    partitions = dg.DynamicPartitionsDefinition(name="cities")
    store.instance.add_dynamic_partitions("cities", ["rome"])
    trips = table({"rome": DIRTY}, partitions_def=partitions)
    store.materialize(trips, partition_key="rome")
    result = store.check(dd.build_rule_checks(Trips, asset=trips), trips)
    assert store.failures(result, "rome") == FAILED


def test_a_key_with_partitions_has_partitioned_specs(
    store: Store, days: dg.AssetsDefinition
) -> None:
    checks = dd.build_rule_checks(Trips, asset="trips", partitions_def=DAYS)
    assert store.failures(store.check(checks, days), "mon") == FAILED


def test_checks_of_an_unpartitioned_asset_in_a_run_with_a_partition(store: Store) -> None:
    trips = table(DIRTY)
    fares = dg.asset(name="fares", partitions_def=DAYS)(lambda: CLEAN)
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.materialize(trips, fares, checks, partition_key="mon")
    assert store.failures(result) == FAILED
