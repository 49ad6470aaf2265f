"""Weather at the three airports."""

from collections.abc import Iterator

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from warehouse.defs.bronze.drops import raw_weather
from warehouse.schemas import Weather
from warehouse.storage import RawDrops

EVERY_HOUR = dg.AssetCheckSpec(
    "every_hour",
    asset="weather",
    description="No hour is missing between an airport's first and its last.",
)


# Wired by hand, since `every_hour` has to see the drop as it came: once the rows that fail are in the
# quarantine, their hours are missing too, and a check of the table could not tell the two apart.
@dg.asset(
    metadata=dd.wiring.schema_metadata(Weather),
    check_specs=[*dd.wiring.check_specs(Weather, asset="weather"), EVERY_HOUR],
    output_required=False,
    deps=[raw_weather],
    description=Weather.__doc__,
    group_name="silver",
    kinds={"polars"},
)
def weather(context: dg.AssetExecutionContext, drops: RawDrops) -> Iterator[dd.wiring.AssetYield]:
    frame = drops.read("weather", Weather)
    yield from dd.wiring.process(
        Weather,
        frame,
        asset=context.asset_key,
        quarantine_writer=dd.wiring.delegating_writer(context),
    )
    yield check_hours(frame)


weather_quarantine = dd.build_quarantine_spec(Weather, weather)


def check_hours(frame: pl.DataFrame) -> dg.AssetCheckResult:
    first, last = pl.col("time_hour").min(), pl.col("time_hour").max()
    missing = frame.group_by("origin", maintain_order=True).agg(
        missing=(last - first).dt.total_hours() + 1 - pl.col("time_hour").n_unique()
    )
    by_origin = {origin: int(hours) for origin, hours in missing.iter_rows()}
    return dg.AssetCheckResult(
        passed=not any(by_origin.values()),
        asset_key="weather",
        check_name=EVERY_HOUR.name,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "missing_hours": sum(by_origin.values()),
            "by_origin": ", ".join(f"{origin} {hours}" for origin, hours in by_origin.items()),
        },
    )
