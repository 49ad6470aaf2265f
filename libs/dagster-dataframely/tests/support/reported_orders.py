"""A schema with rules of both severities, and frames that fail them."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from support.declare import declare

import dagster_dataframely as dd


class Orders(dy.Schema):
    """Error rules, a warn rule, and a rule over the whole table."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(nullable=True, min=0.0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))

    @dd.rule(severity="warn")
    def many(cls) -> pl.Expr:
        """There are four rows."""
        return pl.len() >= 4


CLEAN = pl.DataFrame(
    {"id": range(1_000), "amount": [1.0] * 1_000, "note": [None] * 1_000},
    schema=Orders.create_empty().schema,
)


DIRTY = pl.DataFrame(
    {"id": [1, 2, 3, 3, 4], "amount": [1.0, -1.0, 1.0, 1.0, -2.0], "note": ["x", "long", *"abc"]}
)
"""Rows 2 and 5 have a negative amount, 3 and 4 share a key, and the one that is left is too few."""


class One(dy.Schema):
    """A rule."""

    a = dy.Int64(nullable=True, min=0)


NO_CHANGE = "No change since the last materialization."


def changes(metadata: dict[str, Any] | None) -> str | None:
    assert metadata is not None
    last = metadata["dataframely/report"].splitlines()[-1]
    return last.partition("Since the last materialization: ")[2] or (
        last if last == NO_CHANGE else None
    )


def wide(columns: int, value: int, name: str = "c", **settings: Any) -> dg.AssetsDefinition:
    """An asset with a rule for each column, and a row that fails all of them if the value does."""
    members = {f"{name}{number}": dy.Int64(nullable=True, min=0) for number in range(columns)}
    frame = pl.DataFrame({column: [1, value] for column in members})
    schema = type("Wide", (dy.Schema,), members)
    arguments: dict[str, Any] = {"quarantine": True, "check_granularity": "schema"} | settings
    return declare(schema, frame, name="orders", **arguments)
