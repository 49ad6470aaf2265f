"""Split rows while they are written: those that pass into one file, the others into files aside."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dagster_dataframely._validation.staging import UNPUBLISHED, naming_a_full_disk, sink_rows

POSITION = "dy_position"
"""Where a row is in the frame that is split, counted from 0."""


Decide = Callable[[pl.DataFrame], tuple[pl.Series, pl.DataFrame]]
"""Says of each row of a batch whether it passes, with flags to keep of those that do not."""


class SetAside:
    """Rows that are set aside in files while the engine of Polars runs.

    A batch must not make the engine write Parquet: it would wait for itself (1.36 to 1.40) or panic
    (1.41, 1.42). A stream of Arrow's is written without the engine.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self.max_bytes = path, max_bytes
        self.streams: list[Path] = []
        self.rows: list[pl.DataFrame] = []
        self.size: float = 0

    def add(self, rows: pl.DataFrame) -> None:
        """Take the rows that come next."""
        if rows.is_empty():
            return
        self.rows.append(rows)
        self.size += rows.estimated_size()
        if self.size > self.max_bytes:
            self.write()

    def write(self) -> None:
        """Write what is in memory."""
        stream = self.path.with_name(f"{self.path.stem}-{len(self.streams)}.arrows")
        pl.concat(self.rows).write_ipc_stream(stream, compression="lz4")
        self.streams.append(stream)
        self.rows, self.size = [], 0

    def publish(self) -> list[Path]:
        """Write all rows as Parquet, which can be scanned, once the engine is done."""
        if self.rows:
            self.write()
        files = []
        for stream in self.streams:
            file = stream.with_suffix(".parquet")
            pl.read_ipc_stream(stream).write_parquet(file, **UNPUBLISHED)
            stream.unlink()
            files.append(file)
        return files


class Split:
    """Takes the batches of a frame, in any order, and keeps what it finds in the frame's order."""

    def __init__(
        self,
        decide: Decide,
        path: Path,
        schema: pl.Schema,
        failed_bytes: int,
        beside: Sequence[str] = (),
    ) -> None:
        self.beside = beside
        """The columns that rows have, but not those of the file of rows that pass."""
        self.beside_files: list[Path] = []
        """These columns of the rows that pass; none where they are null."""
        self.has_beside = False
        self.kept = SetAside(path.with_stem(f"{path.stem}-beside"), failed_bytes)
        self.failed_files: list[Path] = []
        """The rows that do not pass, with their positions and flags."""
        self.counts: Counter[str] = Counter()
        """How many rows have a flag that is false, by flag."""
        self.counts_of_failed: Counter[str] = Counter()
        """How many of the rows that do not pass have."""
        self.decide, self.path, self.schema = decide, path, schema
        self.failed = SetAside(path.with_stem(f"{path.stem}-failed"), failed_bytes)
        self.lock = threading.Lock()
        self.early: dict[int, tuple[pl.Series, pl.DataFrame, pl.DataFrame]] = {}
        """Batches that came before an earlier one, by their first position."""
        self.expected = 0
        self.passes = [pl.Series(dtype=pl.Boolean)]

    def run(self, rows: pl.LazyFrame, options: Mapping[str, Any]) -> pl.Series:
        """Write the rows once, on the streaming engine, and return whether each one passes.

        Each batch is decided upon by itself. As
        expressions of a plan, rules are not always: for `is_in`, Polars joins, and rows pile up before
        that (1.44: 2.7 GB where 1.0 is enough).
        """
        passing = rows.with_row_index(POSITION).map_batches(
            self.split,
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
            schema=self.schema,
            validate_output_schema=False,
            streamable=True,
        )
        sink_rows(passing, self.path, options)
        with naming_a_full_disk(self.path.parent.parent):
            self.failed_files = self.failed.publish()
            self.beside_files = self.kept.publish() if self.has_beside else []
        return pl.concat(self.passes).rechunk()

    def split(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a batch that pass, and set the others aside."""
        if batch.is_empty():
            return batch.select(*self.schema)
        passes, flags = self.decide(batch)
        failed = batch.select(POSITION, *self.schema, *self.beside).hstack(flags).filter(~passes)
        kept = batch.select(self.beside).filter(passes) if self.beside else pl.DataFrame()
        with self.lock:
            self.take(batch[POSITION][0], passes, failed, flags, kept)
        return (batch if failed.is_empty() else batch.filter(passes)).select(*self.schema)

    def take(
        self,
        first: int,
        passes: pl.Series,
        failed: pl.DataFrame,
        flags: pl.DataFrame,
        kept: pl.DataFrame,
    ) -> None:
        """Note what was decided of the batch whose first row is at a position."""
        self.counts.update(_count(flags))
        self.counts_of_failed.update(_count(failed.select(flags.columns)))
        self.early[first] = passes, failed, kept
        while self.expected in self.early:
            passes, failed, kept = self.early.pop(self.expected)
            self.expected += passes.len()
            self.passes.append(passes)
            self.failed.add(failed)
            self.kept.add(kept)
            self.has_beside = self.has_beside or any(c.count() for c in kept.get_columns())


def _count(flags: pl.DataFrame) -> dict[str, int]:
    return flags.select(pl.all().not_().sum()).row(0, named=True) if flags.width else {}
