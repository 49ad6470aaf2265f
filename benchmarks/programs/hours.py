"""One run over 168 hourly partitions, in SQLite: what evaluations for each of them cost."""

import datetime as dt
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd
from benchmarks.programs import Job, Run

START = dt.datetime(2026, 1, 1)
HOUR = {"partition_expr": "hour"}
ROWS = 100
"""In each partition."""


class Reading(dy.Schema):
    """Eleven rules."""

    sensor = dy.Int64(primary_key=True, min=0)
    hour = dy.Datetime(primary_key=True)
    value = dy.Float64(min=-100, max=100)
    note = dy.String(max_length=10)


class OneFile(dg.IOManager):
    """Writes the rows of a range into one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        """Write a data frame."""
        obj.write_parquet(self.folder / f"{context.asset_key.path[-1]}.parquet")

    def load_input(self, context: dg.InputContext) -> None:
        """Load nothing: there is no quarantine before the first run."""
        raise FileNotFoundError(context.asset_key.path[-1])


def plain(job: Job, *, hours: int) -> Run:
    """A plain asset without checks."""
    rows = _rows(hours)

    @dg.asset(partitions_def=_partitions(hours), metadata=HOUR)
    def table() -> pl.DataFrame:
        return rows

    return _materialize(table, job)


def library(job: Job, *, hours: int, **settings: Any) -> Run:
    """This library; every row passes."""
    rows = _rows(hours)

    @dd.asset(Reading, partitions_def=_partitions(hours), metadata=HOUR, **settings)
    def table() -> pl.DataFrame:
        return rows

    return _materialize(table, job)


def _partitions(hours: int) -> dg.PartitionsDefinition[str]:
    return dg.HourlyPartitionsDefinition(START, START + dt.timedelta(hours=hours))


def _rows(hours: int) -> pl.DataFrame:
    moments = [START + dt.timedelta(hours=hour) for hour in range(hours)]
    return (
        pl.DataFrame({"hour": moments}, schema={"hour": pl.Datetime("us")})
        .join(pl.DataFrame({"sensor": range(ROWS)}), how="cross")
        .select("sensor", "hour", value=pl.lit(1.0), note=pl.lit("fine"))
    )


def _materialize(table: dg.AssetsDefinition, job: Job) -> Run:
    instance = dg.DagsterInstance.local_temp(str(job.folder))
    assert table.partitions_def is not None
    keys = table.partitions_def.get_partition_keys()
    checks = len(list(table.check_specs))

    def run() -> dict[str, int]:
        dg.materialize(
            [table],
            instance=instance,
            resources={"io_manager": OneFile(job.folder)},
            tags={
                "dagster/asset_partition_range_start": keys[0],
                "dagster/asset_partition_range_end": keys[-1],
            },
        )
        return {"checks": checks, "partitions": len(keys)}

    return run
