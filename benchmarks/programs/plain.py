"""Dagster and dagster-polars, without any validation."""

import tempfile

import dagster as dg
import polars as pl
from dagster_polars import PolarsParquetIOManager

from benchmarks.lineitem import plan
from benchmarks.programs import Job, Run


def lazy(job: Job) -> Run:
    """A lazy frame, sunk."""
    rows = plan(job.source, clean=False)

    @dg.asset
    def table() -> pl.LazyFrame:
        return rows

    return materialize(table, job)


def frame(job: Job) -> Run:
    """A data frame, in memory before the clock starts."""
    rows = plan(job.source, clean=False).collect()

    @dg.asset
    def table() -> pl.DataFrame:
        return rows

    return materialize(table, job)


def materialize(table: dg.AssetsDefinition, job: Job) -> Run:
    """A run of one asset, with the IO manager that all sides but one share."""
    manager = PolarsParquetIOManager(base_dir=str(job.folder))
    warm_up()

    def run() -> None:
        dg.materialize([table], resources={"io_manager": manager})

    return run


def warm_up() -> None:
    """Do what only the first run of a process does: Dagster imports much of itself then."""

    @dg.asset
    def first() -> pl.DataFrame:
        return pl.DataFrame({"number": [1]})

    with tempfile.TemporaryDirectory() as folder:
        manager = PolarsParquetIOManager(base_dir=folder)
        dg.materialize([first], resources={"io_manager": manager})
