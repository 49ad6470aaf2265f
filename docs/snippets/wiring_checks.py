import tempfile
from collections.abc import Iterator

import dagster as dg
import dataframely as dy
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dg.asset(metadata=dd.wiring.schema_metadata(Orders))
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


@dg.multi_asset_check(specs=dd.wiring.check_specs(Orders, asset="orders"))
def orders_checks(orders: pl.DataFrame) -> Iterator[dg.AssetCheckResult]:
    yield from dd.wiring.evaluate(Orders, orders, asset="orders")


with tempfile.TemporaryDirectory() as folder:
    io_manager = PolarsParquetIOManager(base_dir=folder)
    result = dg.materialize([orders, orders_checks], resources={"io_manager": io_manager})
    print(result.success, result.output_for_node("orders").height)
    print([c.check_name for c in result.get_asset_check_evaluations() if not c.passed])
    #> True 2
    #> ['dy_rule__amount__min']
