"""Say in the check of columns and dtypes which values `dd.parse` could not parse."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._cells import MAX_CHARACTERS, REDACTED
from dagster_dataframely._checks.descriptions import Fate, describe_lost
from dagster_dataframely._checks.results import copy_result, worst_severity
from dagster_dataframely._metadata.budget import fit, share
from dagster_dataframely._metadata.tables import rows_table
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.original import failed_in, lost_value
from dagster_dataframely._schema.rules import Rule
from dagster_dataframely._schema.words import describe_dtype
from dagster_dataframely._text import cut, printable
from dagster_dataframely._validation.verdict import Verdict

_MOST = 5
"""Values of a column."""

_MAX_VALUE = 40
"""Characters of a value."""

_VALUE, _TIMES = "dy_value", "dy_times"


def add_lost_values(
    check: dg.AssetCheckResult,
    declaration: Declaration,
    verdict: Verdict[Any] | None,
    fate: Fate,
    metadata: Mapping[str, Any],
) -> dg.AssetCheckResult:
    """The check of columns and dtypes, failed where values were lost; without a verdict as it is.

    It warns where the rows were set aside, or the rules only warn.
    """
    both = {**check.metadata, **metadata}
    failed = [
        rule for rule in declaration.rules.dtype_rules if verdict and verdict.counts[rule.name]
    ]
    if not failed or verdict is None:
        return copy_result(check, metadata=both)
    warns = worst_severity(failed) == "warn" or fate is Fate.SET_ASIDE
    return copy_result(
        check,
        passed=False,
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description=describe_lost(failed, verdict, fate),
        metadata=both,
    )


def count_lost_values(declaration: Declaration, verdict: Verdict[Any]) -> dict[str, Any]:
    """A table of the columns that lost values, with the most frequent ones, as metadata."""
    rules = declaration.rules
    failed = [rule for rule in rules.dtype_rules if verdict.counts[rule.name]]
    if not failed:
        return {}
    every = pl.repeat(value=True, n=verdict.rows_in, dtype=pl.Boolean, eager=True)
    rows: pl.LazyFrame = verdict.rows.where(every, rules.row_columns).lazy()
    table = rows_table(
        [_row(declaration, rule, rows, verdict.counts[rule.name]) for rule in failed],
        noun="column",
    )
    return {_names.CAST_FAILURES_TABLE: fit(table, share(declaration.settings, "column errors"))}


def _row(
    declaration: Declaration, rule: Rule, rows: pl.LazyFrame, number: int
) -> Mapping[str, Any]:
    column = str(rule.column)
    lost = rows.select(_names.ORIGINAL).filter(failed_in(column))
    values = lost.select(lost_value(column).alias(_VALUE)).drop_nulls()
    counted = values.group_by(_VALUE).agg(pl.len().alias(_TIMES))
    first = counted.sort(_TIMES, _VALUE, descending=[True, False]).head(_MOST)
    found = first.collect(engine="streaming").rows()
    return {
        "column": column,
        "found": _found(found),
        "declared": describe_dtype(declaration.rules.columns[column], MAX_CHARACTERS),
        "values": number,
        "most_frequent": REDACTED if column in declaration.rules.redacted else _listed(found),
    }


def _found(values: Sequence[tuple[str, int]]) -> str:
    """The dtype of lost values: text, or whatever JSON has no quotes for."""
    return "String" if values and values[0][0].startswith('"') else "another dtype"


def _listed(values: Sequence[tuple[str, int]]) -> str:
    texts = [(json.loads(v) if v.startswith('"') else v, times) for v, times in values]
    return ", ".join(f'"{cut(printable(text), _MAX_VALUE)}" ({times:,})' for text, times in texts)
