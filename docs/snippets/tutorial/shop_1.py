import dagster as dg
import dataframely as dy
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


class Orders(dy.Schema):
    """Orders of a shop, one row for each."""

    id = dy.Int64(primary_key=True)
    customer = dy.String(description="First name.")
    day = dy.Date()
    amount = dy.Float64(min=0.0, description="Net, in EUR.")


@dd.asset(Orders)
def orders() -> pl.DataFrame:
    return pl.read_csv("orders.csv", schema_overrides={"day": pl.Date})


defs = dg.Definitions(
    assets=[orders],
    resources={"io_manager": PolarsParquetIOManager(base_dir="tables")},
)
