"""The report of a run says what changed since the last one."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.execution import Execute
from support.reported_orders import CLEAN, DIRTY, NO_CHANGE, One, Orders, changes, wide

import dagster_dataframely as dd


def test_a_run_is_compared_with_the_one_before(run: Execute) -> None:
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) is None
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) == NO_CHANGE
    assert changes(run(declare(Orders, DIRTY, quarantine=True)).metadata) == (
        "999 rows fewer; 4 error rows more; newly failing "
        "`amount|min`, `note|max_length`, `primary_key`, `many`."
    )
    quiet = DIRTY.with_columns(note=pl.lit(None, pl.String))
    assert (
        changes(run(declare(Orders, quiet, quarantine=True)).metadata)
        == "no longer failing `note|max_length`."
    )


def test_a_run_that_is_not_materialized_is_not_compared_with(run: Execute) -> None:
    run(declare(Orders, CLEAN, quarantine=True))
    assert not run(
        declare(Orders, DIRTY[1:3], quarantine=True, severities={"many": "error"})
    ).success
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) == NO_CHANGE


def test_a_partition_is_compared_with_itself(run: Execute) -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])
    found = [
        changes(
            run(
                declare(Orders, CLEAN[:rows], quarantine=True, partitions_def=days),
                partition_key=day,
            ).metadata
        )
        for rows, day in [(10, "mon"), (20, "tue"), (15, "mon"), (20, "tue")]
    ]
    assert found == [None, None, "5 rows more.", NO_CHANGE]


def test_an_asset_without_partitions_is_compared_in_a_run_that_has_one(
    instance: dg.DagsterInstance,
) -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])
    found = []
    for day in days.get_partition_keys():
        partitioned = dd.asset(Orders, name="other", partitions_def=days)(lambda: CLEAN)
        result = dg.materialize(
            [declare(Orders, CLEAN, quarantine=True), partitioned],
            instance=instance,
            resources={"io_manager": dg.mem_io_manager},
            partition_key=day,
        )
        (event,) = result.asset_materializations_for_node("orders")
        found.append(changes({"dataframely/report": event.metadata["dataframely/report"].value}))
    assert found == [None, NO_CHANGE]


def test_a_materialization_of_another_tool_is_not_compared_with(
    run: Execute, instance: dg.DagsterInstance
) -> None:
    instance.report_runless_asset_event(
        dg.AssetMaterialization("orders", metadata={"dagster/row_count": 7})
    )
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) is None


def test_failures_are_recorded_by_rule_the_worst_first(run: Execute) -> None:
    metadata = run(declare(Orders, DIRTY, quarantine=True)).metadata
    assert metadata is not None
    failures = metadata["dataframely/failures_by_rule"]
    assert failures == {"amount|min": 2, "primary_key": 2, "note|max_length": 1, "many": 1}
    assert list(failures.values()) == [2, 2, 1, 1]
    assert (run(declare(Orders, CLEAN, quarantine=True)).metadata or {})[
        "dataframely/failures_by_rule"
    ] == {}


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"dataframely/rows_written": 7, "dataframely/error_rows": 0},
        {
            "dataframely/rows_written": "many",
            "dataframely/error_rows": 0,
            "dataframely/failures_by_rule": {},
        },
        {
            "dataframely/rows_written": 7,
            "dataframely/error_rows": dg.MetadataValue.null(),
            "dataframely/failures_by_rule": {},
        },
        {
            "dataframely/rows_written": 7,
            "dataframely/error_rows": 0,
            "dataframely/failures_by_rule": dg.MetadataValue.json(["amount|min"]),
        },
    ],
)
def test_a_materialization_that_says_something_else_is_not_compared_with(
    run: Execute, instance: dg.DagsterInstance, metadata: dict[str, Any]
) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization("orders", metadata=metadata))
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) is None


def test_rules_that_an_earlier_run_left_out_are_not_said_to_be_new(run: Execute) -> None:
    little: dict[str, Any] = {"max_metadata_bytes": 10_000}
    metadata = run(wide(30, -1, **little)).metadata
    assert metadata is not None
    *_, (note, number) = metadata["dataframely/failures_by_rule"].items()
    assert note.endswith(" more rules (max_metadata_bytes)")
    assert number is None
    assert changes(run(wide(30, -1)).metadata) is None
    assert changes(run(wide(30, -1)).metadata) == NO_CHANGE
    run(wide(30, -1, **little))
    assert str(changes(run(wide(30, 1)).metadata)).startswith(
        "1 row more; 1 error row fewer; no longer failing `c0|min`, `c1|min`"
    )


def test_each_member_of_a_collection_is_compared_with_itself(instance: dg.DagsterInstance) -> None:
    class Shop(dy.Collection):
        first: dy.LazyFrame[One]
        other: dy.LazyFrame[One]

    def last_lines(value: int) -> dict[str, str]:
        frames = {"first": pl.LazyFrame({"a": [1, 1]}), "other": pl.LazyFrame({"a": [1, value]})}
        asset = dd.collection_asset(Shop, name="shop", quarantine=True)(lambda: frames)
        result = dg.materialize(
            [asset], instance=instance, resources={"io_manager": dg.mem_io_manager}
        )
        reports = {
            event.asset_key.path[-1]: event.materialization.metadata["dataframely/report"].value
            for event in result.get_asset_materialization_events()
            if event.asset_key is not None
        }
        return {name: str(report).splitlines()[-1] for name, report in reports.items()}

    passed = "**2 rows written.** The rule passes."
    assert last_lines(1) == {"first": passed, "other": passed}
    assert last_lines(-1) == {
        "first": NO_CHANGE,
        "other": "Since the last materialization: "
        "1 row fewer; 1 error row more; newly failing `a|min`.",
    }


@pytest.mark.parametrize("divided", [True, False])
def test_a_partition_is_compared_with_a_range_where_that_told_partitions_apart(
    instance: dg.DagsterInstance, run: Execute, *, divided: bool
) -> None:
    class Trips(dy.Schema):
        city = dy.String()
        km = dy.Int64(min=0)

    frame = pl.DataFrame({"city": ["oslo", "oslo", "riga"], "km": [1, -1, 2]})

    def asset(rows: pl.DataFrame) -> dg.AssetsDefinition:
        return dd.asset(
            Trips,
            name="orders",
            quarantine=True,
            partitions_def=dg.StaticPartitionsDefinition(["oslo", "riga"]),
            metadata={"partition_expr": "city"} if divided else {},
        )(lambda: rows)

    result = dg.materialize(
        [asset(frame)],
        instance=instance,
        resources={"io_manager": dg.mem_io_manager},
        tags={
            "dagster/asset_partition_range_start": "oslo",
            "dagster/asset_partition_range_end": "riga",
        },
    )
    said = {
        event.partition: event.metadata["dataframely/report"].value.splitlines()[0]  # type: ignore[union-attr]
        for event in result.asset_materializations_for_node("orders")
    }
    together = "**2 of 3 rows written**, 1 set aside (33.3%)."
    oslo = "**1 of 2 rows written**, 1 set aside (50.0%)."
    riga = "**1 row written.** All 3 rules pass."
    assert said == {
        "oslo": oslo if divided else together,
        "riga": riga if divided else together,
    }
    outcome = run(asset(frame[:1]), partition_key="oslo")
    assert changes(outcome.metadata) == (
        "1 error row fewer; no longer failing `km|min`." if divided else None
    )
