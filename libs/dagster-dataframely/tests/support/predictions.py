"""What Dataframely says of a frame, from which a test predicts what the library does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from hypothesis import reject
from support.strategies import OVER_TABLES, TALLY

import dagster_dataframely as dd
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import SchemaRules

ROW = "dy_row"
"""Numbers the rows; no schema that is taken has a column of this name."""


def check_name(rule: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", rule.replace("|", "__"))


def refusal(schema: type[dy.Schema]) -> type[Exception] | None:
    """The error that a declaration with this schema raises."""
    if any(name.startswith("dy_") for name in schema.column_names()):
        return dd.errors.ReservedColumnError
    rules = [check_name(rule) for rule in schema._validation_rules(with_cast=False)]
    return dd.errors.CheckNameCollisionError if len(set(rules)) < len(rules) else None


@dataclass(frozen=True)
class Prediction:
    survivors: pl.DataFrame
    error_rows: pl.DataFrame
    """With a column for each rule that any row of the frame fails: whether this row does."""
    counts: Mapping[str, int]
    """For each rule that fails, how many rows fail it; 1 for a rule over the whole table."""

    @property
    def failing_tables(self) -> set[str]:
        return self.counts.keys() & OVER_TABLES.keys()


def failing_rows(numbered: type[dy.Schema], frame: pl.DataFrame) -> dict[str, set[int]]:
    # In one chunk: Polars panics over the fields of a struct in several (1.44).
    _, failure = numbered.filter(frame.rechunk())
    counts = failure.counts()
    details = failure.details() if counts else frame
    return {
        rule: set(details.filter(pl.col(rule) == "invalid")[ROW])
        for rule in counts
        if rule not in OVER_TABLES
    }


def predict(schema: type[dy.Schema], frame: pl.DataFrame, error_rules: set[str]) -> Prediction:
    """Filter with Dataframely until no error rule takes another row away, then look at the table."""
    numbered: Any = type("Numbered", (schema,), {ROW: dy.UInt32(nullable=True)})
    rows = frame.with_columns(pl.int_range(frame.height, dtype=pl.UInt32).alias(ROW))
    left, newly = rows, failing_rows(numbered, rows)
    failing = dict(newly)
    while gone := set[int]().union(*(newly[rule] for rule in error_rules & newly.keys())):
        left = left.filter(~pl.col(ROW).is_in(list(gone)))
        newly = failing_rows(numbered, left)
        for rule in error_rules & newly.keys():
            failing[rule] = failing.get(rule, set()) | newly[rule]
    lost = rows.filter(~pl.col(ROW).is_in(list(left[ROW])))
    flags = [pl.col(ROW).is_in(list(failed)).alias(rule) for rule, failed in failing.items()]
    tables = {
        name: left.select(rule.expr).item()
        for name, rule in schema._schema_validation_rules().items()
        if name in OVER_TABLES
    }
    return Prediction(
        survivors=left.drop(ROW),
        error_rows=lost.with_columns(flags).drop(ROW),
        counts={rule: len(failed) for rule, failed in failing.items()}
        | {rule: 1 for rule, holds in tables.items() if holds is False},
    )


def read(schema: type[dy.Schema]) -> SchemaRules:
    """Read a schema that can be read; one that cannot has to be refused with its error."""
    TALLY["schemas"] += 1
    if (error := refusal(schema)) is not None:
        with pytest.raises(error) as raised:
            read_schema(schema)
        assert len(str(raised.value)) <= 300
        TALLY[error.__name__] += 1
        reject()
    rules = read_schema(schema)
    TALLY["rules"] += len(rules.rules)
    return rules
