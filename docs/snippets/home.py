import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, quarantine=True)
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2, 3], "amount": [9.5, -1.0, 20.0]})


result = dd.testing.invoke(orders)
print(result.table.rows())
#> [(1, 9.5), (3, 20.0)]
print(result.quarantine["id"].to_list(), result.failed)
#> [2] ['dy_rule__amount__min']
