"""After a fault: the table, the error rows, the staging, and the next run."""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
import deltalake
import polars as pl
import pytest
from deltalake.exceptions import CommitFailedError
from support import fault_runs
from support.declare import annotated
from support.fault_runs import (
    AT_ERROR_ROWS,
    AT_TABLE,
    BOTH,
    BROKEN,
    DISK,
    EMPTY,
    KEEPS,
    LAZY,
    NEW,
    OTHER,
    PLAN,
    ROWS,
    SAFE,
    STAGING,
    STORAGES,
    at,
    build_orders,
    expected,
    fail,
    manager,
    materialize,
    meanwhile,
    once,
    plan_that,
    query,
    rows_of,
    stored,
    wait_until,
)

from dagster_dataframely.errors import StagingError

pytestmark = pytest.mark.io_managers


RELEASED = pytest.mark.parametrize("storage", STORAGES)


TESTS = Path(__file__).parents[1]


EVERY_STORAGE = pytest.mark.parametrize("storage", [*STORAGES, *SAFE])


@pytest.fixture
def folder(tmp_path: Path, storage: str) -> Path:
    """With the table and the error rows of a first run."""
    materialize(storage, tmp_path, lambda: rows_of(1).lazy())
    assert left(storage, tmp_path, 2) == (KEEPS, KEEPS)
    return tmp_path


def left(storage: str, folder: Path, run: int) -> tuple[str, str]:
    return stored(storage, folder, "orders", run), stored(storage, folder, "orders_quarantine", run)


def staging(folder: Path) -> list[Path]:
    return list((folder / "staging").iterdir())


def assert_left(fault: str, storage: str, folder: Path) -> None:
    """What the guide says is left, and next runs that mend everything."""
    assert left(storage, folder, 2) == expected(fault, storage)
    if fault == AT_ERROR_ROWS:
        materialize(storage, folder, lambda: rows_of(3).lazy().head(ROWS))
        assert left(storage, folder, 3) == (NEW, EMPTY)
    materialize(storage, folder, lambda: rows_of(4).lazy())
    assert left(storage, folder, 4) == (NEW, NEW)
    assert staging(folder) == []


def start(what: str, storage: str, folder: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        fault_runs.__name__,
        what,
        storage,
        str(folder),
    ]
    return subprocess.Popen(command, cwd=TESTS, stderr=subprocess.PIPE, text=True)


def assert_is_killed(what: str, storage: str, folder: Path) -> None:
    process = start(what, storage, folder)
    _, messages = process.communicate()
    assert process.returncode == -9, messages
    assert staging(folder)


@RELEASED
def test_the_plan_raises_half_way(storage: str, folder: Path) -> None:
    with pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, lambda: plan_that(fail, 2))
    assert staging(folder) == []
    assert_left(PLAN, storage, folder)


def folder_on_a_full_disk(**options: Any) -> str:
    folder = make_folder(**options)
    Path(folder, "rows.parquet").symlink_to("/dev/full")
    return folder


make_folder: Callable[..., str] = tempfile.mkdtemp


@RELEASED
def test_the_disk_is_full_where_rows_are_staged(storage: str, folder: Path) -> None:
    with (
        mock.patch.object(tempfile, "mkdtemp", folder_on_a_full_disk),
        pytest.raises(StagingError, match="Set `temp_dir`"),
    ):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert staging(folder) == []
    assert_left(DISK, storage, folder)


@pytest.mark.parametrize("storage", ["DuckDB"])
def test_the_process_is_killed_while_it_stages(storage: str, folder: Path) -> None:
    assert_is_killed("killed while staging", storage, folder)
    assert_left(STAGING, storage, folder)


@EVERY_STORAGE
def test_the_manager_fails_at_the_error_rows(storage: str, folder: Path) -> None:
    with at("orders_quarantine", fail), pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert_left(AT_ERROR_ROWS, storage, folder)


@pytest.mark.parametrize("storage", ["Parquet", LAZY])
def test_the_process_is_killed_at_the_error_rows(storage: str, folder: Path) -> None:
    assert_is_killed("orders_quarantine", storage, folder)
    assert_left(AT_ERROR_ROWS, storage, folder)


@EVERY_STORAGE
def test_the_manager_fails_at_the_table(storage: str, folder: Path) -> None:
    with at("orders", fail), pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert_left(AT_TABLE, storage, folder)


@pytest.mark.parametrize(
    ("name", "fault"), [("orders", AT_TABLE), ("orders_quarantine", AT_ERROR_ROWS)]
)
@pytest.mark.parametrize("storage", ["Parquet, renamed"])
def test_the_manager_of_the_guide_fails_while_it_sinks(
    storage: str, folder: Path, name: str, fault: str
) -> None:
    with at(name, fail), pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, annotated(pl.LazyFrame, rows_of(2).lazy()))
    assert_left(fault, storage, folder)


# A manager that fails unwinds; these could come back to something else than that leaves.
@pytest.mark.parametrize("storage", [LAZY, "DuckDB", *SAFE])
def test_the_process_is_killed_at_the_table(storage: str, folder: Path) -> None:
    assert_is_killed("orders", storage, folder)
    assert_left(AT_TABLE, storage, folder)


@pytest.mark.parametrize("storage", ["DuckDB", "DuckDB, in one transaction"])
def test_a_client_that_is_derived_from_duckdbs_takes_lists_too(
    storage: str, tmp_path: Path
) -> None:
    orders = build_orders(lambda: rows_of(1).lazy(), tmp_path, quarantine_layout="list")
    dg.materialize([orders], resources={"io_manager": manager(storage, tmp_path)})
    found = query(tmp_path, "select distinct dy_failed_rules from public.orders_quarantine")
    assert found == [(["amount|min"],)]


@pytest.mark.parametrize(
    ("storage", "tables"),
    [
        ("Parquet", {BROKEN, BOTH}),
        (LAZY, {NEW}),
        ("Parquet, renamed", {NEW}),
    ],
)
def test_two_runs_at_once_write_into_each_others_files(
    storage: str, folder: Path, tables: set[str]
) -> None:
    other = meanwhile(lambda: materialize(storage, folder, lambda: rows_of(3).lazy()))
    with at("orders", other):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    table, error_rows = left(storage, folder, 2)
    assert table in tables
    assert error_rows == OTHER
    assert staging(folder) == []
    assert {path.name for path in folder.iterdir()} == {
        "orders.parquet",
        "orders_quarantine.parquet",
        "staging",
    }


@pytest.mark.parametrize("storage", ["Delta Lake"])
def test_of_two_runs_at_once_one_table_is_left(storage: str, folder: Path) -> None:
    other = meanwhile(lambda: materialize(storage, folder, lambda: rows_of(3).lazy()))
    finds_out = not deltalake.__version__.startswith("1.0.")
    refused = pytest.raises(CommitFailedError, match="concurrent transaction")
    with at("orders", other), refused if finds_out else nullcontext():
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert left(storage, folder, 3) == (NEW if finds_out else OTHER, NEW)


@pytest.mark.parametrize("storage", ["DuckDB"])
def test_a_second_run_waits_while_another_process_writes(storage: str, folder: Path) -> None:
    process = start("slow", storage, folder)
    wait_until((folder / "half way").exists)
    timer = threading.Timer(0.5, (folder / "go on").touch)
    timer.start()
    materialize(storage, folder, lambda: rows_of(3).lazy())
    assert (folder / "go on").exists()
    _, messages = process.communicate()
    assert process.returncode == 0, messages
    assert left(storage, folder, 3) == (NEW, NEW)


@pytest.mark.parametrize("storage", ["Parquet"])
def test_a_pool_with_a_limit_of_one_keeps_two_runs_apart(storage: str, folder: Path) -> None:
    def run(number: int) -> None:
        orders = build_orders(lambda: rows_of(number).lazy(), folder, pool="orders")
        resources = {"io_manager": manager(storage, folder)}
        dg.materialize([orders], instance=instance, resources=resources)

    def is_blocked() -> bool:
        logs = [log for run in instance.get_runs() for log in instance.all_logs(run.run_id)]
        return any("blocked by" in log.message for log in logs)

    def start_another() -> None:
        other.start()
        wait_until(is_blocked)

    other = threading.Thread(target=run, args=[3])
    (folder / "history").mkdir()
    with dg.DagsterInstance.local_temp(str(folder / "history")) as instance:
        instance.event_log_storage.set_concurrency_slots("orders", 1)
        with at("orders", once(start_another)):
            run(2)
            other.join()
    assert left(storage, folder, 3) == (NEW, NEW)
