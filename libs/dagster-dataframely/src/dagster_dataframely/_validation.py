"""A frame and its `SchemaRules` to a `Verdict`; knows no Dagster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from dagster_dataframely._rules import Rule, SchemaRules


@dataclass(frozen=True)
class Verdict:
    """What the rules say of every row of one frame."""

    rows_in: int
    survivors: pl.DataFrame
    """The rows that fail no error rule: the schema's columns, in the frame's row order."""
    error_rows: pl.DataFrame
    """The rows that fail an error rule, with one Boolean column for each rule, named as the rule:
    false where the row fails it."""
    counts: Mapping[str, int]
    """For every rule, how many rows fail it; 0 included."""
    samples: Mapping[str, pl.DataFrame]
    """For each rule that rows fail, the first of them: the schema's columns."""

    def failed(self, rules: Iterable[Rule]) -> dict[str, int]:
        """The rules among these that rows fail, with their counts, in the order given."""
        return {rule.name: self.counts[rule.name] for rule in rules if self.counts[rule.name]}


def evaluate(frame: pl.DataFrame, rules: SchemaRules, *, sample: int) -> Verdict:
    """Evaluate every rule once over the frame and split it; the frame has the schema's columns.

    Where taking error rows away makes a rule written by hand fail for a row that had passed (`over`,
    aggregates), that row is an error row too, and so on until nothing more fails: what survives
    satisfies every error rule. `sample` bounds the rows kept as an example for each rule.
    """
    table = frame.select(rules.column_names)
    flags = _flags(table, rules.rules)
    survives = _all_true(flags, rules.error_rules, table.height)
    if rules.volatile_rules and not survives.all():
        flags, survives = _settle(table, flags, survives, rules.volatile_rules)
    return Verdict(
        rows_in=table.height,
        survivors=table if survives.all() else table.filter(survives),
        error_rows=table.hstack(flags.get_columns()).filter(~survives),
        counts={name: int((~flags[name]).sum()) for name in flags.columns},
        samples={
            name: table[(~flags[name]).arg_true().head(sample)]
            for name in flags.columns
            if not flags[name].all()
        },
    )


def rule_combinations(error_rows: pl.DataFrame, rules: SchemaRules) -> pl.DataFrame:
    """The sets of rules that rows fail together with the number of rows, biggest first.

    A list column `rules` and a column `rows`; where sets are equally big, the first rules come first.
    """
    names = [rule.name for rule in rules.rules]
    sets = error_rows.lazy().group_by(names, maintain_order=True).agg(pl.len().alias("rows"))
    return (
        sets.sort("rows", *names, descending=[True, *([False] * len(names))])
        .select(
            pl.concat_list(pl.when(~pl.col(name)).then(pl.lit(name)) for name in names)
            .list.drop_nulls()
            .alias("rules"),
            "rows",
        )
        .collect()
    )


def _flags(table: pl.DataFrame, rules: Iterable[Rule]) -> pl.DataFrame:
    """One Boolean column for each rule; a null counts as true, as it does for Dataframely (3.1)."""
    rules = list(rules)
    # `with_columns` and not `select`: an expression that gives one value must fill every row.
    return (
        table.lazy()
        .with_columns(rule.expression.fill_null(value=True).alias(rule.name) for rule in rules)
        .select(rule.name for rule in rules)
        .collect()
    )


def _all_true(flags: pl.DataFrame, rules: Iterable[Rule], rows: int) -> pl.Series:
    names = [rule.name for rule in rules]
    if not names:
        # Polars gives a frame without columns no rows.
        return pl.repeat(value=True, n=rows, dtype=pl.Boolean, eager=True)
    return flags.select(pl.all_horizontal(names).alias("survives")).to_series()


def _settle(
    table: pl.DataFrame, flags: pl.DataFrame, survives: pl.Series, rules: tuple[Rule, ...]
) -> tuple[pl.DataFrame, pl.Series]:
    """Evaluate the rules again on what is left until none fails; each round takes rows away."""
    while survives.any():
        positions = survives.arg_true()
        again = _flags(table.filter(survives), rules)
        fails = ~_all_true(again, rules, again.height)
        if not fails.any():
            break
        flags = flags.with_columns(
            flags[name].scatter(positions.filter(~again[name]), False) for name in again.columns
        )
        survives = survives.scatter(positions.filter(fails), False)
    return flags, survives
