"""Evaluate a DataFrame in memory."""

from functools import partial

import polars as pl

from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._validation.flags import (
    all_true,
    count_failing_tables,
    evaluate_flags,
    settle,
    volatile_rules,
)
from dagster_dataframely._validation.uniqueness import (
    FoundDuplicates,
    duplicated_rows,
    find_duplicates,
)
from dagster_dataframely._validation.verdict import SURVIVES, RowsByRule, Verdict


def evaluate(frame: pl.DataFrame, rules: SchemaRules, *, sample: int) -> Verdict[pl.DataFrame]:
    """Evaluate every rule once over the frame and split it; the frame has the schema's columns.

    Where taking error rows away makes a rule over several rows fail for a row that had passed, that
    row is an error row too, and so on until nothing more fails: what survives satisfies every error
    rule. Rules over the whole table look at what survives. `sample` bounds the rows kept as an example
    for each rule.
    """
    table = in_one_chunk(frame.select(rules.column_names))
    rules.reject_non_boolean(table.schema)
    flags, duplicates = _evaluate_rules(table, rules, sample)
    survives = all_true(flags, rules.error_rules, table.height)
    if not survives.all():
        volatile = volatile_rules(rules, table.schema)
        flags, survives = settle(table.lazy(), flags, survives, rules, volatile)
    survivors = table if survives.all() else table.filter(survives)
    counts = {name: int((~flags[name]).sum()) for name in flags.columns}
    counts |= count_failing_tables(survivors.lazy(), rules)
    positions = {
        name: duplicates[name].first_rows
        if name in duplicates
        else (~flags[name]).arg_true().head(sample)
        for name in flags.columns
        if counts[name]
    }
    flagged = table.hstack([*flags.get_columns(), survives.alias(SURVIVES)])
    return Verdict(
        rows_in=table.height,
        error_count=int((~survives).sum()),
        survivors=survivors,
        flagged=flagged,
        error_rows=flagged.filter(~survives).drop(SURVIVES),
        counts={rule.name: counts[rule.name] for rule in rules.rules},
        samples=RowsByRule(
            {name: partial(table.__getitem__, rows) for name, rows in positions.items()}
        ),
        duplicates={name: duplicates[name].duplicates for name in duplicates if counts[name]},
    )


def in_one_chunk(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with each nested column in one piece.

    Polars panics over some rules on structs and arrays in several chunks, as a concatenation leaves
    them (1.35 to 1.44).
    """
    nested = [column for column in frame.get_columns() if column.dtype.is_nested()]
    return frame.with_columns(column.rechunk() for column in nested)


def _evaluate_rules(
    table: pl.DataFrame, rules: SchemaRules, sample: int
) -> tuple[pl.DataFrame, dict[str, FoundDuplicates]]:
    """A Boolean column for each rule about rows, and the keys that uniqueness rules found twice."""
    others = [rule for rule in rules.row_rules if not rule.wants_unique]
    flags = {flag.name: flag for flag in evaluate_flags(table.lazy(), rules, others)}
    duplicates = {}
    for rule in rules.row_rules:
        if key := rules.unique_key(rule):
            keys = table.select(key)
            positions = duplicated_rows(keys, rule.expression)
            duplicates[rule.name] = find_duplicates(keys[positions], positions, sample)
            passes = pl.repeat(value=True, n=table.height, dtype=pl.Boolean, eager=True)
            flags[rule.name] = passes.scatter(positions, False).alias(rule.name)
    return pl.DataFrame([flags[rule.name] for rule in rules.row_rules]), duplicates
