import tempfile
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


class Lake(dg.ConfigurableResource[None]):
    """Parquet files that another tool writes."""

    directory: str

    def read(self, table: str) -> pl.DataFrame:
        return pl.read_parquet(Path(self.directory, f"{table}.parquet"))


orders = dg.AssetSpec("orders", metadata=dd.wiring.schema_metadata(Orders))


@dg.multi_asset_check(specs=dd.wiring.check_specs(Orders, asset=orders.key))
def orders_checks(lake: Lake) -> Iterator[dg.AssetCheckResult]:
    yield from dd.wiring.evaluate(Orders, lake.read("orders"), asset=orders.key)


with tempfile.TemporaryDirectory() as folder:
    pl.DataFrame({"id": [1, 1], "amount": [9.5, -1.0]}).write_parquet(
        Path(folder, "orders.parquet")
    )
    defs = dg.Definitions(
        assets=[orders],
        asset_checks=[orders_checks],
        jobs=[dg.define_asset_job("checks", dg.AssetSelection.checks(orders_checks))],
        resources={"lake": Lake(directory=folder)},
    )
    result = defs.resolve_job_def("checks").execute_in_process()
    print([c.check_name for c in result.get_asset_check_evaluations() if not c.passed])
#> ['dy_rule__amount__min', 'dy_rule__primary_key']
