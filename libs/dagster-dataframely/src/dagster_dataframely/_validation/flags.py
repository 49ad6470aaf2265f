"""Evaluate rules as Boolean columns, again and again until nothing more fails."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import polars as pl

from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._upstream.polars import look_at_one_row
from dagster_dataframely._validation.verdict import SURVIVES
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
    """One Boolean column for each wanted rule; a null counts as true, as in Dataframely (3.1)."""
    # `with_columns` and not `select`: an expression that gives one value must fill every row.
    flagged = table.with_columns(flag_expression(rule) for rule in wanted)
    with naming_the_rule(table, rules, wanted):
        return flagged.select(rule.name for rule in wanted).collect()


def flag_expression(rule: Rule) -> pl.Expr:
    """The rule as a Boolean column under its name, without nulls."""
    return rule.expression.fill_null(value=True).alias(rule.name)


def all_true(flags: pl.DataFrame, rules: Iterable[Rule], rows: int) -> pl.Series:
    """Whether a row passes all of these rules."""
    names = [rule.name for rule in rules]
    if not names:
        # Polars gives a frame without columns no rows.
        return pl.repeat(value=True, n=rows, dtype=pl.Boolean, eager=True)
    return flags.select(pl.all_horizontal(names).alias(SURVIVES)).to_series()


def settle(
    table: pl.LazyFrame,
    flags: pl.DataFrame,
    survives: pl.Series,
    rules: SchemaRules,
    volatile: Sequence[Rule],
) -> tuple[pl.DataFrame, pl.Series]:
    """Evaluate volatile rules again on what is left until none fails; each round removes rows."""
    while volatile and survives.any():
        positions = survives.arg_true()
        again = evaluate_flags(keep(table, survives), rules, volatile)
        fails = ~all_true(again, volatile, again.height)
        if not fails.any():
            break
        flags = flags.with_columns(
            flags[name].scatter(positions.filter(~again[name]), False) for name in again.columns
        )
        survives = survives.scatter(positions.filter(fails), False)
    return flags, survives


def keep(table: pl.LazyFrame, survives: pl.Series) -> pl.LazyFrame:
    """The rows of a table that a mask of the same height is true for."""
    return table.with_columns(survives.alias(SURVIVES)).filter(SURVIVES).drop(SURVIVES)
