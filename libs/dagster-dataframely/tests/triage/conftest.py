"""Code locations with quarantines."""

import os
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataframely import __main__ as command

LOCATION = """
import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd

FOLDER = {folder!r}
{manager}
DAYS = dg.StaticPartitionsDefinition(["mon", "tue", "wed"])


class Order(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)
    customer = dy.String(nullable=False, metadata={{"pii": True}})
    day = dy.String(nullable=True)


def rows(day: str) -> pl.DataFrame:
    amounts = {{"mon": [1.0, -1.0, -2.0, 3.0], "tue": [1.0, 2.0, 2.0, -3.0], "wed": [1.0] * 4}}[day]
    customers = ["Ann", "Bob", None, "Cy"] if day == "mon" else ["Ann"] * 4
    columns = {{"id": [1, 2, 3, 4], "amount": amounts, "customer": customers}}
    return pl.DataFrame(columns).with_columns(day=pl.lit(day))


@dd.asset(
    Order,
    quarantine=True,
    partitions_def=DAYS,
    metadata={{"partition_by": "day", "partition_expr": "day"}},
)
def daily(context: dg.AssetExecutionContext) -> pl.DataFrame:
    return rows(context.partition_key)


@dd.asset(Order, quarantine=True, quarantine_layout="list")
def weekly() -> pl.DataFrame:
    return rows("mon")


@dd.asset(Order, quarantine=True)
def clean() -> pl.DataFrame:
    return rows("wed")


defs = dg.Definitions([daily, weekly, clean], resources={{"io_manager": io_manager}})


def run() -> None:
    quiet = {{"loggers": {{"console": {{"config": {{"log_level": "CRITICAL"}}}}}}}}
    given = {{"resources": {{"io_manager": io_manager}}, "run_config": quiet}}
    for day in DAYS.get_partition_keys():
        assert dg.materialize([daily], partition_key=day, **given).success
    assert dg.materialize([weekly, clean], **given).success
"""
MANAGERS = {
    "files": "io_manager = dg.FilesystemIOManager(base_dir=FOLDER)",
    "parquet": (
        "from dagster_polars import PolarsParquetIOManager\n"
        "io_manager = PolarsParquetIOManager(base_dir=FOLDER)"
    ),
    "delta": (
        "from dagster_polars import PolarsDeltaIOManager\n"
        "io_manager = PolarsDeltaIOManager(base_dir=FOLDER)"
    ),
    "duckdb": (
        "from dagster_duckdb_polars import DuckDBPolarsIOManager\n"
        'io_manager = DuckDBPolarsIOManager(database=FOLDER + "/db", schema="public")'
    ),
}
Location = tuple[Path, dg.Definitions]


@pytest.fixture(
    params=[
        "files",
        *(
            pytest.param(name, marks=pytest.mark.io_managers)
            for name in ("parquet", "delta", "duckdb")
        ),
    ]
)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A file of definitions whose tables were written by each kind of IO manager."""
    return make_location(request.param, tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> Location:
    """The same with Dagster's own manager."""
    return make_location("files", tmp_path)


def make_location(kind: str, folder: Path) -> Location:
    (folder / "data").mkdir()
    file = folder / "defs.py"
    file.write_text(LOCATION.format(folder=str(folder / "data"), manager=MANAGERS[kind]))
    found = runpy.run_path(str(file), run_name="defs")
    found["run"]()
    return file, found["defs"]


@pytest.fixture
def quarantine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Run `quarantine` of the command: the exit code, what is printed and what is told."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: Any) -> tuple[int, str, str]:
        capsys.readouterr()
        code = command.main(["quarantine", *map(str, arguments)])
        return code, *capsys.readouterr()

    yield run
    assert "DAGSTER_HOME" not in os.environ
