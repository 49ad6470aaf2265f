"""After a fault: the table, the error rows, the staging, and the next run."""

import shutil
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
from fault_runs import (
    AT_ERROR_ROWS,
    AT_TABLE,
    BOTH,
    BROKEN,
    DISK,
    EMPTY,
    ERROR_ROWS,
    KEEPS,
    NEW,
    OTHER,
    PLAN,
    ROWS,
    SAFE,
    STAGING,
    STORAGES,
    annotated,
    at,
    declare,
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
EVERY_STORAGE = pytest.mark.parametrize("storage", [*STORAGES, *SAFE])
PROGRAM = Path(__file__).with_name("fault_runs.py")


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
    command = [sys.executable, "-W", "ignore", str(PROGRAM), what, storage, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def assert_is_killed(what: str, storage: str, folder: Path) -> None:
    process = start(what, storage, folder)
    _, messages = process.communicate()
    assert process.returncode == -9, messages
    assert len(staging(folder)) == 1


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


@pytest.mark.parametrize("storage", ["Parquet"])
def test_the_process_is_killed_at_the_error_rows(storage: str, folder: Path) -> None:
    assert_is_killed("orders_quarantine", storage, folder)
    assert_left(AT_ERROR_ROWS, storage, folder)


@EVERY_STORAGE
def test_the_manager_fails_at_the_table(storage: str, folder: Path) -> None:
    with at("orders", fail), pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert_left(AT_TABLE, storage, folder)


@pytest.mark.parametrize("storage", ["Parquet", "Parquet, renamed"])
@pytest.mark.parametrize(
    ("name", "fault"), [("orders", AT_TABLE), ("orders_quarantine", AT_ERROR_ROWS)]
)
def test_the_manager_fails_while_it_sinks(
    storage: str, folder: Path, name: str, fault: str
) -> None:
    with at(name, fail), pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, annotated(2))
    assert_left(fault, storage, folder)


# A manager that fails unwinds; these could come back to something else than that leaves.
@pytest.mark.parametrize("storage", ["DuckDB", *SAFE])
def test_the_process_is_killed_at_the_table(storage: str, folder: Path) -> None:
    assert_is_killed("orders", storage, folder)
    assert_left(AT_TABLE, storage, folder)


@pytest.mark.parametrize("storage", ["DuckDB", "DuckDB, in one transaction"])
def test_a_client_that_is_derived_from_duckdbs_takes_lists_too(
    storage: str, tmp_path: Path
) -> None:
    orders = declare(lambda: rows_of(1).lazy(), tmp_path, quarantine_layout="list")
    dg.materialize([orders], resources={"io_manager": manager(storage, tmp_path)})
    found = query(tmp_path, "select distinct dy_failed_rules from public.orders_quarantine")
    assert found == [(["amount|min"],)]


# Two runs at once.


@pytest.mark.parametrize(
    ("storage", "tables"),
    [
        ("Parquet", {BROKEN, BOTH}),
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
        orders = declare(lambda: rows_of(number).lazy(), folder, pool="orders")
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


# A partition whose error rows are gone: no row fails any more, or someone took them away.


def materialize_partition(storage: str, folder: Path, key: str, rows: int | None = None) -> None:
    orders = declare(
        lambda: rows_of(int(key)).lazy().head(rows or ROWS + ERROR_ROWS),
        folder,
        partitions_def=dg.StaticPartitionsDefinition(["1", "2"]),
        metadata={"partition_expr": "run"},
    )
    resources = {"io_manager": manager(storage, folder)}
    dg.materialize([orders], resources=resources, partition_key=key)


def error_rows(storage: str, folder: Path) -> dict[str, int]:
    """How many there are by partition."""
    if storage.startswith("Parquet"):
        files = sorted((folder / "orders_quarantine").glob("*.parquet"))
        return {file.stem: pl.read_parquet(file).height for file in files}
    found = query(
        folder, "select run, count(*) from public.orders_quarantine group by 1 order by 1"
    )
    return {str(run): rows for run, rows in found}


def take_away(storage: str, folder: Path) -> None:
    if storage.startswith("Parquet"):
        shutil.rmtree(folder / "orders_quarantine")
    else:
        query(folder, "drop table public.orders_quarantine")


@pytest.mark.parametrize("storage", ["Parquet", "DuckDB", *SAFE])
def test_a_partition_is_run_again_after_its_error_rows_are_gone(
    storage: str, tmp_path: Path
) -> None:
    for key in ("1", "2"):
        materialize_partition(storage, tmp_path, key)
    assert error_rows(storage, tmp_path) == {"1": ERROR_ROWS, "2": ERROR_ROWS}
    materialize_partition(storage, tmp_path, "1", ROWS)
    empty_file = {"1": 0} if storage.startswith("Parquet") else {}
    assert error_rows(storage, tmp_path) == {**empty_file, "2": ERROR_ROWS}
    take_away(storage, tmp_path)
    materialize_partition(storage, tmp_path, "1", ROWS)
    materialize_partition(storage, tmp_path, "2")
    assert error_rows(storage, tmp_path) == {"2": ERROR_ROWS}
