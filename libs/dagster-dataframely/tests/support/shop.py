"""A collection of three members, and frames of it with and without error rows."""

from typing import Annotated

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Order(dy.Schema):
    """The head of an order."""

    id = dy.Int64(primary_key=True)
    total = dy.Int64(nullable=True, min=0)


class Line(dy.Schema):
    """Several for each order."""

    id = dy.Int64(primary_key=True)
    line = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True, max=9, metadata=dd.severity("warn"))


class Note(dy.Schema):
    """Has another key, so filters do not apply to it."""

    text = dy.String(primary_key=True, max_length=3)


class Shop(dy.Collection):
    """Two members with a common key, and two that may not be there."""

    orders: dy.DataFrame[Order]
    lines: dy.LazyFrame[Line]
    notes: Annotated[dy.DataFrame[Note] | None, dy.CollectionMember(ignored_in_filters=True)]

    @dy.filter()
    def has_lines(self) -> pl.LazyFrame:
        """An order has lines, and a line has an order."""
        return self.orders.lazy().join(self.lines, on="id", how="semi")


ORDERS = pl.DataFrame({"id": [1, 2], "total": [3, None]})


LINES = pl.DataFrame({"id": [1, 2, 2], "line": [1, 1, 2], "amount": [1, 20, None]})
"""One row warns."""


NOTES = pl.DataFrame({"text": ["abc"]})


CLEAN = {"orders": ORDERS, "lines": LINES, "notes": NOTES}


DIRTY = {
    "orders": pl.DataFrame({"id": [1, 2, 3, 4], "total": [1, 2, -3, 4]}),
    "lines": pl.DataFrame(
        {"id": [1, 1, 3, 4, 5], "line": [1, 2, 1, 1, 1], "amount": [1, 20, 3, 4, 50]}
    ),
    "notes": NOTES,
}
"""Order 3 fails a rule, so that its line has no order; order 2 has no line, and line 5 no order."""


ORDER_RULES = ["id__nullability", "total__min", "primary_key"]


LINE_RULES = ["id__nullability", "line__nullability", "amount__max", "primary_key"]


NOTE_RULES = ["text__nullability", "text__max_length", "primary_key"]


FAILED = {
    "orders": {"dy_rule__total__min": 1, "dy_filter__has_lines": 1},
    "lines": {"dy_rule__amount__max": 2, "dy_filter__has_lines": 2},
    "notes": {},
}


CHECKS = {
    "orders": [
        "dy_schema__columns",
        *(f"dy_rule__{rule}" for rule in ORDER_RULES),
        "dy_filter__has_lines",
    ],
    "lines": [
        "dy_schema__columns",
        *(f"dy_rule__{rule}" for rule in LINE_RULES),
        "dy_filter__has_lines",
    ],
    "notes": ["dy_schema__columns", *(f"dy_rule__{rule}" for rule in NOTE_RULES)],
}


DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])
