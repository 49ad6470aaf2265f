"""Where to begin: the rules that cost the most rows."""

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
    failed = pl.concat([cells.select("dy_failed_rules") for cells in flights_quarantine.values()])
    by_rule = [count_names("flights", failed), count_columns("weather", weather_quarantine.lazy())]
    return (
        pl.concat(by_rule).sort("rows", "table", "rule", descending=[True, False, False]).collect()
    )


def count_names(table: str, quarantine: pl.LazyFrame) -> pl.LazyFrame:
    """Of a quarantine that lists the failed rules."""
    return (
        quarantine.select(rule=pl.col("dy_failed_rules").explode(empty_as_null=False))
        .group_by("rule")
        .agg(rows=pl.len().cast(pl.Int64))
        .select(pl.lit(table).alias("table"), pl.col("rule"), "rows")
    )


def count_columns(table: str, quarantine: pl.LazyFrame) -> pl.LazyFrame:
    """Of a quarantine that has a column for each rule."""
    rules = cs.starts_with("dy_rule__")
    return (
        quarantine.select((rules == "invalid").sum())
        .unpivot(variable_name="rule", value_name="rows")
        .filter(pl.col("rows") > 0)
        .select(
            pl.lit(table).alias("table"),
            # The check's name again as the rule's: `wind_speed|max`.
            pl.col("rule").str.strip_prefix("dy_rule__").str.replace("__", "|", literal=True),
            pl.col("rows").cast(pl.Int64),
        )
    )
