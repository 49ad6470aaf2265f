"""A fan-in: one table from many Parquet partitions."""

from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd
from benchmarks.lineitem import Lineitem, plan
from benchmarks.programs import Job, Run
from benchmarks.programs.plain import warm_up

MOST_ROWS = 1000
"""Of a partition."""


class ParquetIOManager(PolarsParquetIOManager):
    """Reads with Polars 2 too: dagster-polars 0.27 passes arguments that Polars 2 has removed."""

    def scan_df_from_path(
        self, path: Any, context: dg.InputContext, partition_key: str | None = None
    ) -> pl.LazyFrame:
        return pl.scan_parquet(str(path), storage_options=self.storage_options)


def plain(job: Job, *, partitions: int = 1000) -> Run:
    """A plain asset that concatenates its input."""

    @dg.asset
    def table(parts: dict[str, pl.LazyFrame]) -> pl.LazyFrame:
        return pl.concat(parts.values())

    return _materialize(table, job, partitions)


def library(job: Job, *, partitions: int = 1000, **settings: Any) -> Run:
    """This library."""

    @dd.asset(Lineitem, **settings)
    def table(parts: dict[str, pl.LazyFrame]) -> pl.LazyFrame:
        return pl.concat(parts.values())

    return _materialize(table, job, partitions)


def _materialize(table: dg.AssetsDefinition, job: Job, partitions: int) -> Run:
    warm_up()
    keys = [f"{number:04}" for number in range(partitions)]
    _write_parts(job.source, job.folder / "parts", keys)
    parts = dg.AssetSpec("parts", partitions_def=dg.StaticPartitionsDefinition(keys))
    manager = ParquetIOManager(base_dir=str(job.folder))

    def run() -> None:
        dg.materialize([parts, table], selection=[table], resources={"io_manager": manager})

    return run


def _write_parts(source: Path, folder: Path, keys: list[str]) -> None:
    folder.mkdir()
    rows = plan(source, clean=True).head(MOST_ROWS * len(keys)).collect()
    size = -(-rows.height // len(keys))
    for number, key in enumerate(keys):
        rows.slice(number * size, size).write_parquet(folder / f"{key}.parquet")
