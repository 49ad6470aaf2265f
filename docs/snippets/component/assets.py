import dagster as dg
import polars as pl
from demo.schemas import Orders

import dagster_dataframely as dd

SHOPS = dg.StaticPartitionsDefinition(["berlin", "paris"])


@dg.asset
def loaded_orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2, 3], "amount": [9.5, -1.0, 4.0]})


@dg.asset(partitions_def=SHOPS)
def shop_orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 1], "amount": [9.5, 4.0]})


@dd.asset(Orders, quarantine=True)
def orders(loaded_orders: pl.DataFrame) -> pl.DataFrame:
    return loaded_orders
