"""Flights, one drop for each month and airport."""

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from warehouse.defs.bronze.drops import raw_flights
from warehouse.partitions import MONTH_AND_ORIGIN, month_and_origin
from warehouse.schemas import Flights
from warehouse.storage import RawDrops


@dd.asset(
    Flights,
    quarantine=True,
    # Each cell sets rows aside on its own, some years ago, some today: with a column for each rule, the
    # cells from before and after a new rule could not be read as one table.
    quarantine_layout="list",
    # The worst cell, JFK in December, loses two rows in a thousand to it. A drop that loses one in a
    # hundred is broken, and the last good cell is better.
    max_error_share=0.01,
    partitions_def=MONTH_AND_ORIGIN,
    # Storing checks is most of a cell's work: about 0.5 s of it with one check for all rules, 1.1 s
    # with one for each column, 1.8 s with one for each rule (Dagster 1.13, SQLite).
    check_granularity="schema",
    deps=[raw_flights],
    group_name="silver",
)
def flights(context: dg.AssetExecutionContext, drops: RawDrops) -> pl.DataFrame | None:
    month, origin = month_and_origin(context.partition_key)
    drop = f"flights/{month}/{origin}"
    return drops.read(drop, Flights) if drops.has(drop) else None


flights_quarantine = dd.build_quarantine_spec(Flights, flights)
