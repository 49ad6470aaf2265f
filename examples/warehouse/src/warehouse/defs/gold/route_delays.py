"""How late flights are, by route and carrier."""

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from warehouse.schemas import RouteDelays


@dd.asset(
    RouteDelays,
    # Cells that were skipped have no file.
    ins={"flights": dg.AssetIn(metadata={"allow_missing_partitions": True})},
    group_name="gold",
)
def route_delays(flights: dict[dg.MultiPartitionKey, pl.LazyFrame]) -> pl.LazyFrame:
    is_cancelled = pl.col("dep_time").is_null()
    return (
        pl.concat(flights.values())
        .group_by("origin", "dest", "carrier")
        .agg(
            flights=pl.len().cast(pl.Int64),
            cancelled=is_cancelled.sum().cast(pl.Int64),
            cancelled_share=is_cancelled.mean(),
            mean_dep_delay=pl.col("dep_delay").mean(),
            mean_arr_delay=pl.col("arr_delay").mean(),
        )
        .sort("origin", "dest", "carrier")
    )
