"""One run over several partitions says of each what it would say of one."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.execution import Materialize

import dagster_dataframely as dd

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-05", timezone="America/Denver")


CITIES = dg.StaticPartitionsDefinition(["oslo", "rome", "riga"])


GRID = dg.MultiPartitionsDefinition({"on": DAYS, "city": CITIES})


class Trips(dy.Schema):
    """Columns to partition by, an error rule, a warn rule and a rule over the whole table."""

    day = dy.Date(nullable=True)
    at = dy.Datetime(nullable=True, time_zone="UTC")
    city = dy.String(nullable=True)
    km = dy.Int64(nullable=True, min=0, max=9, metadata=dd.severity(max="warn"))

    @dd.rule(severity="warn")
    def many(cls) -> pl.Expr:
        return pl.len() > 100


def trips(*rows: tuple[int, str, int]) -> pl.DataFrame:
    """Rows by day of January, city and kilometres; late in the evening, when UTC has the next day."""
    return pl.DataFrame(
        {
            "day": [dt.date(2026, 1, day) for day, _, _ in rows],
            "at": [dt.datetime(2026, 1, day + 1, 5, 30, tzinfo=dt.UTC) for day, _, _ in rows],
            "city": [city for _, city, _ in rows],
            "km": [km for _, _, km in rows],
        },
        schema=Trips.create_empty().schema,
    )


DIRTY = trips((1, "oslo", 1), (2, "oslo", -2), (2, "rome", 3), (2, "rome", 10), (4, "rome", -5))
"""Day 1 is clean, day 2 has an error row and a warn row, day 3 has no row, day 4 is not in the range."""


RANGES: list[Any] = [
    pytest.param(DAYS, "day", ("2026-01-01", "2026-01-03"), id="date"),
    pytest.param(DAYS, "at", ("2026-01-01", "2026-01-03"), id="time zone"),
    pytest.param(CITIES, "city", ("oslo", "riga"), id="static"),
    pytest.param(
        GRID,
        {"on": "day", "city": "city"},
        ("oslo|2026-01-01", "rome|2026-01-02"),
        id="grid",
    ),
]


EXPECTED = {
    "2026-01-01": ((1, 1), {}),
    "2026-01-02": ((3, 2), {"km|min": 1, "km|max": 1}),
    "2026-01-03": ((0, 0), {}),
    "oslo": ((2, 1), {"km|min": 1}),
    "rome": ((3, 2), {"km|min": 1, "km|max": 1}),
    "riga": ((0, 0), {}),
    "oslo|2026-01-01": ((1, 1), {}),
    "oslo|2026-01-02": ((1, 0), {"km|min": 1}),
    "rome|2026-01-01": ((0, 0), {}),
    "rome|2026-01-02": ((2, 2), {"km|max": 1}),
}
"""For each partition: rows in and written, and the rules that rows fail."""


def evaluation_in(entry: Any) -> dg.AssetCheckEvaluation:
    evaluation: dg.AssetCheckEvaluation = entry.dagster_event.event_specific_data
    return evaluation


def failures(instance: dg.DagsterInstance) -> dict[str | None, dict[str, int]]:
    """By partition, the rules that rows fail and how many; fails where a check is left planned."""
    found: dict[str | None, dict[str, int]] = {}
    records = instance.event_log_storage.get_records_for_run(
        instance.get_run_records()[0].dagster_run.run_id,
        of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    ).records
    for record in records:
        evaluation = evaluation_in(record.event_log_entry)
        by_rule = found.setdefault(evaluation.partition, {})
        if "dy_rule" in evaluation.metadata and not evaluation.passed:
            values: Any = {key: value.value for key, value in evaluation.metadata.items()}
            by_rule[values["dy_rule"]] = values["dy_failed_count"]
    return found


def still_planned(instance: dg.DagsterInstance, asset: dg.AssetsDefinition) -> list[Any]:
    return [
        (key.name, record.partition)
        for key in asset.check_keys
        for record in instance.event_log_storage.get_asset_check_execution_history(key, limit=99)
        if record.status.value == "PLANNED"
    ]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("partitions_def", "expression", "span"), RANGES)
def test_each_partition_has_its_row_counts_and_evaluations(
    run_range: Callable[..., dg.ExecuteInProcessResult],
    instance: dg.DagsterInstance,
    partitions_def: Any,
    expression: object,
    span: tuple[str, str],
    *,
    lazy: bool,
) -> None:
    asset = declare(
        Trips,
        DIRTY.lazy() if lazy else DIRTY,
        partitions_def=partitions_def,
        metadata={"partition_expr": expression},
        quarantine=True,
    )
    result = run_range(asset, span)
    assert result.success
    counts = {
        event.partition: event.metadata for event in result.asset_materializations_for_node("trips")
    }
    keys = ("dataframely/rows_in", "dataframely/rows_written")
    assert {
        partition: tuple(metadata[key].value for key in keys)
        for partition, metadata in counts.items()
    } == {partition: EXPECTED[partition or ""][0] for partition in counts}
    for metadata in counts.values():
        written = metadata["dataframely/rows_written"]
        assert metadata["dagster/row_count"] == written
        assert metadata["dagster/partition_row_count"] == written
    found = failures(instance)
    assert found.pop(None) == {"km|min": 2, "km|max": 1, "many": 1}
    assert found == {partition: EXPECTED[partition or ""][1] | {"many": 1} for partition in counts}
    assert still_planned(instance, asset) == []


@pytest.mark.parametrize(
    ("partitions_def", "expression", "span"),
    [
        pytest.param(CITIES, "lower(city)", ("oslo", "riga"), id="an expression"),
        pytest.param(CITIES, None, ("oslo", "riga"), id="none"),
        pytest.param(GRID, "city", ("oslo|2026-01-01", "oslo|2026-01-02"), id="grid, one column"),
        pytest.param(
            GRID, {"on": "day"}, ("oslo|2026-01-01", "oslo|2026-01-02"), id="grid, no city"
        ),
    ],
)
def test_where_the_columns_do_not_tell_each_partition_has_what_was_found_in_all(
    run_range: Callable[..., dg.ExecuteInProcessResult],
    instance: dg.DagsterInstance,
    partitions_def: Any,
    expression: object,
    span: tuple[str, str],
) -> None:
    asset = declare(
        Trips,
        DIRTY,
        partitions_def=partitions_def,
        metadata={"partition_expr": expression},
        quarantine=True,
    )
    result = run_range(asset, span)
    assert result.success
    found = failures(instance)
    assert len(found) > 2
    assert all(rules == {"km|min": 2, "km|max": 1, "many": 1} for rules in found.values())
    assert still_planned(instance, asset) == []
    (key,) = [key for key in asset.check_keys if key.name == "dy_rule__km__min"]
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=99)
    assert {
        evaluation_in(record.event).metadata["dy_evaluated_together"].value
        for record in history
        if record.partition
    } == {f"{span[0]} to {span[1]}"}


@pytest.mark.parametrize(
    ("returned", "quarantine", "error"),
    [
        pytest.param(None, True, None, id="skip"),
        pytest.param(DIRTY, False, "ValidationAbortError", id="abort"),
        pytest.param(DIRTY.filter(pl.col("km") < 0), True, "NothingSurvivedError", id="nothing"),
    ],
)
def test_no_check_of_a_partition_is_left_planned_on_any_exit(
    run_range: Callable[..., dg.ExecuteInProcessResult],
    instance: dg.DagsterInstance,
    returned: object,
    error: str | None,
    *,
    quarantine: bool,
) -> None:
    asset = declare(
        Trips,
        returned,
        partitions_def=CITIES,
        metadata={"partition_expr": "city"},
        quarantine=quarantine,
    )
    result = run_range(asset, ("oslo", "riga"))
    assert result.success is (error is None)
    assert still_planned(instance, asset) == []
    assert set(failures(instance)) == {None, "oslo", "rome", "riga"}


def test_other_columns_fail_the_check_of_columns_of_each_partition(
    run_range: Callable[..., dg.ExecuteInProcessResult], instance: dg.DagsterInstance
) -> None:
    asset = declare(
        Trips,
        DIRTY.drop("km"),
        partitions_def=CITIES,
        metadata={"partition_expr": "city"},
        quarantine=True,
    )
    assert not run_range(asset, ("oslo", "riga")).success
    (key,) = [key for key in asset.check_keys if key.name == "dy_schema__columns"]
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=99)
    assert {record.partition: record.status.value for record in history} == dict.fromkeys(
        [None, "oslo", "rome", "riga"], "FAILED"
    )


def test_partitions_that_got_no_row_are_named(
    run_range: Callable[..., dg.ExecuteInProcessResult], instance: dg.DagsterInstance
) -> None:
    metadata = {"partition_expr": "day"}
    asset = declare(Trips, DIRTY, partitions_def=DAYS, metadata=metadata, quarantine=True)
    result = run_range(asset, ("2026-01-01", "2026-01-03"))
    reports = {
        event.partition: str(event.metadata["dataframely/report"].value)
        for event in result.asset_materializations_for_node("trips")
    }
    assert {key for key, report in reports.items() if "No rows for" in report} == {"2026-01-03"}
    lines = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert "No rows for 1 partition of the range: 2026-01-03." in lines


@pytest.mark.io_managers
def test_duckdb_takes_a_range_and_its_quarantine(
    materialize: Materialize, instance: dg.DagsterInstance, duckdb: Any
) -> None:
    from duckdb import connect

    asset = declare(
        Trips,
        DIRTY[:4],
        partitions_def=CITIES,
        metadata={"partition_expr": "city"},
        quarantine=True,
    )
    dg.materialize(
        [asset],
        instance=instance,
        resources={"io_manager": duckdb},
        tags={
            "dagster/asset_partition_range_start": "oslo",
            "dagster/asset_partition_range_end": "riga",
        },
    )
    with connect(duckdb.database) as connection:
        tables = ["public.trips", "public.trips_quarantine"]
        found = [connection.execute(f"select km from {name}").fetchall() for name in tables]
    assert found == [[(1,), (3,), (10,)], [(-2,)]]
    assert failures(instance)["oslo"] == {"km|min": 1, "many": 1}
