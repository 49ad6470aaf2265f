"""How carriers did: by month, over all months, and in order."""

import dagster as dg
import polars as pl
from dagster_duckdb import DuckDBResource

import dagster_dataframely as dd
from warehouse.memory import collect_measured
from warehouse.partitions import (
    CELLS_OF_A_MONTH,
    MONTHS,
    SKIPPED_CELLS_ALLOWED,
    WHEN_UPSTREAM_IS_UPDATED,
)
from warehouse.schemas import CarrierMonths, CarrierRanking, CarrierTotals


@dd.asset(
    CarrierMonths,
    ins={
        "flights": dg.AssetIn(
            partition_mapping=CELLS_OF_A_MONTH,
            metadata=SKIPPED_CELLS_ALLOWED,
        )
    },
    partitions_def=MONTHS,
    metadata={"partition_expr": "month"},
    check_granularity="schema",
    automation_condition=WHEN_UPSTREAM_IS_UPDATED,
    io_manager_key="duckdb",
    pool="duckdb",
    group_name="gold",
)
def carrier_months(
    flights: dict[dg.MultiPartitionKey, pl.LazyFrame],
) -> dg.MaterializeResult[pl.DataFrame] | None:
    if not flights:
        return None
    late_minutes = pl.col("arr_delay").clip(lower_bound=0).sum()
    return collect_measured(
        pl.concat(flights.values())
        .group_by(pl.date("year", "month", 1).alias("month"), "origin", "carrier")
        .agg(
            flights=pl.len().cast(pl.Int64),
            cancelled=pl.col("dep_time").is_null().sum().cast(pl.Int64),
            hours_late=(late_minutes / 60).round(2).cast(pl.Decimal(10, 2)),
        )
        .sort("month", "origin", "carrier")
    )


# No frame passes through Python here: DuckDB makes the table, and the checks in `carrier_totals_rules`
# read it afterwards. They report; unlike those of a `dd.asset` they cannot keep rows out.
@dg.asset(
    metadata=dd.wiring.schema_metadata(CarrierTotals),
    deps=[carrier_months],
    automation_condition=WHEN_UPSTREAM_IS_UPDATED,
    description=CarrierTotals.__doc__,
    io_manager_key="duckdb",
    pool="duckdb",
    group_name="gold",
    kinds={"duckdb", "sql"},
)
def carrier_totals(duckdb_file: DuckDBResource) -> dg.MaterializeResult[None]:
    with duckdb_file.get_connection() as connection:
        connection.execute("""
            create or replace table gold.carrier_totals as
            select
                carrier,
                sum(flights) as flights,
                sum(cancelled) as cancelled,
                sum(hours_late) as hours_late
            from gold.carrier_months
            group by carrier
            order by carrier
        """)
        rows = connection.execute("select count(*) from gold.carrier_totals").fetchone()
    return dg.MaterializeResult(metadata={"dagster/row_count": rows[0] if rows else 0})


@dd.asset(
    CarrierRanking,
    automation_condition=WHEN_UPSTREAM_IS_UPDATED,
    io_manager_key="duckdb",
    pool="duckdb",
    group_name="gold",
)
def carrier_ranking(carrier_totals: pl.DataFrame, airlines: pl.DataFrame) -> pl.DataFrame:
    ranking = rank(carrier_totals, airlines)
    # DuckDB's `sum` makes DECIMAL(38, 2) of DECIMAL(10, 2), and DECIMAL(38, 0) of BIGINT. A sum may have
    # outgrown its column, which the cast would say.
    return dd.strict_cast(CarrierRanking, ranking)


def rank(totals: pl.DataFrame, airlines: pl.DataFrame) -> pl.DataFrame:
    """Most punctual first; columns of `totals` keep their dtypes."""
    minutes = pl.col("hours_late").cast(pl.Float64) * 60
    flown = (pl.col("flights") - pl.col("cancelled")).cast(pl.Float64)
    return (
        totals.join(airlines, on="carrier", how="left", maintain_order="left")
        .with_columns(minutes_late_per_flight=minutes / flown)
        .sort("minutes_late_per_flight")
        .with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64))
        .select(CarrierRanking.column_names())
    )
