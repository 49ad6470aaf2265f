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


@dg.asset(
    metadata=dd.wiring.schema_metadata(Orders),
    check_specs=dd.wiring.check_specs(Orders, asset="orders"),
    output_required=False,
)
def orders(context: dg.AssetExecutionContext) -> Iterator[dd.wiring.AssetYield]:
    frame = pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})
    yield from dd.wiring.process(
        Orders,
        frame,
        asset=context.asset_key,
        quarantine_writer=dd.wiring.delegating_writer(context),
    )


with tempfile.TemporaryDirectory() as folder:
    io_manager = PolarsParquetIOManager(base_dir=folder)
    result = dg.materialize([orders], resources={"io_manager": io_manager})
    for check in result.get_asset_check_evaluations():
        print(check.check_name, check.passed)
        #> dy_schema__columns True
        #> dy_rule__id__nullability True
        #> dy_rule__amount__nullability True
        #> dy_rule__amount__min False
        #> dy_rule__amount__inf True
        #> dy_rule__amount__nan True
        #> dy_rule__primary_key True
