"""How late flights are, by route and carrier."""

from datetime import timedelta

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from warehouse.memory import collect_measured
from warehouse.partitions import SKIPPED_CELLS_ALLOWED
from warehouse.schemas import RouteDelays


@dd.asset(
    RouteDelays,
    ins={"flights": dg.AssetIn(metadata=SKIPPED_CELLS_ALLOWED)},
    # Flights come once a month.
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=40), warn_window=timedelta(days=33)
    ),
    io_manager_key="duckdb",
    pool="duckdb",
    group_name="gold",
)
def route_delays(
    flights: dict[dg.MultiPartitionKey, pl.LazyFrame],
) -> dg.MaterializeResult[pl.DataFrame]:
    is_cancelled = pl.col("dep_time").is_null()
    return collect_measured(
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
