"""Hold what the rules say of a frame."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._validation.uniqueness import Duplicates

SURVIVES = "dy_survives"
"""A Boolean column beside the rules': false for an error row."""


_ROWS = "dy_rows"


Flags = Mapping[str, pl.Series]
"""Whether each row passes a rule, in the frame's order, by rule; null where none looked at it."""


@dataclass(frozen=True, eq=False)
class RowsByRule(Mapping[str, pl.DataFrame]):
    """Rows by rule, gathered each time they are asked for.

    Thousands of rules may fail, and a frame of thousands of columns takes megabytes without a row.
    """

    gather: Mapping[str, Callable[[], pl.DataFrame]]

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self.gather[name]()

    def __contains__(self, name: object) -> bool:
        return name in self.gather

    def __iter__(self) -> Iterator[str]:
        return iter(self.gather)

    def __len__(self) -> int:
        return len(self.gather)


@dataclass(frozen=True)
class Findings:
    """How many rows of one frame fail each rule, and some of them."""

    counts: Mapping[str, int]
    """For every rule, how many rows fail it, 0 included; for a rule over the whole table, 1 where the
    survivors fail it."""
    samples: Mapping[str, pl.DataFrame]
    """For each rule that fails, the first rows that do: the schema's columns, and `dy_original` of
    parsed rows. For a uniqueness rule one row for each key; for one over the whole table none."""
    duplicates: Mapping[str, Duplicates]
    """For each uniqueness rule that rows fail."""

    def failed(self, rules: Iterable[Rule]) -> dict[str, int]:
        """The rules among these that fail, with their counts, in the order given."""
        return {rule.name: self.counts[rule.name] for rule in rules if self.counts[rule.name]}


@dataclass(frozen=True)
class StagedFile:
    """A Parquet file with all rows of a table and no others."""

    path: Path
    options: Mapping[str, Any]
    """What `sink_parquet` was told besides the path."""


class Rows[Frame: (pl.DataFrame, pl.LazyFrame)](Protocol):
    """Every row of an evaluated frame. A mask has one value for each row, in the frame's order."""

    def settle(self, survives: pl.Series) -> None:
        """Divide the rows: those that a mask is true for are the table, the others error rows."""

    def where(self, mask: pl.Series, columns: Sequence[str] | None = None) -> Frame:
        """Return the rows that a mask is true for: the schema's columns, or others.

        The rows of the table are in their order, and so are the error rows; together they need not be.
        """

    def flagged(self, flags: Flags, mask: pl.Series) -> Frame:
        """Return the same rows with a flag for each rule: those given, and those stored with rows."""

    def at(self, positions: Sequence[int]) -> pl.DataFrame:
        """Return the rows at some positions: the schema's columns, and `dy_original` of parsed rows."""

    def whole_file(self, mask: pl.Series) -> StagedFile | None:
        """Return the file that has exactly the rows that a mask is true for, if there is one."""


@dataclass(frozen=True)
class Verdict[Frame: (pl.DataFrame, pl.LazyFrame)](Findings):
    """What the rules say of one frame: of every row, and of the rows that are left as a table."""

    rows: Rows[Frame]
    rows_in: int
    survives: pl.Series
    """Whether each row passes all error rules, in the frame's order."""
    flags: Flags
    """Those that are not stored with the rows."""
    error_count: int

    @property
    def survivor_count(self) -> int:
        """How many rows fail no error rule."""
        return self.rows_in - self.error_count

    @cached_property
    def survivors(self) -> Frame:
        """The rows that fail no error rule: the schema's columns, in the frame's row order."""
        self.rows.settle(self.survives)
        return self.rows.where(self.survives)

    @cached_property
    def error_rows(self) -> Frame:
        """The other rows, in the frame's row order, with a flag for each rule about rows."""
        self.rows.settle(self.survives)
        return self.rows.flagged(self.flags, ~self.survives)

    @property
    def staged_file(self) -> StagedFile | None:
        """The file that has the survivors and nothing else, if there is one."""
        self.rows.settle(self.survives)
        return self.rows.whole_file(self.survives)

    @property
    def flagged(self) -> Frame:
        """Every row, in any order, with a flag for each rule about rows, and `SURVIVES`."""
        every = pl.repeat(value=True, n=self.rows_in, dtype=pl.Boolean, eager=True)
        return self.rows.flagged({**self.flags, SURVIVES: self.survives}, every)


def rule_combinations(
    error_rows: pl.DataFrame | pl.LazyFrame, rules: SchemaRules
) -> list[tuple[list[str], int]]:
    """The sets of rules that rows fail together with the number of rows, biggest first.

    Where sets are equally big, the one that fails the earlier rule comes first.
    """
    names = [rule.name for rule in rules.row_rules]
    # A filter of a collection says nothing of a row that failed a rule.
    flags = error_rows.lazy().select(pl.col(name).fill_null(value=True) for name in names)
    sets = flags.group_by(names).agg(pl.len().alias(_ROWS)).collect(engine="streaming")
    biggest_first = sets.sort(_ROWS, *names, descending=[True, *([False] * len(names))])
    return [
        ([name for name, passes in zip(names, flags, strict=True) if not passes], rows)
        for *flags, rows in biggest_first.select(*names, _ROWS).iter_rows()
    ]
