import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Order(dy.Schema):
    order_id = dy.Int64(primary_key=True)


class Shop(dy.Collection):
    paid: dy.LazyFrame[Order]
    sent: dy.LazyFrame[Order]


@dd.collection_asset(
    Shop,
    key_prefix="shop",
    outs={"sent": dg.AssetOut(key=["depot", "sent"], io_manager_key="duckdb")},
)
def shop() -> dict[str, pl.DataFrame]:
    orders = pl.DataFrame({"order_id": [1, 2]})
    return {"paid": orders, "sent": orders[:1]}


print(sorted(key.to_user_string() for key in shop.keys))
#> ['depot/sent', 'shop/paid']
