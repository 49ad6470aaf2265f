"""What airport and carrier codes and registrations stand for."""

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from warehouse.defs.bronze.drops import raw_airlines, raw_airports, raw_planes
from warehouse.schemas import Airlines, Airports, Planes
from warehouse.storage import RawDrops


@dd.asset(
    Airports,
    # Three airports are in the wrong place. No flight goes there, so they may stay.
    severities={"lat|max": "warn", "tz|max": "warn"},
    deps=[raw_airports],
    group_name="silver",
)
def airports(drops: RawDrops) -> dg.MaterializeResult[pl.DataFrame]:
    digest = drops.digest("airports")
    return dg.MaterializeResult(
        value=drops.read("airports", Airports),
        # The same drop gives the same version, so nothing downstream turns stale when it is read again.
        data_version=dg.DataVersion(digest),
        tags={"warehouse/drop": digest[:12]},
    )


@dd.asset(Airlines, deps=[raw_airlines], group_name="silver")
def airlines(drops: RawDrops) -> pl.DataFrame:
    return drops.read("airlines", Airlines)


@dd.asset(Planes, deps=[raw_planes], group_name="silver")
def planes(drops: RawDrops) -> pl.DataFrame:
    return drops.read("planes", Planes)
