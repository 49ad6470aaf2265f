import dagster as dg
import dataframely as dy
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


class Orders(dy.Schema):
    """Orders of a shop, one row for each."""

    id = dy.Int64(primary_key=True)
    customer = dy.String(description="First name.", metadata=dd.severity("warn"))
    day = dy.Date()
    amount = dy.Float64(min=0.0, description="Net, in EUR.")


class Customers(dy.Schema):
    """What each customer spent."""

    customer = dy.String(primary_key=True)
    orders = dy.UInt32(min=1)
    amount = dy.Float64(min=0.0, description="Net, in EUR.")


DAYS = dg.DailyPartitionsDefinition("2026-01-01")


@dd.asset(Orders, quarantine=True, partitions_def=DAYS)
def orders(context: dg.AssetExecutionContext) -> pl.DataFrame | None:
    rows = pl.read_csv("orders.csv", schema_overrides={"day": pl.Date})
    rows = rows.filter(pl.col("day").dt.to_string() == context.partition_key)
    return None if rows.is_empty() else rows


@dd.asset(Customers, ins={"orders": dg.AssetIn(metadata={"allow_missing_partitions": True})})
def customers(orders: dict[str, dy.LazyFrame[Orders]]) -> pl.LazyFrame:
    named = pl.concat(orders.values()).drop_nulls("customer")
    totals = named.group_by("customer").agg(orders=pl.len(), amount=pl.col("amount").sum())
    return totals.sort("customer")


defs = dg.Definitions(
    assets=[orders, dd.build_quarantine_spec(Orders, orders), customers],
    resources={"io_manager": PolarsParquetIOManager(base_dir="tables")},
)
