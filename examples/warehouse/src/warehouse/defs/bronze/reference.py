"""What airport and carrier codes stand for."""

import polars as pl

import dagster_dataframely as dd
from warehouse.schemas import Airlines, Airports
from warehouse.storage import RawDrops


@dd.asset(Airports, group_name="bronze")
def airports(drops: RawDrops) -> pl.DataFrame:
    return drops.read("airports", Airports)


@dd.asset(Airlines, group_name="bronze")
def airlines(drops: RawDrops) -> pl.DataFrame:
    return drops.read("airlines", Airlines)
