"""Runs that end badly, some of them in a process of their own, and what each storage keeps."""

import functools
import gc
import io
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import dagster as dg
import dataframely as dy
import polars as pl
from support.declare import annotated, declare

SNIPPET = Path(__file__).parents[4] / "docs/snippets/safe_managers.py"

KEEPS = "as before"
NEW = "this run's"
OTHER = "another run's"
BROKEN = "an incomplete file"
BOTH = "rows of both"
EMPTY = "no row"
MISSING = "nothing"

LAZY = "Parquet, lazy"
"""Where the function returns a `pl.LazyFrame` and says so."""
STORAGES = ("Parquet", LAZY, "DuckDB", "Delta Lake")
SAFE = ("Parquet, renamed", "DuckDB, in one transaction")
"""With the managers that the guide shows: they keep what there was."""

PLAN = "the plan raises half way"
DISK = "the disk is full where rows are staged"
STAGING = "the process is killed while it stages"
AT_ERROR_ROWS = "the manager fails, or the process is killed, at the error rows"
AT_TABLE = "the manager fails, or the process is killed, at the table"

UNTOUCHED = (KEEPS, KEEPS, KEEPS, KEEPS)

LEFT: dict[str, dict[str, tuple[str, str, str, str]]] = {
    PLAN: {"table": UNTOUCHED, "error rows": UNTOUCHED},
    DISK: {"table": UNTOUCHED, "error rows": UNTOUCHED},
    STAGING: {"table": UNTOUCHED, "error rows": UNTOUCHED},
    AT_ERROR_ROWS: {"table": UNTOUCHED, "error rows": (BROKEN, KEEPS, EMPTY, KEEPS)},
    AT_TABLE: {"table": (BROKEN, KEEPS, EMPTY, KEEPS), "error rows": (NEW, NEW, NEW, NEW)},
}
"""What is there after a fault, by storage, with the released managers."""

ROWS = 1_000
ERROR_ROWS = 100


def expected(fault: str, storage: str) -> tuple[str, str]:
    """What is left of the table and of the error rows."""
    if storage in STORAGES:
        table, error_rows = (cells[STORAGES.index(storage)] for cells in LEFT[fault].values())
        return table, error_rows
    return KEEPS, NEW if fault == AT_TABLE else KEEPS


class Orders(dy.Schema):
    """The rows say which run wrote them, at both ends."""

    run = dy.Int64()
    id = dy.Int64(primary_key=True)
    amount = dy.Int64(min=0)
    same_run = dy.Int64()


def rows_of(run: int) -> pl.DataFrame:
    number = pl.int_range(ROWS + ERROR_ROWS, eager=True)
    amount = pl.when(number < ROWS).then(number).otherwise(-1)
    which = pl.lit(run, pl.Int64)
    return pl.select(run=which, id=number, amount=amount, same_run=which)


def rows_lazily(run: int) -> pl.LazyFrame:
    return rows_of(run).lazy()


def build_orders(
    plan: Callable[[], pl.LazyFrame], folder: Path, **arguments: Any
) -> dg.AssetsDefinition:
    """The asset of a test, which stages below its folder."""
    temp_dir = folder / "staging"
    temp_dir.mkdir(exist_ok=True)
    return declare(Orders, plan, quarantine=True, temp_dir=temp_dir, **arguments)


def manager(storage: str, folder: Path) -> Any:
    from dagster_duckdb_polars import DuckDBPolarsIOManager
    from dagster_polars import PolarsDeltaIOManager, PolarsParquetIOManager

    if storage == "Delta Lake":
        return PolarsDeltaIOManager(base_dir=str(folder))
    if storage in SAFE:
        if storage.startswith("DuckDB"):
            return safe_managers()["DuckDBIOManager"](database=str(folder / "orders.duckdb"))
        return safe_managers()["ParquetIOManager"](base_dir=str(folder))
    if storage == "DuckDB":
        return DuckDBPolarsIOManager(database=str(folder / "orders.duckdb"))
    return PolarsParquetIOManager(base_dir=str(folder))


@functools.cache
def safe_managers() -> dict[str, Any]:
    """What the guide shows, without the run that it shows it with."""
    source = SNIPPET.read_text().partition("# --8<-- [end:duckdb]")[0]
    names: dict[str, Any] = {}
    exec(source, names)
    return names


def materialize(storage: str, folder: Path, plan: Callable[[], pl.LazyFrame]) -> None:
    resources = {"io_manager": manager(storage, folder)}
    returned = annotated(pl.LazyFrame, plan()) if storage == LAZY else plan
    dg.materialize([build_orders(returned, folder)], resources=resources)


def stored(storage: str, folder: Path, name: str, run: int) -> str:
    """What is stored under a name, seen from a run, and read without the manager."""
    try:
        frame = _read(storage, folder, name)
    except pl.exceptions.ComputeError:
        return BROKEN
    if frame is None:
        return MISSING
    if frame.is_empty():
        return EMPTY
    first, *others = {*frame["run"], *frame["same_run"]}
    if others:
        return BOTH
    assert frame.height == (ROWS if name == "orders" else ERROR_ROWS)
    return {run: NEW, 1: KEEPS}.get(first, OTHER)


def _read(storage: str, folder: Path, name: str) -> pl.DataFrame | None:
    if storage.startswith("Parquet"):
        path = folder / f"{name}.parquet"
        return pl.read_parquet(path) if path.exists() else None
    if storage == "Delta Lake":
        return pl.read_delta(str(folder / f"{name}.delta"))
    with duckdb_connection(folder) as connection:
        frame: pl.DataFrame = connection.execute(f"select * from public.{name}").pl()
        return frame


def query(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    with duckdb_connection(folder) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        return rows


def duckdb_connection(folder: Path) -> Any:
    import duckdb

    gc.collect()  # Where the released manager fails, its connection is open as long as the error.
    return duckdb.connect(str(folder / "orders.duckdb"))


# Faults.


def be_killed() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def fail() -> NoReturn:
    message = "the storage is gone"
    raise OSError(message)


@contextmanager
def at(name: str, happen: Callable[[], object]) -> Iterator[None]:
    """Let something happen where a released manager is half way through writing the rows of a name."""
    from dagster_duckdb_polars import DuckDBPolarsTypeHandler

    with ExitStack() as patches:
        to_parquet, to_delta = pl.DataFrame.write_parquet, pl.DataFrame.write_delta
        to_path = Path.replace
        to_duckdb = DuckDBPolarsTypeHandler.handle_output

        def write_parquet(frame: pl.DataFrame, file: Any, **options: Any) -> None:
            if Path(file.name).name.strip(".").partition(".")[0] != name:
                to_parquet(frame, file, **options)
                return
            whole = io.BytesIO()
            to_parquet(frame, whole, **options)
            file.write(whole.getvalue()[: whole.tell() // 2])
            file.flush()
            happen()
            file.write(whole.getvalue()[whole.tell() // 2 :])

        def replace(path: Path, target: Any) -> Path:
            if Path(target).name.strip(".").partition(".")[0] == name:
                happen()
            return to_path(path, target)

        def write_delta(frame: pl.DataFrame, target: Any, **options: Any) -> Any:
            where = Path(getattr(target, "table_uri", target).removeprefix("file://"))
            if where.stem == name:
                # Delta Lake's writer stores rows first, and then the version that has them.
                to_parquet(frame, where / "part-00000-of-a-version-that-never-was.parquet")
                happen()
            return to_delta(frame, target, **options)

        def handle_output(
            handler: Any, context: Any, table_slice: Any, frame: Any, connection: Any
        ) -> Any:
            if table_slice.table == name:
                # The manager has deleted the old rows.
                happen()
            return to_duckdb(handler, context, table_slice, frame, connection)

        for owner, function in (
            (pl.DataFrame, write_parquet),
            (pl.DataFrame, write_delta),
            (Path, replace),
            (DuckDBPolarsTypeHandler, handle_output),
        ):
            patches.enter_context(mock.patch.object(owner, function.__name__, function))
        yield


def plan_that(happen: Callable[[], object], run: int) -> pl.LazyFrame:
    """The rows of a run, in whose middle something happens."""

    def step(frame: pl.DataFrame) -> pl.DataFrame:
        happen()
        return frame

    late = rows_of(run)[ROWS // 2 :].lazy().map_batches(step)
    return pl.concat([rows_of(run)[: ROWS // 2].lazy(), late])


def once(happen: Callable[[], object]) -> Callable[[], object]:
    """The first time only: what happens may come here itself."""
    left = [happen]

    def happen_once() -> None:
        if left:
            left.pop()()

    return happen_once


def meanwhile(work: Callable[[], object]) -> Callable[[], object]:
    """Another run from start to end, while the one that comes here stands still."""

    def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work).result()

    return once(run)


def wait_until(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not reached():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.02)


def main(what: str, storage: str, folder: Path) -> None:
    """The second run, in a process of its own."""

    def pause() -> None:
        (folder / "half way").touch()
        wait_until((folder / "go on").exists)

    if what == "for ever":
        for run in itertools.count(time.time_ns()):
            materialize(storage, folder, functools.partial(rows_lazily, run))
            (folder / "writing").touch()
    elif what == "killed while staging":
        materialize(storage, folder, lambda: plan_that(be_killed, 2))
    elif what == "slow":
        with at("orders", pause):
            materialize(storage, folder, lambda: rows_of(2).lazy())
    else:
        with at(what, be_killed):
            materialize(storage, folder, lambda: rows_of(2).lazy())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
