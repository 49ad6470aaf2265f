"""Evaluate the checks of a frame without a policy: nothing is written."""

from collections.abc import Callable, Iterator, Set
from dataclasses import replace

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._checks.descriptions import Fate
from dagster_dataframely._checks.lost_values import add_lost_values, count_lost_values
from dagster_dataframely._checks.results import (
    column_schema_error,
    columns_check_result,
    rule_check_results,
)
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.parsed import judge_parsed
from dagster_dataframely._validation.evaluate import evaluate_frame


def evaluate_checks(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame, log: Callable[[str], None]
) -> Iterator[dg.AssetCheckResult]:
    """The results of all checks; only another column schema raises."""
    found = frame.collect_schema()
    declaration = replace(declaration, rules=judge_parsed(declaration.rules, found))
    check = columns_check_result(declaration, found)
    if not (check.passed and declaration.rules.parsed):
        yield check
    reject_other_columns(declaration, frame)
    with evaluate_frame(declaration, frame, log) as verdict:
        results = list(rule_check_results(declaration, verdict))
        if declaration.rules.parsed:
            lost = count_lost_values(declaration, verdict)
            first = add_lost_values(check, declaration, verdict, Fate.REPORTED, lost)
            results.insert(0, first)
    yield from results


def evaluate_stored(
    declaration: Declaration,
    frame: pl.DataFrame | pl.LazyFrame,
    wanted: Set[str],
    log: Callable[[str], None],
) -> Iterator[dg.AssetCheckResult]:
    """The results of the wanted checks of a stored table, reading the columns that these name."""
    if _names.COLUMNS_CHECK in wanted:
        yield columns_check_result(declaration, frame.collect_schema())
        reject_other_columns(declaration, frame, stored=True)
    groups = [group for group in declaration.groups if group.check_name in wanted]
    if not groups:
        return
    rules = declaration.rules.narrowed(rule for group in groups for rule in group.rules)
    some = replace(declaration, rules=rules)
    reject_other_columns(some, frame, stored=True)
    # No row of a stored table is removed, so a check finds the same whether others run or not.
    with evaluate_frame(replace(some, rules=rules.warning()), frame, log) as verdict:
        results = list(rule_check_results(some, verdict))
    yield from results


def reject_other_columns(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame, *, stored: bool = False
) -> None:
    """Reject a frame without the declared columns and dtypes; a lazy plan does not run."""
    if error := column_schema_error(declaration, frame.collect_schema(), stored=stored):
        raise error
