"""When flights are read: once a month, and whenever a drop comes or changes."""

import json
from collections.abc import Iterator
from datetime import timedelta

import dagster as dg

from warehouse.defs.bronze.drops import raw_flights
from warehouse.defs.quality.references import flight_references
from warehouse.defs.silver.flights import flights
from warehouse.partitions import MONTH_AND_ORIGIN, MONTHS, ORIGINS, month_and_origin
from warehouse.storage import RawDrops

# `flight_references` can look at all cells: once after the last one is enough.
flights_cell = dg.define_asset_job(
    "flights_cell",
    selection=dg.AssetSelection.assets(flights) - dg.AssetSelection.checks(flight_references),
    description="One cell of `flights`.",
)


@dg.schedule(job=flights_cell, cron_schedule="0 6 1 * *")
def last_months_flights(
    context: dg.ScheduleEvaluationContext,
) -> list[dg.RunRequest] | dg.SkipReason:
    """On the first of each month, a run for each airport's flights of the month before."""
    month = (context.scheduled_execution_time.replace(day=1) - timedelta(days=1)).strftime("%Y-%m")
    if month not in MONTHS.get_partition_keys():
        return dg.SkipReason(f"{month} is not one of the warehouse's months.")
    cells = [f"{month}|{origin}" for origin in ORIGINS]
    return [dg.RunRequest(run_key=cell, partition_key=cell) for cell in cells]


@dg.sensor(job=flights_cell, minimum_interval_seconds=60)
def new_flight_drops(
    context: dg.SensorEvaluationContext, drops: RawDrops
) -> dg.SensorResult | dg.SkipReason:
    """A run for each drop of flights that came or changed since the last look."""
    known: dict[str, str] = json.loads(context.cursor or "{}")
    found = dict(_versions(drops))
    changed = {cell: version for cell, version in found.items() if known.get(cell) != version}
    if not changed:
        return dg.SkipReason(f"None of the {len(found)} drops changed.")
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{cell} {version}", partition_key=cell)
            for cell, version in changed.items()
        ],
        asset_events=[
            dg.AssetMaterialization(raw_flights.key, partition=cell, metadata={"version": version})
            for cell, version in changed.items()
        ],
        cursor=json.dumps(found),
    )


def _versions(drops: RawDrops) -> Iterator[tuple[str, str]]:
    for cell in MONTH_AND_ORIGIN.get_partition_keys():
        month, origin = month_and_origin(cell)
        if (version := drops.version(f"flights/{month}/{origin}")) is not None:
            yield cell, version
