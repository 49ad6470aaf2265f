"""Hold what the rules say of a frame."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._validation.uniqueness import Duplicates

SURVIVES = "dy_survives"
"""A Boolean column beside the rules': false for an error row."""


_ROWS = "dy_rows"


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
    """For each rule that fails, the first rows that do: the schema's columns. For a uniqueness rule
    one row for each key; for a rule over the whole table none."""
    duplicates: Mapping[str, Duplicates]
    """For each uniqueness rule that rows fail."""

    def failed(self, rules: Iterable[Rule]) -> dict[str, int]:
        """The rules among these that fail, with their counts, in the order given."""
        return {rule.name: self.counts[rule.name] for rule in rules if self.counts[rule.name]}


@dataclass(frozen=True)
class Verdict[Frame: (pl.DataFrame, pl.LazyFrame)](Findings):
    """What the rules say of one frame: of every row, and of the rows that are left as a table."""

    rows_in: int
    error_count: int
    survivors: Frame
    """The rows that fail no error rule: the schema's columns, in the frame's row order."""
    flagged: Frame
    """Every row, with one Boolean column for each rule that says something of a row, named as the
    rule: false where the row fails it; and `SURVIVES`."""
    error_rows: Frame
    """The rows of `flagged` that fail an error rule, without `SURVIVES`."""

    @property
    def survivor_count(self) -> int:
        """How many rows fail no error rule."""
        return self.rows_in - self.error_count


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
