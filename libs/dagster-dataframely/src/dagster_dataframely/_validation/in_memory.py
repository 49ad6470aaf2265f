"""Evaluate a DataFrame in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._validation.flags import (
    all_true,
    count_failing_tables,
    evaluate_flags,
    failing,
    settle,
    volatile_rules,
)
from dagster_dataframely._validation.uniqueness import (
    FoundDuplicates,
    duplicated_rows,
    find_duplicates,
    unknown_rows,
)
from dagster_dataframely._validation.verdict import Flags, RowsByRule, Verdict


def evaluate(frame: pl.DataFrame, rules: SchemaRules, *, sample: int) -> Verdict[pl.DataFrame]:
    """Evaluate every rule once over the frame and split it; the frame has the schema's columns.

    Where taking error rows away makes a rule over several rows fail for a row that had passed, that
    row is an error row too, and so on until nothing more fails: what survives satisfies every error
    rule. Rules over the whole table look at what survives. `sample` bounds the rows kept as an example
    for each rule.
    """
    table = in_one_chunk(frame.select(rules.row_columns))
    rules.reject_non_boolean(table.schema)
    rows = _Table(table, rules)
    flags, duplicates = _evaluate_rules(table, rules, sample)
    survives = all_true(flags, rules.error_rules, table.height)
    if not survives.all():
        volatile = volatile_rules(rules, table.schema)
        flags, survives = settle(rows, flags, survives, rules, volatile)
    counts = {name: int((~flag).sum() or 0) for name, flag in flags.items()}
    counts |= count_failing_tables(rows.where(survives).lazy(), rules)
    positions = {
        name: duplicates[name].first_rows
        if name in duplicates
        else failing(flags[name]).head(sample).to_list()
        for name in flags
        if counts[name]
    }
    return Verdict(
        rows=rows,
        rows_in=table.height,
        survives=survives,
        flags=flags,
        error_count=int((~survives).sum()),
        counts={rule.name: counts[rule.name] for rule in rules.rules},
        samples=RowsByRule({name: partial(rows.at, first) for name, first in positions.items()}),
        duplicates={name: duplicates[name].duplicates for name in duplicates if counts[name]},
    )


@dataclass(frozen=True)
class _Table:
    table: pl.DataFrame
    rules: SchemaRules

    def settle(self, _survives: pl.Series) -> None:
        """Do nothing: a mask is all it takes."""

    def where(self, mask: pl.Series, columns: Sequence[str] | None = None) -> pl.DataFrame:
        table = self.table.select(columns or self.rules.column_names)
        return table if mask.all() else table.filter(mask)

    def flagged(self, flags: Flags, mask: pl.Series) -> pl.DataFrame:
        return self.table.hstack([flag.alias(name) for name, flag in flags.items()]).filter(mask)

    def at(self, positions: Sequence[int]) -> pl.DataFrame:
        return self.table[positions]

    def whole_file(self, _mask: pl.Series) -> None:
        return None


def in_one_chunk(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with each nested column in one piece.

    Polars panics over some rules on structs and arrays in several chunks, as a concatenation leaves
    them (1.35 to 1.44).
    """
    nested = [column for column in frame.get_columns() if column.dtype.is_nested()]
    return frame.with_columns(column.rechunk() for column in nested)


def _evaluate_rules(
    table: pl.DataFrame, rules: SchemaRules, sample: int
) -> tuple[dict[str, pl.Series], dict[str, FoundDuplicates]]:
    """A Boolean column for each rule about rows, and the keys that uniqueness rules found twice."""
    others = [rule for rule in rules.row_rules if not rule.wants_unique]
    flags = {flag.name: flag for flag in evaluate_flags(table.lazy(), rules, others)}
    duplicates = {}
    for rule in rules.row_rules:
        if key := rules.unique_key(rule):
            keys = table.select(key)
            positions = duplicated_rows(keys, rule.expression, unknown := unknown_rows(table, rule))
            duplicates[rule.name] = find_duplicates(keys[positions], positions, sample)
            passes = pl.repeat(value=True, n=table.height, dtype=pl.Boolean, eager=True)
            flag = passes.scatter(positions, False).scatter(unknown, None)
            flags[rule.name] = flag.alias(rule.name)
    return {rule.name: flags[rule.name] for rule in rules.row_rules}, duplicates
