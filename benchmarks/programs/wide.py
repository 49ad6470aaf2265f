"""What a run costs where the table is wide and has many rules, all of which fail."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd
from benchmarks.programs import Job, Run

ROWS = 100


def plain(job: Job, *, columns: int, **_unused: Any) -> Run:
    """A plain asset."""
    rows = _rows(columns)

    @dg.asset
    def table() -> pl.DataFrame:
        return rows

    return _materialize(table, job)


def library(job: Job, *, columns: int, rules: int, lazy: bool, **settings: Any) -> Run:
    """This library; each rule fails for one row in ten."""
    rows = _rows(columns)
    names = rows.columns
    described = {
        name: dy.Int64(nullable=True, min=0 if number < rules else None)
        for number, name in enumerate(names)
    }
    schema: type[dy.Schema] = type("Wide", (dy.Schema,), described)

    def eager() -> pl.DataFrame:
        return rows

    def plan() -> pl.LazyFrame:
        return rows.lazy()

    table = dd.asset(schema, name="table", quarantine=True, **settings)(plan if lazy else eager)
    return _materialize(table, job)


def _rows(columns: int) -> pl.DataFrame:
    values = pl.int_range(-ROWS // 10, ROWS - ROWS // 10, eager=True)
    return pl.DataFrame([values.alias(f"column_{number}") for number in range(columns)])


def _materialize(table: dg.AssetsDefinition, job: Job) -> Run:
    manager = PolarsParquetIOManager(base_dir=str(job.folder))
    checks = len(list(table.check_specs))

    def run() -> dict[str, int]:
        with dg.DagsterInstance.ephemeral() as instance:
            resources = {"io_manager": manager}
            result = dg.materialize([table], instance=instance, resources=resources)
            logged = instance.all_logs(result.run_id)
            size = sum(len(dg.serialize_value(e)) for e in logged if e.is_dagster_event)
        return {"checks": checks, "event_kb": size // 1000}

    return run
