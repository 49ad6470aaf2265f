"""A schema with a column of each severity, and a frame for each exit."""

import math

import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd

Frame = pl.DataFrame | pl.LazyFrame


class Orders(dy.Schema):
    """A column of each severity, and a key."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))


ALL_CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__amount__nullability",
    "dy_rule__amount__min",
    "dy_rule__amount__inf",
    "dy_rule__amount__nan",
    "dy_rule__note__max_length",
    "dy_rule__primary_key",
]


CLEAN = pl.DataFrame({"id": [3, 1, 2], "amount": [1.0, 2.0, 0.0], "note": ["abc", None, ""]})
"""No rule fails; not sorted, so that a changed order shows."""


SOME = pl.DataFrame(
    {
        "id": [3, 1, 2, 2, 9],
        "amount": [1.0, -1.0, 5.0, 6.0, -2.0],
        "note": ["long note", None, "", None, None],
    }
)
"""Rows 2 and 5 have a negative amount, rows 3 and 4 share a key, and the survivor fails a warn rule."""


ALL_BAD = pl.DataFrame({"id": [1, 2], "amount": [-1.0, math.nan], "note": ["long note", None]})
"""Every row fails an error rule, and one a warn rule too."""


DRIFTED = pl.DataFrame({"extra": [1], "note": [1], "amount": ["1.0"]})
"""A key column that is missing, two columns of another dtype, one that is undeclared."""


RULE_COLUMNS = dict.fromkeys(ALL_CHECKS[1:], pl.String)


def as_eager(frame: pl.DataFrame) -> Frame:
    return frame


def as_lazy(frame: pl.DataFrame) -> Frame:
    return frame.lazy()


both = pytest.mark.parametrize("given", [as_eager, as_lazy])


def quarantined(rows: pl.DataFrame, **invalid: list[str]) -> pl.DataFrame:
    """Error rows with the rules each of them fails, by the index of the row."""
    words = {
        check: [
            "invalid" if check in invalid.get(f"row{i}", []) else "valid"
            for i in range(rows.height)
        ]
        for check in RULE_COLUMNS
    }
    return rows.hstack(pl.DataFrame(words, schema=RULE_COLUMNS))
