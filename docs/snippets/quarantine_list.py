import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, quarantine=True, quarantine_layout="list")
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2, 2], "amount": [9.5, 5.0, -1.0]})


result = dd.testing.invoke(orders)
assert result.quarantine is not None
print(result.quarantine["dy_failed_rules"].to_list())
#> [['primary_key'], ['amount|min', 'primary_key']]
