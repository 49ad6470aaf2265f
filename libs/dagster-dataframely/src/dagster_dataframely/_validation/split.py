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


class Split:
    """Takes the batches of a frame, in any order, and keeps what it finds in the frame's order."""

    def __init__(
        self, decide: Decide, path: Path, failed_bytes: int, beside: Sequence[str] = ()
    ) -> None:
        self.beside = beside
        """The columns that rows have, but not those of the file of rows that pass."""
        self.beside_files: list[Path] = []
        """These columns of the rows that pass; none where they are null."""
        self.has_beside = False
        self.kept: list[pl.DataFrame] = []
        self.failed_files: list[Path] = []
        """The rows that do not pass, with their positions and flags."""
        self.counts: Counter[str] = Counter()
        """How many rows have a flag that is false, by flag."""
        self.counts_of_failed: Counter[str] = Counter()
        """How many of the rows that do not pass have."""
        self.decide, self.path, self.failed_bytes = decide, path, failed_bytes
        self.lock = threading.Lock()
        self.early: dict[int, tuple[pl.Series, pl.DataFrame, pl.DataFrame]] = {}
        """Batches that came before an earlier one, by their first position."""
        self.expected = 0
        self.passes = [pl.Series(dtype=pl.Boolean)]
        self.failed: list[pl.DataFrame] = []

    def run(self, rows: pl.LazyFrame, schema: pl.Schema, options: Mapping[str, Any]) -> pl.Series:
        """Write the rows once, on the streaming engine, and return whether each one passes.

        Those that pass are written with this schema. Each batch is decided upon by itself. As
        expressions of a plan, rules are not always: for `is_in`, Polars joins, and rows pile up before
        that (1.44: 2.7 GB where 1.0 is enough).
        """

        def split(batch: pl.DataFrame) -> pl.DataFrame:
            passes, flags = self.decide(batch)
            found = batch.select(POSITION, *schema, *self.beside).hstack(flags).filter(~passes)
            kept = batch.select(self.beside).filter(passes) if self.beside else pl.DataFrame()
            if not batch.is_empty():
                with self.lock:
                    self.take(batch[POSITION][0], passes, found, flags, kept)
            return (batch if found.is_empty() else batch.filter(passes)).select(*schema)

        passing = rows.with_row_index(POSITION).map_batches(
            split,
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
            schema=schema,
            validate_output_schema=False,
            streamable=True,
        )
        sink_rows(passing, self.path, options)
        with naming_a_full_disk(self.path.parent.parent):
            self.write_failed()
            self.write_beside()
            if not self.has_beside:
                self.beside_files = []
        return pl.concat(self.passes).rechunk()

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
            if not failed.is_empty():
                self.failed.append(failed)
            if not kept.is_empty():
                self.kept.append(kept)
                self.has_beside = self.has_beside or any(c.count() for c in kept.get_columns())
        if sum(kept.estimated_size() for kept in self.kept) > self.failed_bytes:
            self.write_beside()
        if sum(failed.estimated_size() for failed in self.failed) > self.failed_bytes:
            self.write_failed()

    def write_failed(self) -> None:
        """Write the rows aside that are in order."""
        if self.failed:
            name = f"{self.path.stem}-failed-{len(self.failed_files)}.parquet"
            self.failed_files.append(self.path.with_name(name))
            pl.concat(self.failed).write_parquet(self.failed_files[-1], **UNPUBLISHED)
            self.failed = []

    def write_beside(self) -> None:
        """Write what goes beside the rows that pass and are in order."""
        if self.kept:
            name = f"{self.path.stem}-beside-{len(self.beside_files)}.parquet"
            self.beside_files.append(self.path.with_name(name))
            pl.concat(self.kept).write_parquet(self.beside_files[-1], **UNPUBLISHED)
            self.kept = []


def _count(flags: pl.DataFrame) -> dict[str, int]:
    return flags.select(pl.all().not_().sum()).row(0, named=True) if flags.width else {}
