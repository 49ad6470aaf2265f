"""Rows for assets that are wired by hand."""

import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    """Rules of both severities, of a column and of the schema."""

    id = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True, min=0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))


CLEAN = pl.DataFrame({"id": [2, 1], "amount": [4, None], "note": ["a", None]})
"""No rule fails."""


SOME = pl.DataFrame({"id": [2, 1, 3], "amount": [4, -4, 5], "note": ["long", None, "a"]})
"""The first row fails a warn rule, the second an error rule."""


NONE_LEFT = SOME[1:2]
"""Only an error row."""


DRIFTED = SOME.drop("amount")
"""A column is missing."""


ERROR_ROWS = NONE_LEFT.with_columns(
    dy_rule__id__nullability=pl.lit("valid"),
    dy_rule__amount__min=pl.lit("invalid"),
    dy_rule__note__max_length=pl.lit("valid"),
    dy_rule__primary_key=pl.lit("valid"),
)
"""What the quarantine of either has."""


CHECKS = ["dy_schema__columns", *ERROR_ROWS.columns[3:]]


Checks = dict[str, tuple[bool, str]]


def all_checks(passing: str = "ERROR", **failing: str) -> Checks:
    own = dict.fromkeys(CHECKS, passing) | {"dy_rule__note__max_length": "WARN"}
    own |= {"dy_schema__columns": "ERROR"}
    return {name: (name not in failing, failing.get(name, own[name])) for name in CHECKS}


FAILING = {"dy_rule__amount__min": "ERROR", "dy_rule__note__max_length": "WARN"}
