import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster._core.storage.db_io_manager import DbTypeHandler, TableSlice
from dagster_duckdb.io_manager import DuckDbClient
from dagster_duckdb_polars import DuckDBPolarsIOManager
from dagster_duckdb_polars.duckdb_polars_type_handler import DuckDBPolarsTypeHandler
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


# --8<-- [start:parquet]
class ParquetIOManager(PolarsParquetIOManager):
    """Reads with Polars 2 too: dagster-polars 0.27 passes arguments that Polars 2 has removed."""

    def scan_df_from_path(
        self, path: Any, context: dg.InputContext, partition_key: str | None = None
    ) -> pl.LazyFrame:
        return pl.scan_parquet(str(path), storage_options=self.storage_options)


# --8<-- [end:parquet]
# --8<-- [start:duckdb]
class Frames(DuckDBPolarsTypeHandler):
    """Reads with DuckDB 2 too: dagster-duckdb-polars 0.29 calls a method that DuckDB 2 has removed."""

    def load_input(
        self, context: dg.InputContext, table_slice: TableSlice, connection: Any
    ) -> pl.DataFrame:
        if table_slice.partition_dimensions and not context.asset_partition_keys:
            return pl.DataFrame()
        query = DuckDbClient.get_select_statement(table_slice=table_slice)
        return pl.DataFrame(connection.sql(query).to_arrow_table())


class DuckDBIOManager(DuckDBPolarsIOManager):
    @staticmethod
    def type_handlers() -> Sequence[DbTypeHandler[Any]]:
        return [Frames()]


# --8<-- [end:duckdb]
class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, quarantine=True)
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2, 3], "amount": [9.5, -1.0, 20.0]})


@dd.asset(Orders)
def paid(orders: pl.DataFrame) -> pl.DataFrame:
    return orders.filter(pl.col("amount") > 10)


with tempfile.TemporaryDirectory() as folder:
    for io_manager in (
        ParquetIOManager(base_dir=folder),
        DuckDBIOManager(database=str(Path(folder, "shop.duckdb"))),
    ):
        result = dg.materialize([orders, paid], resources={"io_manager": io_manager})
        print(result.output_for_node("paid").rows())
        #> [(3, 20.0)]
        #> [(3, 20.0)]
