"""This library."""

from typing import Any

import polars as pl

import dagster_dataframely as dd
from benchmarks.lineitem import Lineitem, plan
from benchmarks.programs import Job, Run
from benchmarks.programs.plain import materialize


def lazy(job: Job, *, unique: bool = False, **settings: Any) -> Run:
    """A lazy frame; without a quarantine, of rows that pass; without a repeated key if asked."""
    rows = plan(job.source, clean=not settings.get("quarantine"), unique=unique)

    @dd.asset(Lineitem, **settings)
    def table() -> pl.LazyFrame:
        return rows

    return materialize(table, job)


def frame(job: Job, **settings: Any) -> Run:
    """A data frame, in memory before the clock starts."""
    rows = plan(job.source, clean=not settings.get("quarantine")).collect()

    @dd.asset(Lineitem, **settings)
    def table() -> pl.DataFrame:
        return rows

    return materialize(table, job)
