"""Stage rows on disk, in a folder that goes however the run ends."""

import atexit
import errno
import functools
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from dagster_dataframely._text import count
from dagster_dataframely._typing import Log
from dagster_dataframely.errors import StagingError

_PREFIX = "dagster-dataframely"


ROWS_FILE = "rows.parquet"


UNPUBLISHED: Mapping[str, Any] = MappingProxyType({"compression": "lz4", "statistics": False})
"""How rows are written that nobody but this run reads; it filters by no value."""


_LOCK = "lock"


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""The running kernel, on Linux: the same in all containers of a machine, and on no other machine."""


_FULL = (errno.ENOSPC, errno.EDQUOT)
"""No space or inode is left on the disk, or in the user's quota."""


@contextmanager
def staging_folder(temp_dir: Path | None) -> Iterator[Path]:
    """A folder below `temp_dir`, or below the system's, that is there while the context is open.

    Folders that a killed process left behind are removed first.
    """
    parent = Path(tempfile.gettempdir() if temp_dir is None else temp_dir)
    prefix = f"{_PREFIX}-{_kernel()}-{parent.stat().st_dev:x}-"
    _remove_orphans(parent, prefix)
    with ExitStack() as stack:
        with naming_a_full_disk(parent):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            remove = functools.partial(shutil.rmtree, folder, ignore_errors=True)
            # A direct invocation that is broken off may wait here until the interpreter ends.
            atexit.register(remove)
            stack.callback(atexit.unregister, remove)
            stack.callback(remove)
            stack.enter_context(_locked(folder))
        yield folder


def stage_rows(plan: pl.LazyFrame, folder: Path, log: Log) -> pl.LazyFrame:
    """Run a plan once into a file, and return a scan of that file."""
    start = time.monotonic()
    path = folder / ROWS_FILE
    sink_rows(plan, path, UNPUBLISHED)
    rows = pl.scan_parquet(path, glob=False)
    log(
        f"Staged {count(rows.select(pl.len()).collect().item(), 'row')}, "
        f"{count(path.stat().st_size, 'byte')}, "
        f"in {time.monotonic() - start:.1f} s."
    )
    return rows


def sink_rows(plan: pl.LazyFrame, path: Path, options: Mapping[str, Any]) -> None:
    """Run a plan, on the streaming engine, into a file of a staging folder.

    An error of the plan comes out as Polars raises it; a full disk as a `StagingError`.
    """
    with naming_a_full_disk(path.parent.parent):
        plan.sink_parquet(path, **options, engine="streaming")


@contextmanager
def naming_a_full_disk(directory: Path) -> Iterator[None]:
    """Raise a `StagingError` where no space, inode or quota is left."""
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        # Polars gives the system's words.
        if getattr(error, "errno", None) in _FULL or any(
            os.strerror(number) in str(error) for number in _FULL
        ):
            raise StagingError(str(directory)) from error
        raise


def _kernel() -> str:
    """The kernel that the process runs under.

    Locks keep out processes under the same kernel and on the same mount; on some network disks, no
    others. So the names of folders begin with both.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return socket.gethostname()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock in a folder. A file is locked before it gets the name that others look for."""
    descriptor, unnamed = tempfile.mkstemp(dir=folder)
    try:
        if _lock(descriptor):
            Path(unnamed).rename(folder / _LOCK)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file until the process closes it or ends; false where that cannot be done."""
    try:
        import fcntl  # noqa: PLC0415 - Windows has none.

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_orphans(parent: Path, prefix: str) -> None:
    """Remove this user's folders whose lock nobody holds; none on Windows."""
    if not hasattr(os, "geteuid"):
        return
    with suppress(OSError):
        for folder in parent.iterdir():
            if folder.name.startswith(prefix) and folder.lstat().st_uid == os.geteuid():
                _remove_orphan(folder)


def _remove_orphan(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder / _LOCK, os.O_RDWR)
        try:
            if _lock(descriptor):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
