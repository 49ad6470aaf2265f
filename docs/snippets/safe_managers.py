import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster._core.storage.db_io_manager import DbIOManager
from dagster_duckdb.io_manager import DuckDbClient
from dagster_duckdb_polars import DuckDBPolarsIOManager
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


# --8<-- [start:parquet]
class ParquetIOManager(PolarsParquetIOManager):
    """Puts a whole file in the place of the last one, on a local disk."""

    def write_df_to_path(self, context: dg.OutputContext, df: pl.DataFrame, path: Any) -> None:
        with whole_file(context, path) as unfinished:
            super().write_df_to_path(context, df, unfinished)

    def sink_df_to_path(self, context: dg.OutputContext, df: pl.LazyFrame, path: Any) -> None:
        with whole_file(context, path) as unfinished:
            super().sink_df_to_path(context, df, unfinished)


@contextmanager
def whole_file(context: dg.OutputContext, path: Any) -> Iterator[Any]:
    unfinished = path.with_name(f".{path.name}.{context.run_id}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


# --8<-- [end:parquet]
# --8<-- [start:duckdb]
class InOneTransaction(DuckDbClient):
    """Deletes the old rows and inserts the new ones together, or not at all."""

    @staticmethod
    @contextmanager
    def connect(context: Any, table_slice: Any) -> Iterator[Any]:
        with DuckDbClient.connect(context, table_slice) as connection:
            connection.begin()
            try:
                yield connection
                connection.commit()
            finally:
                connection.close()


class DuckDBIOManager(DuckDBPolarsIOManager):
    def create_io_manager(self, context: dg.InitResourceContext) -> DbIOManager:
        manager = super().create_io_manager(context)
        manager._db_client = InOneTransaction()
        return manager


# --8<-- [end:duckdb]
class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, quarantine=True)
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


@dd.asset(Orders)
def paid(orders: pl.DataFrame) -> pl.LazyFrame:
    return orders.lazy()


with tempfile.TemporaryDirectory() as folder:
    for io_manager in (
        ParquetIOManager(base_dir=folder),
        DuckDBIOManager(database=str(Path(folder, "shop.duckdb"))),
    ):
        for _run in range(2):
            result = dg.materialize([orders, paid], resources={"io_manager": io_manager})
        print(result.output_for_node("orders").rows())
        #> [(1, 9.5)]
        #> [(1, 9.5)]
