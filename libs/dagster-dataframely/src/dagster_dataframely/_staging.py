"""A lazy plan run once onto disk, and cleaned up however the run ends."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

_PREFIX = "dagster-dataframely-"
_FILE = "rows.parquet"


@contextmanager
def staged(frame: pl.LazyFrame, temp_dir: Path | None) -> Iterator[pl.LazyFrame]:
    """Run the plan once, on the streaming engine, into a file and give a scan of that file.

    The file lies in a folder of its own below `temp_dir`, or below the system's temp directory, and
    is there as long as the context is open. An error of the plan comes out as Polars raises it.
    """
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=temp_dir) as folder:
        path = Path(folder, _FILE)
        frame.sink_parquet(path, engine="streaming")
        yield pl.scan_parquet(path)
