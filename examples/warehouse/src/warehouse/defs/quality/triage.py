"""Where to begin: the rules that cost the most rows."""

from collections.abc import Sequence

import dagster as dg
import polars as pl
import polars.selectors as cs

import dagster_dataframely as dd
from warehouse.partitions import SKIPPED_CELLS_ALLOWED
from warehouse.schemas import QuarantineTriage


@dd.asset(
    QuarantineTriage,
    # A cell has a quarantine only where it has error rows.
    ins={"flights_quarantine": dg.AssetIn(metadata=SKIPPED_CELLS_ALLOWED)},
    io_manager_key="duckdb",
    pool="duckdb",
    group_name="quality",
)
def quarantine_triage(
    flights_quarantine: dict[dg.MultiPartitionKey, pl.LazyFrame],
    weather_quarantine: pl.DataFrame,
) -> pl.DataFrame:
    by_rule = [
        count_by_rule("flights", list(flights_quarantine.values())),
        count_by_rule("weather", [weather_quarantine.lazy()]),
    ]
    return (
        pl.concat(by_rule).sort("rows", "table", "rule", descending=[True, False, False]).collect()
    )


def count_by_rule(table: str, frames: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    rules = cs.starts_with("dy_rule__")
    return (
        pl.concat(frames)
        .select((rules == "invalid").sum())
        .unpivot(variable_name="rule", value_name="rows")
        .filter(pl.col("rows") > 0)
        .select(
            pl.lit(table).alias("table"),
            pl.col("rule").str.strip_prefix("dy_rule__"),
            pl.col("rows").cast(pl.Int64),
        )
    )
