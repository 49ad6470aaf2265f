import tempfile
from pathlib import Path

import dagster as dg
import dataframely as dy
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


# Something else writes `lake/orders.parquet`.
orders = dg.AssetSpec("orders", metadata=dd.wiring.schema_metadata(Orders))
orders_checks = dd.build_rule_checks(Orders, asset=orders)

with tempfile.TemporaryDirectory() as lake:
    table = pl.DataFrame({"id": [1, 1], "amount": [9.5, -1.0]})
    table.write_parquet(Path(lake, "orders.parquet"))
    defs = dg.Definitions(
        assets=[orders],
        asset_checks=[orders_checks],
        jobs=[dg.define_asset_job("checks", dg.AssetSelection.checks(orders_checks))],
        resources={"io_manager": PolarsParquetIOManager(base_dir=lake)},
    )
    result = defs.resolve_job_def("checks").execute_in_process()
    for check in result.get_asset_check_evaluations():
        print(check.check_name, check.passed)
    #> dy_schema__columns True
    #> dy_rule__id__nullability True
    #> dy_rule__amount__nullability True
    #> dy_rule__amount__min False
    #> dy_rule__amount__inf True
    #> dy_rule__amount__nan True
    #> dy_rule__primary_key False
