"""An asset that returns its input, and rows for it."""

from typing import Any

import dataframely as dy
import polars as pl

import dagster_dataframely as dd

VARIABLE = "DAGSTER_DATAFRAMELY_QUARANTINE_DIR"


class Orders(dy.Schema):
    """Two rules in all."""

    id = dy.Int64(primary_key=True, nullable=False)
    amount = dy.Int64(nullable=True, min=0, metadata=dd.severity(min="error"))


CLEAN = pl.DataFrame({"id": [2, 1], "amount": [5, None]})
"""No rule fails."""


SOME = pl.DataFrame({"id": [2, 1], "amount": [5, -5]})
"""The second row is an error row."""


NONE_LEFT = SOME[1:]
"""Only an error row."""


ERROR_ROWS = NONE_LEFT.with_columns(
    dy_rule__id__nullability=pl.lit("valid"),
    dy_rule__amount__min=pl.lit("invalid"),
    dy_rule__primary_key=pl.lit("valid"),
)
"""What the quarantine of either has."""


CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__amount__min",
    "dy_rule__primary_key",
]


def same(raw: Any) -> object:
    return raw
