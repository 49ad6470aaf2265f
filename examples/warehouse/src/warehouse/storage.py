"""Where everything is: the raw drops, the tables and Dagster's history.

`WAREHOUSE_DIR` moves the tables and the history; they are in `.warehouse` beside `pyproject.toml`
otherwise.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster_polars import PolarsParquetIOManager

PROJECT = Path(__file__).parents[2]
_DAGSTER_YAML = "dagster.yaml"


def warehouse_dir() -> Path:
    return Path(os.environ.get("WAREHOUSE_DIR", PROJECT / ".warehouse")).absolute()


def tables_dir() -> Path:
    """One Parquet file, or folder of them, for each table and each quarantine."""
    return warehouse_dir() / "tables"


def dagster_home() -> Path:
    """`DAGSTER_HOME`: the history of runs, materializations and checks."""
    return warehouse_dir() / "dagster_home"


def create_dagster_home() -> Path:
    home = dagster_home()
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(PROJECT / _DAGSTER_YAML, home)
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

    def _path(self, drop: str) -> Path:
        return Path(self.directory) / f"{drop}.csv.gz"


def build_resources() -> dict[str, Any]:
    return {
        "drops": RawDrops(directory=str(PROJECT / "data" / "raw")),
        "io_manager": PolarsParquetIOManager(base_dir=str(tables_dir())),
    }
