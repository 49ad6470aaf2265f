"""What a run costs beside its rows: a thousand of them, with and without checks."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd
from benchmarks.lineitem import Lineitem, plan
from benchmarks.programs import Job, Run

ROWS = 1000


def plain(job: Job, *, storage: str, checks: int = 0) -> Run:
    """A plain asset, and so many checks that always pass."""
    rows = _rows(job)
    names = [f"check_{number}" for number in range(checks)]

    @dg.asset(check_specs=[dg.AssetCheckSpec(name, asset="table") for name in names])
    def table() -> Iterator[Any]:
        yield dg.MaterializeResult(value=rows)
        for name in names:
            yield dg.AssetCheckResult(passed=True, check_name=name)

    return _materialize(table, job, storage)


def library(job: Job, *, storage: str, **settings: Any) -> Run:
    """This library."""
    rows = _rows(job)

    @dd.asset(Lineitem, **settings)
    def table() -> pl.DataFrame:
        return rows

    return _materialize(table, job, storage)


def _rows(job: Job) -> pl.DataFrame:
    return plan(job.source, clean=True).head(ROWS).collect()


def _materialize(table: dg.AssetsDefinition, job: Job, storage: str) -> Run:
    manager = PolarsParquetIOManager(base_dir=str(job.folder))
    instance = None if storage == "ephemeral" else dg.DagsterInstance.local_temp(str(job.folder))
    checks = len(list(table.check_specs))

    def run() -> dict[str, int]:
        dg.materialize([table], instance=instance, resources={"io_manager": manager})
        return {"checks": checks}

    return run
