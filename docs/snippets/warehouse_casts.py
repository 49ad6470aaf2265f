import tempfile
from decimal import Decimal
from pathlib import Path

import dagster as dg
import dataframely as dy
import polars as pl
from dagster_duckdb_polars import DuckDBPolarsIOManager

import dagster_dataframely as dd


class Prices(dy.Schema):
    day = dy.Date()
    price = dy.Decimal(precision=10, scale=2, min=Decimal(0))


class Totals(dy.Schema):
    day = dy.Date(primary_key=True)
    total = dy.Float64(min=0.0)


@dd.asset(Prices, metadata={"partition_expr": "day"})
def prices() -> pl.DataFrame:
    rows = {"day": ["2026-01-01", "2026-01-01"], "price": ["9.50", "20.00"]}
    return Prices.cast(pl.DataFrame(rows).with_columns(pl.col("day").str.to_date()))


@dd.asset(Totals)
def totals(prices: pl.DataFrame) -> pl.DataFrame:
    frame = prices.group_by("day").agg(total=pl.col("price").sum())
    print(frame.schema["total"])
    #> Decimal(precision=38, scale=2)
    return Totals.cast(frame)


with tempfile.TemporaryDirectory() as folder:
    duckdb = DuckDBPolarsIOManager(database=str(Path(folder, "shop.duckdb")), schema="sales")
    result = dg.materialize([prices, totals], resources={"io_manager": duckdb})
    print(result.output_for_node("totals")["total"].to_list())
    #> [29.5]
