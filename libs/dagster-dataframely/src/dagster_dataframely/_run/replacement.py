"""Replace a local Parquet file in one step: a reader finds the last table or the new one, whole."""

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dagster_dataframely._text import cut_start, printable
from dagster_dataframely._typing import Log
from dagster_dataframely._validation.staging import ROWS_FILE, sink_rows, staging_folder
from dagster_dataframely._validation.verdict import StagedFile

_DEFAULTS: Mapping[str, Any] = {
    "compression": "zstd",
    "compression_level": None,
    "statistics": True,
    "row_group_size": None,
    "data_page_size": None,
    "storage_options": None,
}
"""The options of `sink_parquet` that say how a file is written (1.35 to 2.1)."""


_MAX_PATH = 400
"""Characters of a path in the log."""


def replacing_in_one_step(
    frame: pl.LazyFrame, staged: StagedFile | None, temp_dir: Path | None, log: Log
) -> pl.LazyFrame:
    """Return the frame as one whose `sink_parquet` replaces a local file in one step.

    A staged file that has the same rows, written with the same options, is linked or copied there;
    otherwise the rows are written into a staging file first. Where `sink_parquet` is asked for
    anything else, as for an object in a store, Polars does it. A frame that is derived from this one
    is a plain one.
    """

    def sink_parquet(path: Any, **options: Any) -> Any:
        target = _local_file(path, options)
        if target is None:
            log("The rows are written as the IO manager asks, and not in one step.")
            return frame.sink_parquet(path, **options)
        shown = printable(cut_start(str(target), _MAX_PATH))
        try:
            if staged is not None and {**_DEFAULTS, **options} == {**_DEFAULTS, **staged.options}:
                log(f"The staged file is {_replace(target, staged.path)} {shown}.")
            else:
                with staging_folder(temp_dir) as folder:
                    sink_rows(frame, folder / ROWS_FILE, options)
                    done = _replace(target, folder / ROWS_FILE)
                log(f"The rows are written; the file is {done} {shown}.")
        except PermissionError:
            log(f"The rows are written over {shown}: its directory takes no other file.")
            return frame.sink_parquet(path, **options)
        return None

    replacing = frame.clone()
    # On this object alone: Polars makes derived frames from the class.
    vars(replacing)["sink_parquet"] = sink_parquet
    return replacing


def _local_file(path: object, options: Mapping[str, Any]) -> Path | None:
    """Return the local file that `sink_parquet` is asked to write with options that are known."""
    is_local = isinstance(path, Path) or (isinstance(path, str) and "://" not in path)
    if not is_local or not options.keys() <= _DEFAULTS.keys() or options.get("storage_options"):
        return None
    # A link stays one.
    target = Path(str(path)).resolve()
    return target if target.is_file() or not target.exists() else None


def _replace(target: Path, file: Path) -> str:
    """Put a file in place of another one; gives how, in words."""
    unfinished = target.with_name(f".{secrets.token_hex(8)}.unfinished")
    try:
        try:
            os.link(file, unfinished)
            done = "linked as"
        except OSError:
            # Another file system, or one without links. A new file: it follows no link.
            with file.open("rb") as source, unfinished.open("xb") as copy:
                shutil.copyfileobj(source, copy, 2**20)
            done = "copied to"
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return done
