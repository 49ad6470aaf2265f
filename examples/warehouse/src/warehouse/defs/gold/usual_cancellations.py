"""How many flights are cancelled in an ordinary month."""

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from warehouse.schemas import UsualCancellations


class Month(dg.Config):
    """The month to take."""

    month: str = "2013-01"


@dd.asset(
    UsualCancellations,
    # Without a quarantine: a baseline that lacks an airport is worse than the last one. A month with a
    # blizzard aborts, and the table stays as the last ordinary month left it.
    io_manager_key="duckdb",
    pool="duckdb",
    group_name="gold",
)
def usual_cancellations(config: Month, carrier_months: pl.DataFrame) -> pl.DataFrame:
    return (
        carrier_months.filter(pl.col("month").dt.strftime("%Y-%m") == config.month)
        .group_by("origin", "month")
        .agg(pl.col("flights").sum(), share=pl.col("cancelled").sum() / pl.col("flights").sum())
        .sort("origin")
    )
