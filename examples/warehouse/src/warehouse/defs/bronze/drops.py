"""The raw drops: nothing here makes them, so they are external assets.

The sensor `new_flight_drops` records when a drop of flights came.
"""

from typing import Any

import dagster as dg

from warehouse.partitions import MONTH_AND_ORIGIN


def _drop(name: str, path: str, description: str, **arguments: Any) -> dg.AssetSpec:
    return dg.AssetSpec(
        ["raw", name],
        description=description,
        metadata={"path": dg.MetadataValue.path(f"data/raw/{path}.csv.gz")},
        group_name="bronze",
        kinds={"csv"},
        **arguments,
    )


raw_flights = _drop(
    "flights",
    "flights/<month>/<origin>",
    "Flights as scheduled and as flown, one file for each month and airport.",
    partitions_def=MONTH_AND_ORIGIN,
)
raw_weather = _drop("weather", "weather", "A year of hourly weather at the three airports.")
raw_planes = _drop("planes", "planes", "Planes by registration.")
raw_airports = _drop("airports", "airports", "Airports by code.")
raw_airlines = _drop("airlines", "airlines", "Carriers by code.")
