"""Run the main job, and print what came of it."""

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import dagster as dg
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from warehouse.job import AssetRun, Totals, add_up, differences, planned_runs, run_all
from warehouse.storage import PROJECT, clear, create_dagster_home, tables_dir, warehouse_dir


def run(console: Console) -> int:
    """Materialize everything; the exit code is 1 where a total is not the pinned one."""
    clear()
    # Dagster (1.13) warns of an argument that its own components pass.
    warnings.filterwarnings("ignore", "Parameter `execution_type`", dg.BetaWarning)
    with dg.DagsterInstance.from_config(str(create_dagster_home())) as instance:
        runs = list(_shown(run_all(instance), console))
    totals = add_up(runs)
    console.print(_summary(totals, runs))
    lines = differences(totals)
    for line in lines:
        console.print(line, style="red", highlight=False)
    say = partial(console.print, highlight=False, soft_wrap=True, markup=False)
    say(f"Tables and history: {warehouse_dir()}")
    if lines:
        return 1
    say("Every total is the expected one, and so are the failed checks and the failed run:")
    say(f"{os.path.relpath(PROJECT / 'README.md')}, 'What is red, and why', explains each.")
    say("To look at the tables and their checks in Dagster's UI: .tools/bin/nox -s serve")
    say(f"To query a table: {query_line()}")
    return 0


def query_line() -> str:
    """A command that prints rows of a table."""
    flights = f"{os.path.relpath(tables_dir())}/flights/**/*.parquet"
    code = f"import polars as pl; print(pl.scan_parquet('{flights}').head().collect())"
    return f'{os.path.relpath(sys.executable)} -c "{code}"'


def _shown(runs: Iterator[AssetRun], console: Console) -> Iterator[AssetRun]:
    """Print a line for each run, over a bar where there is a terminal."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for run in progress.track(runs, total=len(planned_runs())):
            console.print(_line(run), highlight=False)
            yield run


def _line(run: AssetRun) -> str:
    if run.error is not None:
        outcome = run.error
    elif run.skipped:
        outcome = "skipped"
    else:
        outcome = "" if run.rows_written is None else f"{run.rows_written:,} rows"
    quarantined = f"{run.rows_quarantined} quarantined" if run.rows_quarantined else ""
    return f"{run.asset:<20}{run.part:<11}{outcome:>21}{quarantined:>16}{run.seconds:>6.1f} s"


def _summary(totals: Mapping[str, Totals], runs: Sequence[AssetRun]) -> Table:
    table = Table("Asset", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for column in ("Rows\nwritten", "Quaran-\ntined"):
        table.add_column(column, justify="right")
    table.add_column("Failed checks and\nerrors, in runs", no_wrap=True)
    for column in ("Cells\nskipped", "Seconds"):
        table.add_column(column, justify="right")
    for asset, total in totals.items():
        failed = [f"{check} {times}" for check, times in total.failed_checks.items()]
        failed += [f"{error} {times}" for error, times in Counter(total.errors).items()]
        table.add_row(
            asset,
            f"{total.rows_written:,}",
            f"{total.rows_quarantined:,}",
            "\n".join(failed),
            str(total.skipped_partitions),
            f"{sum(run.seconds for run in runs if run.asset == asset):.1f}",
        )
    return table
