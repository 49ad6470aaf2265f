"""Stage rows on disk, in a folder that goes however the run ends."""

import atexit
import errno
import functools
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from dagster_dataframely._text import count
from dagster_dataframely._typing import Log
from dagster_dataframely.errors import StagingError

_PREFIX = "dagster-dataframely"


_FILE = "rows.parquet"


_PROCESS_IDS = Path("/proc/self/ns/pid")
"""The namespace of process ids, on Linux: each container usually has its own."""


@contextmanager
def staging_folder(temp_dir: Path | None) -> Iterator[Path]:
    """A folder below `temp_dir`, or below the system's, that is there while the context is open.

    Folders that a killed process of this machine left behind are removed first.
    """
    parent = Path(tempfile.gettempdir() if temp_dir is None else temp_dir)
    owner = _owner()
    _remove_orphans(parent, owner)
    folder = Path(tempfile.mkdtemp(prefix=f"{owner}{os.getpid()}-", dir=parent))
    remove = functools.partial(shutil.rmtree, folder, ignore_errors=True)
    # Where an IO manager fails, Dagster keeps the generator that waits here for as long as the error.
    atexit.register(remove)
    try:
        yield folder
    finally:
        remove()
        atexit.unregister(remove)


def stage_rows(plan: pl.LazyFrame, folder: Path, log: Log) -> pl.LazyFrame:
    """Run a plan once, on the streaming engine, into a file and give a scan of that file.

    An error of the plan comes out as Polars raises it; a full disk as a `StagingError`.
    """
    path = folder / _FILE
    start = time.monotonic()
    try:
        # Statistics would only help a reader that filters by value, and none does.
        plan.sink_parquet(path, compression="lz4", statistics=False, engine="streaming")
    except (OSError, pl.exceptions.ComputeError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
            raise StagingError(str(folder.parent)) from error
        raise
    rows = pl.scan_parquet(path, glob=False)
    log(
        f"Staged {count(rows.select(pl.len()).collect().item(), 'row')}, "
        f"{count(path.stat().st_size, 'byte')}, "
        f"in {time.monotonic() - start:.1f} s."
    )
    return rows


def _owner() -> str:
    """Where a process id means one process; containers can share a host name and a directory."""
    try:
        namespace = _PROCESS_IDS.stat().st_ino
    except OSError:
        namespace = 0
    return f"{_PREFIX}-{socket.gethostname()}-{namespace}-"


def _remove_orphans(parent: Path, owner: str) -> None:
    for folder in parent.glob(f"{owner}*"):
        process = re.match(r"\d+", folder.name.removeprefix(owner))
        if process and not _is_running(int(process[0])):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # There, signal 0 is Ctrl+C. So nothing is removed.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
