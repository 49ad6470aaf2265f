"""Evaluate rules as Boolean columns, again and again until nothing more fails."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import polars as pl

from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._upstream.polars import look_at_one_row
from dagster_dataframely._validation.verdict import SURVIVES, Flags, Rows
from dagster_dataframely.errors import RuleEvaluationError


def count_failing_tables(table: pl.LazyFrame, rules: SchemaRules) -> dict[str, int]:
    """For each rule over the whole table, 1 where the table fails it and 0 where it does not."""
    flags = [flag_expression(rule) for rule in rules.table_rules]
    if not flags:
        return {}
    with naming_the_rule(table, rules, rules.table_rules):
        (found,) = table.select(flags).collect(engine="streaming").rows(named=True)
    return {name: int(not passes) for name, passes in found.items()}


@contextmanager
def naming_the_rule(
    table: pl.LazyFrame, rules: SchemaRules, evaluated: Iterable[Rule]
) -> Iterator[None]:
    """Name the rule that Polars, or its author's function, refuses to evaluate over a table."""
    try:
        yield
    except Exception:
        for rule in evaluated:
            try:
                table.with_columns(flag_expression(rule)).select(rule.name).collect()
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                if not rules.redacted.isdisjoint(rule.expression.meta.root_names()):
                    problem = f"{type(error).__name__}, about a redacted column"
                raise RuleEvaluationError(rules.name, rule.name, problem) from None
        raise


def row_wise_rules(rules: SchemaRules, wanted: Sequence[Rule], schema: pl.Schema) -> list[Rule]:
    """The rules among the wanted ones that look at one row at a time."""
    with naming_the_rule(pl.LazyFrame(schema=schema), rules, wanted):
        one_row = look_at_one_row({rule.name: rule.expression for rule in wanted}, schema)
    return [rule for rule in wanted if rule.name in one_row]


def volatile_rules(rules: SchemaRules, schema: pl.Schema) -> list[Rule]:
    """The error rules that may fail for a row only because other rows were taken away.

    Dataframely's own look at one row, except for the uniqueness rules, which taking rows away cannot
    break.
    """
    by_hand = [rule for rule in rules.error_rules if rule.written_by_hand]
    row_wise = {rule.name for rule in row_wise_rules(rules, by_hand, schema)}
    return [rule for rule in by_hand if rule.name not in row_wise]


def evaluate_flags(table: pl.LazyFrame, rules: SchemaRules, wanted: Sequence[Rule]) -> pl.DataFrame:
    """One Boolean column for each wanted rule; its null counts as true, as in Dataframely (3.1)."""
    # `with_columns` and not `select`: an expression that gives one value must fill every row.
    flagged = table.with_columns(flag_expression(rule) for rule in wanted)
    with naming_the_rule(table, rules, wanted):
        return flagged.select(rule.name for rule in wanted).collect()


def flag_batch(batch: pl.DataFrame, rules: SchemaRules, row_wise: Sequence[Rule]) -> pl.DataFrame:
    """A flag for each of some rules that look at one row."""
    with naming_the_rule(batch.lazy(), rules, row_wise):
        flagged = batch.with_columns(flag_expression(rule) for rule in row_wise)
    return flagged.select(rule.name for rule in row_wise)


def add_flags(table: pl.LazyFrame, rules: SchemaRules, row_wise: Sequence[Rule]) -> pl.LazyFrame:
    """The rows of a table with flags of rules that look at one row, evaluated a batch at a time."""
    flags = {rule.name: pl.Boolean() for rule in row_wise}
    return table.map_batches(
        lambda batch: batch.hstack(flag_batch(batch, rules, row_wise)),
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        schema=pl.Schema({**table.collect_schema(), **flags}),
        validate_output_schema=False,
        streamable=True,
    )


def flag_expression(rule: Rule) -> pl.Expr:
    """The rule as a Boolean column under its name; null where it says nothing of a row."""
    passes = rule.expression.fill_null(value=True)
    known = passes if rule.unknown is None else pl.when(~rule.unknown).then(passes)
    return known.alias(rule.name)


def failing(flag: pl.Series) -> pl.Series:
    """The positions of the rows that fail a rule."""
    return (~flag).fill_null(value=False).arg_true()


def all_true(flags: Flags, rules: Iterable[Rule], rows: int) -> pl.Series:
    """Whether each of so many rows passes all of these rules."""
    every = pl.repeat(value=True, n=rows, dtype=pl.Boolean, eager=True)
    passes = [flags[rule.name].fill_null(value=True) for rule in rules]
    return pl.select(pl.all_horizontal(every, *passes)).to_series()


def settle(
    rows: Rows[Any],
    flags: Flags,
    survives: pl.Series,
    rules: SchemaRules,
    volatile: Sequence[Rule],
) -> tuple[dict[str, pl.Series], pl.Series]:
    """Evaluate volatile rules again on what is left until none fails; each round removes rows."""
    settled = dict(flags)
    while volatile and survives.any():
        positions = survives.arg_true()
        left = rows.where(survives, rules.row_columns)
        again = evaluate_flags(left.lazy(), rules, volatile)
        fails = ~all_true(again.to_dict(), volatile, again.height)
        if not fails.any():
            break
        for name, passes in again.to_dict().items():
            settled[name] = settled[name].scatter(positions.filter(~passes), False)
        survives = survives.scatter(positions.filter(fails), False)
    return settled, survives


def keep(table: pl.LazyFrame, survives: pl.Series) -> pl.LazyFrame:
    """The rows of a table that a mask of the same height is true for."""
    return table.with_columns(survives.alias(SURVIVES)).filter(SURVIVES).drop(SURVIVES)
