"""Where everything is: the raw drops, the tables and Dagster's history.

Environment variables move them:

- `WAREHOUSE_DIR`: everything that is written; `.warehouse` beside `pyproject.toml` otherwise.
- `WAREHOUSE_TABLES`: the Parquet tables, as a directory or as `s3://bucket/folder`.
- `WAREHOUSE_POSTGRES_URL`: a PostgreSQL database that keeps the history in place of SQLite files.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster_duckdb import DuckDBResource
from dagster_duckdb_polars import DuckDBPolarsIOManager
from dagster_polars import PolarsParquetIOManager

PROJECT = Path(__file__).parents[2]
_DAGSTER_YAML = "dagster.yaml"


def warehouse_dir() -> Path:
    return Path(os.environ.get("WAREHOUSE_DIR", PROJECT / ".warehouse")).absolute()


def tables_dir() -> str:
    """One Parquet file, or folder of them, for each silver table and each quarantine."""
    return os.environ.get("WAREHOUSE_TABLES", str(warehouse_dir() / "tables"))


def duckdb_path() -> Path:
    """All gold tables, in the schema `gold`."""
    return warehouse_dir() / "warehouse.duckdb"


def dagster_home() -> Path:
    """`DAGSTER_HOME`: the history of runs, materializations and checks."""
    return warehouse_dir() / "dagster_home"


def create_dagster_home() -> Path:
    home = dagster_home()
    home.mkdir(parents=True, exist_ok=True)
    in_postgres = "WAREHOUSE_POSTGRES_URL" in os.environ
    template = PROJECT / "deployment" / _DAGSTER_YAML if in_postgres else PROJECT / _DAGSTER_YAML
    shutil.copy(template, home / _DAGSTER_YAML)
    return home


def clear() -> None:
    """Remove the tables and the history.

    Raises:
        FileExistsError: The directory holds something that `create_dagster_home` did not make.
    """
    directory = warehouse_dir()
    if not directory.exists() or not any(directory.iterdir()):
        return
    if not (dagster_home() / _DAGSTER_YAML).exists():
        message = f"{directory} is no warehouse: set `WAREHOUSE_DIR` to a new or empty directory."
        raise FileExistsError(message)
    shutil.rmtree(directory)


class RawDrops(dg.ConfigurableResource[Any]):
    """The gzipped CSV files as they came."""

    directory: str

    def has(self, drop: str) -> bool:
        return self._path(drop).exists()

    def read(self, drop: str, schema: type[dy.Schema]) -> pl.DataFrame:
        """Read a drop with the dtypes a schema declares, so that none is inferred.

        Columns the schema does not declare stay text.
        """
        dtypes = {name: column.dtype for name, column in schema.columns().items()}
        timestamps = [name for name, dtype in dtypes.items() if dtype == pl.Datetime]
        as_read: dict[str, Any] = {**dtypes, **dict.fromkeys(timestamps, pl.String)}
        frame = pl.read_csv(self._path(drop), infer_schema=False, schema_overrides=as_read)
        return frame.with_columns(
            pl.col(timestamps).str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC")
        )

    def version(self, drop: str) -> str | None:
        """When a drop last changed; `None` where there is none."""
        return str(self._path(drop).stat().st_mtime_ns) if self.has(drop) else None

    def digest(self, drop: str) -> str:
        """SHA-256 of a drop."""
        return hashlib.sha256(self._path(drop).read_bytes()).hexdigest()

    def _path(self, drop: str) -> Path:
        return Path(self.directory) / f"{drop}.csv.gz"


class ParquetTables(PolarsParquetIOManager):
    """Parquet files without metadata of their own.

    `PolarsParquetIOManager` makes a sample of rows and statistics of every table (0.27); those of
    `dd.asset` are enough.
    """

    def get_metadata(self, context: dg.OutputContext, obj: object) -> dict[str, dg.MetadataValue]:
        return {}


def build_resources() -> dict[str, Any]:
    database = str(duckdb_path())
    return {
        "drops": RawDrops(directory=str(PROJECT / "data" / "raw")),
        "io_manager": ParquetTables(base_dir=tables_dir()),
        "duckdb": DuckDBPolarsIOManager(database=database, schema="gold"),
        "duckdb_file": DuckDBResource(database=database),
    }
