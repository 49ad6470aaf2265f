import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, quarantine=True, max_error_share=0.01)
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


try:
    dg.materialize([orders], resources={"io_manager": dg.mem_io_manager})
except dd.errors.TooManyErrorRowsError as error:
    print(error.share, error.limit, error.counts)
    #> 0.5 0.01 {'amount|min': 1}
