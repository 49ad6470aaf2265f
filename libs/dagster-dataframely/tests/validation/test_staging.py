"""The folder of staged rows goes, however the run ends."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dagster_dataframely._validation import staging as _staging
from dagster_dataframely._validation.staging import stage_rows, staging_folder
from dagster_dataframely.errors import StagingError


def full_disk(*_args: Any, **_kwargs: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_as_polars_says_it(*_args: Any, **_kwargs: Any) -> None:
    message = "No space left on device (os error 28)"
    raise pl.exceptions.ComputeError(message)


@pytest.mark.parametrize("sink", [full_disk, full_disk_as_polars_says_it])
def test_a_full_disk_is_named_and_nothing_stays(
    sink: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", sink)
    with (
        pytest.raises(StagingError, match="Set `temp_dir`") as raised,
        staging_folder(tmp_path) as folder,
    ):
        stage_rows(pl.LazyFrame({"a": [1]}), folder, lambda _line: None)
    assert raised.value.directory == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_error_of_the_sink_passes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", fail)
    with pytest.raises(OSError, match="Input/output error"), staging_folder(tmp_path) as folder:
        stage_rows(pl.LazyFrame({"a": [1]}), folder, lambda _line: None)


LEAVE_A_FOLDER = """
import os, sys
from pathlib import Path
from dagster_dataframely._validation.staging import staging_folder
with staging_folder(Path(sys.argv[1])) as folder:
    Path(folder, "rows.parquet").write_bytes(b"half a file")
    os._exit(9)
"""


def test_the_folder_of_a_killed_process_is_removed_by_the_next_run(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", LEAVE_A_FOLDER, str(tmp_path)], check=False)
    assert killed.returncode == 9
    (orphan,) = tmp_path.iterdir()
    (tmp_path / "someone's own folder").mkdir()
    with staging_folder(tmp_path) as folder:
        assert {path.name for path in tmp_path.iterdir()} == {folder.name, "someone's own folder"}
    assert not orphan.exists()


def test_the_folder_of_a_running_process_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_process: int, _signal: int) -> None:
        raise PermissionError

    with staging_folder(tmp_path) as first:
        with staging_folder(tmp_path) as second:
            assert {first, second} == set(tmp_path.iterdir())
        monkeypatch.setattr(os, "kill", refuse)
        with staging_folder(tmp_path):
            assert first.exists()


@pytest.mark.parametrize("there", [True, False])
def test_the_folder_of_another_container_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool
) -> None:
    temp_dir, namespace = tmp_path / "temp", tmp_path / "namespace"
    temp_dir.mkdir()
    subprocess.run([sys.executable, "-c", LEAVE_A_FOLDER, str(temp_dir)], check=False)
    (theirs,) = temp_dir.iterdir()
    if there:
        namespace.touch()
    monkeypatch.setattr(_staging, "_PROCESS_IDS", namespace)
    with staging_folder(temp_dir) as ours:
        assert set(temp_dir.iterdir()) == {theirs, ours}


def test_no_process_is_signalled_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled: list[int] = []
    monkeypatch.setattr(os, "kill", lambda process, _signal: signalled.append(process))
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        running = _staging._is_running(1)
    assert (running, signalled) == (True, [])


def test_without_a_directory_the_systems_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with staging_folder(None) as folder:
        assert folder.parent == Path(tempfile.gettempdir())
