"""After a fault: the table, the error rows, the staging, and the next run."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from fault_runs import (
    KEEPS,
    NEW,
    SAFE,
    STORAGES,
    at,
    expected,
    fail,
    materialize,
    plan_that,
    rows_of,
    stored,
)

from dagster_dataframely.errors import StagingError

pytestmark = pytest.mark.io_managers

EVERY_STORAGE = pytest.mark.parametrize("storage", [*STORAGES, *SAFE])
PROGRAM = Path(__file__).with_name("fault_runs.py")


@pytest.fixture
def folder(tmp_path: Path, storage: str) -> Path:
    """With the table and the error rows of a first run."""
    materialize(storage, tmp_path, lambda: rows_of(1).lazy())
    assert left(storage, tmp_path) == (KEEPS, KEEPS)
    return tmp_path


def left(storage: str, folder: Path) -> tuple[str, str]:
    return stored(storage, folder, "orders"), stored(storage, folder, "orders_quarantine")


def staging(folder: Path) -> list[Path]:
    return list((folder / "staging").iterdir())


def assert_left(fault: str, storage: str, folder: Path) -> None:
    """What the guide says is left, and a next run that mends everything."""
    assert left(storage, folder) == expected(fault, storage)
    materialize(storage, folder, lambda: rows_of(3).lazy())
    assert left(storage, folder) == (NEW, NEW)
    assert staging(folder) == []


def start(what: str, storage: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", str(PROGRAM), what, storage, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def assert_is_killed(what: str, storage: str, folder: Path) -> None:
    process = start(what, storage, folder)
    _, messages = process.communicate()
    assert process.returncode == -9, messages


@EVERY_STORAGE
def test_the_plan_raises_half_way(storage: str, folder: Path) -> None:
    with pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, lambda: plan_that(fail, 2))
    assert staging(folder) == []
    assert_left("the plan raises half way", storage, folder)


def folder_on_a_full_disk(**options: Any) -> str:
    folder = make_folder(**options)
    Path(folder, "rows.parquet").symlink_to("/dev/full")
    return folder


make_folder: Callable[..., str] = tempfile.mkdtemp


@EVERY_STORAGE
def test_the_disk_is_full_where_rows_are_staged(storage: str, folder: Path) -> None:
    with (
        mock.patch.object(tempfile, "mkdtemp", folder_on_a_full_disk),
        pytest.raises(StagingError, match="Set `temp_dir`"),
    ):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert staging(folder) == []
    assert_left("the disk is full where rows are staged", storage, folder)


@pytest.mark.parametrize("storage", ["DuckDB"])
def test_the_process_is_killed_while_it_stages(storage: str, folder: Path) -> None:
    assert_is_killed("killed while staging", storage, folder)
    assert len(staging(folder)) == 1
    assert_left("the process is killed while it stages", storage, folder)


@EVERY_STORAGE
def test_the_manager_fails_at_the_error_rows(storage: str, folder: Path) -> None:
    with at("orders_quarantine", fail), pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert_left("the manager fails at the error rows", storage, folder)


@EVERY_STORAGE
def test_the_process_is_killed_at_the_error_rows(storage: str, folder: Path) -> None:
    assert_is_killed("orders_quarantine", storage, folder)
    assert len(staging(folder)) == 1
    assert_left("the process is killed at the error rows", storage, folder)


@EVERY_STORAGE
def test_the_manager_fails_at_the_table(storage: str, folder: Path) -> None:
    with at("orders", fail), pytest.raises(OSError, match="the storage is gone"):
        materialize(storage, folder, lambda: rows_of(2).lazy())
    assert_left("the manager fails at the table", storage, folder)


@EVERY_STORAGE
def test_the_process_is_killed_at_the_table(storage: str, folder: Path) -> None:
    assert_is_killed("orders", storage, folder)
    assert len(staging(folder)) == 1
    assert_left("the process is killed at the table", storage, folder)
