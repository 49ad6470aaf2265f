"""Dataframely without Dagster: filter, then write the rows that pass and those that fail."""

import dagster as dg
import polars as pl

from benchmarks.lineitem import Lineitem, plan
from benchmarks.programs import Job, Run
from benchmarks.programs.plain import materialize


def lazy(job: Job) -> Run:
    """The lazy way: both halves collected by the streaming engine."""
    rows = plan(job.source, clean=False)

    def run() -> None:
        passed, failed = Lineitem.filter(rows).collect_all(engine="streaming")
        passed.write_parquet(job.folder / "table.parquet")
        failed.write_parquet(job.folder / "failed.parquet")

    return run


def collected(job: Job) -> Run:
    """A lazy frame, collected first."""
    rows = plan(job.source, clean=False)
    return lambda: _filter(rows.collect(), job)


def frame(job: Job) -> Run:
    """A data frame, in memory before the clock starts."""
    rows = plan(job.source, clean=False).collect()
    return lambda: _filter(rows, job)


def frame_in_asset(job: Job) -> Run:
    """The same in the body of a plain asset, whose IO manager writes the rows that pass."""
    rows = plan(job.source, clean=False).collect()

    @dg.asset
    def table() -> pl.DataFrame:
        passed, failed = Lineitem.filter(rows)
        failed.write_parquet(job.folder / "failed.parquet")
        return passed

    return materialize(table, job)


def _filter(rows: pl.DataFrame, job: Job) -> None:
    passed, failed = Lineitem.filter(rows)
    passed.write_parquet(job.folder / "table.parquet")
    failed.write_parquet(job.folder / "failed.parquet")
