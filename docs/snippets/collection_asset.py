import tempfile
from pathlib import Path

import dagster as dg
import dataframely as dy
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


class Order(dy.Schema):
    order_id = dy.Int64(primary_key=True)


class Line(dy.Schema):
    order_id = dy.Int64(primary_key=True)
    line = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


class Shop(dy.Collection):
    orders: dy.LazyFrame[Order]
    lines: dy.LazyFrame[Line]

    @dy.filter()
    def has_lines(self) -> pl.LazyFrame:
        """An order has lines, and a line an order."""
        return self.orders.join(self.lines, on="order_id", how="semi")


@dd.collection_asset(Shop, quarantine=True)
def shop() -> dict[str, pl.DataFrame]:
    return {
        "orders": pl.DataFrame({"order_id": [1, 2, 3]}),
        "lines": pl.DataFrame(
            {"order_id": [1, 2, 9], "line": [1, 1, 1], "amount": [9.5, -1.0, 3.0]}
        ),
    }


with tempfile.TemporaryDirectory() as folder:
    result = dg.materialize(
        [shop], resources={"io_manager": PolarsParquetIOManager(base_dir=folder)}
    )
    for table in ("orders", "lines"):
        print(table, pl.read_parquet(Path(folder, f"{table}.parquet"))["order_id"].to_list())
    aside = pl.read_parquet(Path(folder, "lines_quarantine.parquet"))
    print(aside.select("order_id", "dy_rule__amount__min", "dy_filter__has_lines").rows())
#> orders [1]
#> lines [1]
#> [(2, 'invalid', 'unknown'), (9, 'valid', 'invalid')]
