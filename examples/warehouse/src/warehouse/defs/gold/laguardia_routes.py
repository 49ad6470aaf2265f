"""Where LaGuardia's flights go, and whether they may."""

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from warehouse.memory import collect_measured
from warehouse.partitions import SKIPPED_CELLS_ALLOWED
from warehouse.schemas import LaguardiaRoutes


@dd.asset(
    LaguardiaRoutes,
    ins={"flights": dg.AssetIn(metadata=SKIPPED_CELLS_ALLOWED)},
    io_manager_key="duckdb",
    pool="duckdb",
    group_name="gold",
)
def laguardia_routes(
    flights: dict[dg.MultiPartitionKey, pl.LazyFrame],
) -> dg.MaterializeResult[pl.DataFrame]:
    laguardia = [
        frame for cell, frame in flights.items() if cell.keys_by_dimension["origin"] == "LGA"
    ]
    return collect_measured(
        pl.concat(laguardia)
        .group_by("dest")
        .agg(flights=pl.len().cast(pl.Int64), distance=pl.col("distance").max())
        .sort("dest")
    )
