"""Staged rows go however a step ends, and never those of a process that runs."""

import errno
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dagster_dataframely as dd
from dagster_dataframely._validation import staging as _staging
from dagster_dataframely._validation.staging import stage_rows, staging_folder
from dagster_dataframely.errors import StagingError


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)


class OrdersAndReturns(dy.Collection):
    orders: dy.LazyFrame[Orders]
    returns: dy.LazyFrame[Orders]


ROWS = pl.DataFrame({"id": [1, 2]})


# A disk without space, without inodes, or with a quota.

FULL = pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT], ids=["space", "quota"])


def stage(directory: Path) -> None:
    with staging_folder(directory) as folder:
        stage_rows(ROWS.lazy(), folder, lambda _line: None)


def assert_is_full(directory: Path) -> None:
    with pytest.raises(StagingError, match="Set `temp_dir`") as raised:
        stage(directory)
    assert raised.value.directory == str(directory)
    assert list(directory.iterdir()) == []


@FULL
@pytest.mark.parametrize("polars", [False, True])
def test_a_full_disk_is_named_and_nothing_stays(
    tmp_path: Path, number: int, *, polars: bool
) -> None:
    error: Exception = OSError(number, os.strerror(number))
    if polars:
        error = pl.exceptions.ComputeError(f"{os.strerror(number)} (os error {number})")
    with mock.patch.object(pl.LazyFrame, "sink_parquet", side_effect=error):
        assert_is_full(tmp_path)


@FULL
@pytest.mark.parametrize("function", ["mkdtemp", "mkstemp"])
def test_a_disk_that_is_full_before_a_row_is_staged_is_named(
    tmp_path: Path, number: int, function: str
) -> None:
    error = OSError(number, os.strerror(number))
    with mock.patch.object(tempfile, function, side_effect=error):
        assert_is_full(tmp_path)


def test_what_a_killed_process_left_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    leave_a_folder(tmp_path)
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(tempfile, "mkdtemp", side_effect=error):
        assert_is_full(tmp_path)


def test_a_manager_on_a_full_disk_is_not_taken_for_staging(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"), staging_folder(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


def test_another_error_of_the_sink_passes_through(tmp_path: Path) -> None:
    error = OSError(errno.EIO, os.strerror(errno.EIO))
    with (
        mock.patch.object(pl.LazyFrame, "sink_parquet", side_effect=error),
        pytest.raises(OSError, match="Input/output error"),
    ):
        stage(tmp_path)
    assert list(tmp_path.iterdir()) == []


# What others left.

LEAVE_A_FOLDER = """
import os, sys
from pathlib import Path
from dagster_dataframely._validation.staging import staging_folder
with staging_folder(Path(sys.argv[1])) as folder:
    Path(folder, "rows.parquet").write_bytes(b"half a file")
    os._exit(9)
"""


def leave_a_folder(directory: Path) -> Path:
    """What a killed process leaves."""
    command = [sys.executable, "-c", LEAVE_A_FOLDER, str(directory)]
    assert subprocess.run(command, check=False).returncode == 9
    (orphan,) = directory.iterdir()
    return orphan


def test_the_folder_of_a_killed_process_is_removed_by_the_next_run(tmp_path: Path) -> None:
    orphan = leave_a_folder(tmp_path)
    (tmp_path / "someone's own folder").mkdir()
    with staging_folder(tmp_path) as folder:
        assert {path.name for path in tmp_path.iterdir()} == {folder.name, "someone's own folder"}
    assert not orphan.exists()


HOLD_A_FOLDER = """
import sys
from pathlib import Path
from dagster_dataframely._validation.staging import staging_folder
with staging_folder(Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_running_process_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD_A_FOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        with staging_folder(tmp_path) as first, staging_folder(tmp_path) as second:
            (theirs,) = set(tmp_path.iterdir()) - {first, second}
        assert list(tmp_path.iterdir()) == [theirs]
        process.stdin.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [True, False])
def test_the_folder_of_another_machine_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool
) -> None:
    """Not all network disks tell one machine of the locks of another; macOS has no boot id."""
    temp_dir, boot_id = tmp_path / "temp", tmp_path / "boot_id"
    temp_dir.mkdir()
    theirs = leave_a_folder(temp_dir)
    if there:
        boot_id.write_text("another\n")
    monkeypatch.setattr(_staging, "_BOOT_ID", boot_id)
    with staging_folder(temp_dir) as ours:
        assert set(temp_dir.iterdir()) == {theirs, ours}
        assert ("another" if there else socket.gethostname()) in ours.name


def test_the_folder_on_another_mount_stays(tmp_path: Path) -> None:
    """The locks of two mounts of one network disk may not meet, on one machine either."""
    theirs = leave_a_folder(tmp_path)
    *start, _device, end = theirs.name.split("-")
    elsewhere = theirs.rename(tmp_path / "-".join([*start, "ffffffff", end]))
    with staging_folder(tmp_path) as ours:
        assert set(tmp_path.iterdir()) == {elsewhere, ours}


def test_the_folder_of_another_user_stays(tmp_path: Path) -> None:
    theirs = leave_a_folder(tmp_path)
    with mock.patch.object(os, "geteuid", return_value=os.geteuid() + 1), staging_folder(tmp_path):
        assert theirs.exists()


def test_no_name_in_the_directory_fails_a_run(tmp_path: Path) -> None:
    prefix = leave_a_folder(tmp_path).name.rpartition("-")[0]
    for name in ("", "2147483648", "9" * 30, "a folder without a lock"):
        (tmp_path / f"{prefix}-{name}").mkdir()
    (tmp_path / f"{prefix}-a file").touch()
    (tmp_path / f"{prefix}-a link").symlink_to(tmp_path / "nowhere")
    (tmp_path / f"{prefix}-a lock that is a folder" / "lock").mkdir(parents=True)
    others = {path for path in tmp_path.iterdir() if not (path / "rows.parquet").exists()}
    with staging_folder(tmp_path) as folder:
        assert set(tmp_path.iterdir()) == {*others, folder}


def test_a_directory_that_cannot_be_listed_fails_no_run(tmp_path: Path) -> None:
    with mock.patch.object(Path, "iterdir", side_effect=PermissionError):
        stage(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_where_no_lock_can_be_held_no_folder_is_removed_by_another(tmp_path: Path) -> None:
    """Some network disks have none."""
    no_locks = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    with ExitStack() as stack:
        with mock.patch("fcntl.flock", side_effect=no_locks):
            first = stack.enter_context(staging_folder(tmp_path))
        with staging_folder(tmp_path) as second:
            assert set(tmp_path.iterdir()) == {first, second}
    assert list(tmp_path.iterdir()) == []


def test_on_windows_no_folder_of_another_process_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = leave_a_folder(tmp_path)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.delattr(os, "geteuid")
    with staging_folder(tmp_path) as ours:
        assert set(tmp_path.iterdir()) == {theirs, ours}
    assert list(tmp_path.iterdir()) == [theirs]


def test_nobody_else_may_enter_the_folder(tmp_path: Path) -> None:
    with staging_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700


def test_without_a_directory_the_systems_is_used() -> None:
    with staging_folder(None) as folder:
        assert folder.parent == Path(tempfile.gettempdir())


# How a step ends after its rows are staged.


class Failing(dg.IOManager):
    """Fails the first time, and keeps what it is handed the other times."""

    def __init__(self, staging: Path, error: BaseException) -> None:
        self.staging = staging
        self.error = error
        self.fails = True
        self.staged: list[int] = []
        self.rows: list[pl.DataFrame] = []

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        self.staged.append(len(list(self.staging.iterdir())))
        if self.fails:
            self.fails = False
            raise self.error
        self.rows.append(obj.lazy().collect())

    def load_input(self, context: dg.InputContext) -> None: ...


def by_decorator(staging: Path, **arguments: Any) -> dg.AssetsDefinition:
    @dd.asset(Orders, temp_dir=staging, **arguments)
    def orders() -> pl.LazyFrame:
        return ROWS.lazy()

    return orders


def asynchronous(staging: Path, **arguments: Any) -> dg.AssetsDefinition:
    @dd.asset(Orders, temp_dir=staging, **arguments)
    async def orders() -> pl.LazyFrame:
        return ROWS.lazy()

    return orders


def by_hand(staging: Path, **arguments: Any) -> dg.AssetsDefinition:
    def orders() -> Iterator[Any]:
        yield from dd.wiring.process(Orders, ROWS.lazy(), asset="orders", temp_dir=staging)

    specs = dd.wiring.check_specs(Orders, asset="orders")
    definition: dg.AssetsDefinition = dg.asset(check_specs=specs, **arguments)(orders)
    return definition


def collection(staging: Path, **arguments: Any) -> dg.AssetsDefinition:
    @dd.collection_asset(OrdersAndReturns, temp_dir=staging, **arguments)
    def both() -> dict[str, pl.LazyFrame]:
        return {"orders": ROWS.lazy(), "returns": ROWS.lazy()}

    return both


KINDS = pytest.mark.parametrize("declare", [by_decorator, asynchronous, by_hand, collection])


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    directory = tmp_path / "staging"
    directory.mkdir()
    return directory


@KINDS
def test_staged_rows_go_when_the_manager_fails_whoever_keeps_the_error(
    declare: Any, staging: Path
) -> None:
    manager = Failing(staging, RuntimeError("no bucket"))
    result = dg.materialize(
        [declare(staging)], resources={"io_manager": manager}, raise_on_error=False
    )
    assert not result.success
    assert manager.error.__traceback__ is not None
    assert manager.staged == [2 if declare is collection else 1]
    assert list(staging.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), dg.Failure("no bucket"), SystemExit(1), dg.RetryRequested(max_retries=0)],
    ids=lambda error: type(error).__name__,
)
def test_staged_rows_go_whatever_ends_the_step(error: BaseException, staging: Path) -> None:
    manager = Failing(staging, error)
    with pytest.raises(BaseException) as raised:  # noqa: PT011 - Dagster wraps some.
        dg.materialize([by_decorator(staging)], resources={"io_manager": manager})
    assert raised.value.__traceback__ is not None
    assert manager.staged == [1]
    assert list(staging.iterdir()) == []


@KINDS
@pytest.mark.parametrize(
    ("error", "policy"),
    [
        (RuntimeError("no bucket"), dg.RetryPolicy(max_retries=1)),
        (dg.RetryRequested(max_retries=1), None),
    ],
    ids=["policy", "requested"],
)
def test_a_step_that_is_retried_starts_without_the_rows_of_the_attempt_before(
    declare: Any, staging: Path, error: Exception, policy: dg.RetryPolicy | None
) -> None:
    manager = Failing(staging, error)
    arguments = {} if policy is None else {"retry_policy": policy}
    result = dg.materialize([declare(staging, **arguments)], resources={"io_manager": manager})
    assert result.success
    staged = 2 if declare is collection else 1
    assert set(manager.staged) == {staged}
    for rows in manager.rows:
        assert_frame_equal(rows, ROWS)
    assert len(manager.rows) == staged
    assert list(staging.iterdir()) == []


def test_checks_of_a_stored_table_are_reported_after_its_staged_rows_are_gone(
    staging: Path,
) -> None:
    seen = [
        len(list(staging.iterdir()))
        for _ in dd.wiring.evaluate(Orders, ROWS.lazy(), asset="orders", temp_dir=staging)
    ]
    assert seen == [0, 0, 0]
