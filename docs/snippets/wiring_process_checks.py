import tempfile
from collections.abc import Iterator
from pathlib import Path

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
    writer = dd.wiring.file_writer("orders", "evidence")
    events = dd.wiring.process(Orders, orders, asset="orders", quarantine_writer=writer)
    try:
        yield from (event for event in events if isinstance(event, dg.AssetCheckResult))
    except (dd.errors.ValidationAbortError, dd.errors.NothingSurvivedError):
        return  # The results are out; the table is already stored.


with tempfile.TemporaryDirectory() as folder:
    io_manager = PolarsParquetIOManager(base_dir=folder)
    dg.materialize([orders, orders_checks], resources={"io_manager": io_manager})

print(pl.read_parquet(Path("evidence/orders_quarantine.parquet"))["id"].to_list())
#> [2]
