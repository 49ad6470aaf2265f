"""Weather at the three airports."""

import polars as pl

import dagster_dataframely as dd
from warehouse.schemas import Weather
from warehouse.storage import RawDrops


@dd.asset(Weather, quarantine=True, group_name="bronze")
def weather(drops: RawDrops) -> pl.DataFrame:
    return drops.read("weather", Weather)


weather_quarantine = dd.build_quarantine_spec(Weather, weather)
