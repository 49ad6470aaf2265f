"""The package of the same name on PyPI, as its `help()` says to use it."""

import importlib
from typing import Any

import polars as pl

from benchmarks.lineitem import Lineitem, plan
from benchmarks.programs import Job, Run
from benchmarks.programs.plain import materialize


def lazy(job: Job, **settings: Any) -> Run:
    """A lazy frame; without `filter`, of rows that pass."""
    rows = plan(job.source, clean=not settings.get("filter"))

    def table() -> pl.LazyFrame:
        return rows

    return materialize(_asset(table, settings), job)


def frame(job: Job, **settings: Any) -> Run:
    """A data frame, in memory before the clock starts."""
    rows = plan(job.source, clean=not settings.get("filter")).collect()

    def table() -> pl.DataFrame:
        return rows

    return materialize(_asset(table, settings), job)


def _asset(function: Any, settings: Any) -> Any:
    # In this side's environment the name stands for that package, whose types mypy cannot see.
    package: Any = importlib.import_module("dagster_dataframely")
    return package.asset(Lineitem, **settings)(function)
