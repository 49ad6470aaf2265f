"""Whether what flights refer to is there."""

import dagster as dg

import dagster_dataframely as dd
from warehouse.defs.silver.flights import flights
from warehouse.defs.silver.reference import airports, planes
from warehouse.schemas import FlightReferences

# The planes of a sixth of the flights are not registered in the United States, or not any more; no rule
# of one table can see that, and the flights took place.
flight_references = dd.build_collection_checks(
    FlightReferences,
    members={"flights": flights, "planes": planes, "airports": airports},
    severity="warn",
)

flight_references_job = dg.define_asset_job(
    "flight_references",
    selection=dg.AssetSelection.checks(flight_references),
    description="Every cell of `flights` beside `planes` and `airports`.",
)
