"""Describe how a schema changes between two runs, with rows of both."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import dataframely as dy
import polars as pl


@dataclass(frozen=True)
class Version:
    """A schema and the frame that an asset declared with it returns."""

    schema: type[dy.Schema]
    frame: pl.DataFrame

    @property
    def survivors(self) -> pl.DataFrame:
        return self.schema.filter(self.frame).result

    @property
    def error_rows(self) -> pl.DataFrame:
        return self.schema.filter(self.frame).failure.invalid()


@dataclass(frozen=True)
class Change:
    """Two versions of a table, and the columns in which they differ."""

    name: str
    old: Version
    new: Version
    columns: tuple[str, ...] = ("value",)
    """One of these has to be in the message where the new version cannot be stored."""

    def __str__(self) -> str:
        return self.name


def version(values: dict[str, list[Any]], **members: Any) -> Version:
    """Build a schema with an `id` that may not be negative; the last row is the error row."""
    schema: type[dy.Schema] = type("Orders", (dy.Schema,), {"id": dy.Int64(min=0), **members})
    (height,) = {len(column) for column in values.values()}
    ids = [*range(1, height), -1]
    dtypes = schema.create_empty().schema
    return Version(
        schema, pl.DataFrame({"id": ids, **values}, schema=dtypes).select(dtypes.names())
    )


def retyped(name: str, old: tuple[Any, list[Any]], new: tuple[Any, list[Any]]) -> Change:
    """Change the dtype of one column."""
    before, after = (version({"value": values}, value=column) for column, values in (old, new))
    return Change(name, before, after)


def ruled(name: str, old: dict[str, Any], new: dict[str, Any], check: str) -> Change:
    """Change the rules and no column."""
    values = {"value": [1.0, 20.0, 3.0]}
    return Change(
        name,
        version(values, value=dy.Float64(), **old),
        version(values, **{"value": dy.Float64(), **new}),
        (check,),
    )


def same() -> Change:
    """Change the values and no column."""
    return retyped("same", (dy.Float64(), [1.0, 2.0, 3.0]), (dy.Float64(), [4.0, 5.0]))


def _at_most_ten(cls: Any) -> pl.Expr:
    below: pl.Expr = cls.value.col <= 10
    return below


DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12, 30, 0, 123_456)
ZONED = NOON.replace(tzinfo=dt.UTC)

CHANGES = [
    same(),
    Change(
        "column added",
        version({"value": [1.0, 2.0]}, value=dy.Float64()),
        version({"value": [1.0, 2.0], "extra": ["a", "b"]}, value=dy.Float64(), extra=dy.String()),
        ("extra",),
    ),
    Change(
        "nullable column added",
        version({"value": [1.0, 2.0]}, value=dy.Float64()),
        version(
            {"value": [1.0, 2.0], "extra": [None, None]},
            value=dy.Float64(),
            extra=dy.Int64(nullable=True),
        ),
        ("extra",),
    ),
    Change(
        "column removed",
        version({"value": [1.0, 2.0], "extra": ["a", "b"]}, value=dy.Float64(), extra=dy.String()),
        version({"value": [1.0, 2.0]}, value=dy.Float64()),
        ("extra",),
    ),
    Change(
        "column renamed",
        version({"value": [1.0, 2.0]}, value=dy.Float64()),
        version({"extra": [3.0, 4.0]}, extra=dy.Float64()),
        ("value", "extra"),
    ),
    Change(
        "columns reordered",
        version({"net": [10.0, 1.0], "gross": [11.9, 1.2]}, net=dy.Float64(), gross=dy.Float64()),
        version({"net": [10.0, 1.0], "gross": [11.9, 1.2]}, gross=dy.Float64(), net=dy.Float64()),
        ("net", "gross"),
    ),
    retyped("Int64 to Float64", (dy.Int64(), [1, 2]), (dy.Float64(), [1.5, 2.5, 3.5])),
    retyped("Int64 to String", (dy.Int64(), [1, 2]), (dy.String(), ["007", "12", "13"])),
    retyped("String to Int64", (dy.String(), ["007", "b"]), (dy.Int64(), [7, 8, 9])),
    retyped("Bool to Int64", (dy.Bool(), [True, False]), (dy.Int64(), [0, 7, 8])),
    retyped("Int64 to Int32", (dy.Int64(), [2**40, 2]), (dy.Int32(), [1, 2, 3])),
    retyped("Float64 to Float32", (dy.Float64(), [0.1, 0.2]), (dy.Float32(), [0.1, 0.2, 0.3])),
    retyped(
        "Decimal scale",
        (dy.Decimal(12, 2), [Decimal("1.25"), Decimal("2.5")]),
        (dy.Decimal(12, 4), [Decimal("1.2345"), Decimal("2.5"), Decimal("3")]),
    ),
    retyped(
        "Date to Datetime",
        (dy.Date(), [DAY, DAY]),
        (dy.Datetime(time_unit="us"), [NOON, NOON]),
    ),
    retyped(
        "naive to zoned Datetime",
        (dy.Datetime(time_unit="us"), [NOON, NOON]),
        (dy.Datetime(time_unit="us", time_zone="UTC"), [ZONED, ZONED]),
    ),
    retyped(
        "Datetime us to ms",
        (dy.Datetime(time_unit="us"), [NOON, NOON]),
        (dy.Datetime(time_unit="ms"), [dt.datetime(2024, 1, 1, 12, 30)] * 2),
    ),
    retyped(
        "Struct field renamed",
        (dy.Struct({"lat": dy.Float64()}), [{"lat": 1.0}, {"lat": 2.0}]),
        (dy.Struct({"latitude": dy.Float64()}), [{"latitude": 3.0}, {"latitude": 4.0}]),
    ),
    retyped(
        "Struct fields reordered",
        (dy.Struct({"a": dy.Float64(), "b": dy.Float64()}), [{"a": 1.0, "b": 2.0}] * 2),
        (dy.Struct({"b": dy.Float64(), "a": dy.Float64()}), [{"b": 4.0, "a": 3.0}] * 2),
    ),
    retyped(
        "Struct field added",
        (dy.Struct({"a": dy.Float64()}), [{"a": 1.0}] * 2),
        (dy.Struct({"a": dy.Float64(), "b": dy.Float64()}), [{"a": 3.0, "b": 4.0}] * 2),
    ),
    retyped(
        "List inner dtype",
        (dy.List(dy.Int64()), [[1], [2, 3]]),
        (dy.List(dy.Float64()), [[1.5], [2.5]]),
    ),
    retyped("Enum to String", (dy.Enum(["a", "b"]), ["a", "b"]), (dy.String(), ["c", "d"])),
    ruled("rule added", {}, {"value": dy.Float64(max=10)}, "value__max"),
    ruled("rule removed", {"small": dy.rule()(_at_most_ten)}, {}, "small"),
    ruled(
        "rule renamed",
        {"small": dy.rule()(_at_most_ten)},
        {"little": dy.rule()(_at_most_ten)},
        "small",
    ),
]
