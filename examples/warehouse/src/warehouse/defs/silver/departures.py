"""Every flight with its plane and the weather it left in."""

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd
from warehouse.partitions import SKIPPED_CELLS_ALLOWED
from warehouse.schemas import Departures, Planes, Weather


@dd.asset(
    Departures,
    check_granularity="column",
    multi_column_rules="per_rule",
    ins={"flights": dg.AssetIn(metadata=SKIPPED_CELLS_ALLOWED)},
    group_name="silver",
)
def departures(
    flights: dict[dg.MultiPartitionKey, pl.LazyFrame],
    planes: dy.LazyFrame[Planes],
    weather: dy.LazyFrame[Weather],
) -> pl.LazyFrame | None:
    plane = planes.select("tailnum", "manufacturer", "seats", plane_year="year")
    return (
        pl.concat(flights.values())
        .join(plane, on="tailnum", how="left", maintain_order="left")
        .join(weather, on=["origin", "time_hour"], how="left", maintain_order="left")
        .with_columns(date=pl.date("year", "month", "day"), cancelled=pl.col("dep_time").is_null())
        .select(Departures.column_names())
    )
