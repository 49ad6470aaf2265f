import dagster as dg
import polars as pl

import dagster_dataframely as dd
from dagster_dataframely.data import OrdersSchema, valid_orders


@dd.asset(OrdersSchema)
def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
    context.add_asset_metadata({"dagster/row_count": 999})
    return valid_orders()


result = dg.materialize([orders], resources={"io_manager": dg.mem_io_manager})
(event,) = result.asset_materializations_for_node("orders")
print(event.metadata["dagster/row_count"].value, event.metadata["dataframely/rows_written"].value)
#> 999 3
