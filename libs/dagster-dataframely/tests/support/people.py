"""A schema with redacted columns, and values that must not show."""

import datetime as dt
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl

import dagster_dataframely as dd

PII = {"pii": True}


class People(dy.Schema):
    """Redacted columns of many dtypes, that fail rules, are keys, and stand beside ones that fail."""

    id = dy.Int64(primary_key=True)
    name = dy.String(primary_key=True, max_length=40, unique=True, metadata=PII)
    phone = dy.Int64(max=10**12, metadata=PII)
    salary = dy.Float64(min=0.0, metadata=PII)
    born = dy.Date(nullable=True, min=dt.date(1900, 1, 1), metadata=PII)
    children = dy.List(dy.String(max_length=40), nullable=True, metadata=PII)
    home = dy.Struct({"city": dy.String(metadata=PII)}, nullable=True)
    remark = dy.String(nullable=True, max_length=40, metadata=dd.severity("warn"))
    visits = dy.Int64(min=0)

    @dy.rule()
    def lives_somewhere(cls) -> pl.Expr:
        """A home has a city."""
        return cls.home.col.struct.field("city").str.len_chars() > 0

    @dd.rule(severity="warn")
    def not_everyone_is_rich(cls) -> pl.Expr:
        """The mean salary is below a million."""
        return cls.salary.col.mean() < 1e6


VALID: dict[str, Any] = {
    "id": 1,
    "name": "canary-name",
    "phone": 7_654_321_098,
    "salary": 43_219.875,
    "born": dt.date(1907, 3, 11),
    "children": ["canary-child"],
    "home": {"city": "canary-city"},
    "remark": "canary-remark",
    "visits": 3,
}


def rows(*differences: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        [{**VALID, **difference} for difference in differences],
        schema=People.create_empty().schema,
    )


ERRORS: list[dict[str, Any]] = [
    {"name": "canary-name" * 9},
    {"phone": 7_654_321_098_765},
    {"salary": -43_219.875},
    {"born": dt.date(1807, 3, 11)},
    {"children": ["canary-child" * 9]},
    {"home": {"city": ""}},
    {"visits": -1},
    {"name": "canary-twice"},
    {"name": "canary-twice"},
]
"""One for each rule of a redacted column, one for a rule of another, and a key that occurs twice."""


DRIFTED = rows({}).with_columns(
    name=pl.Series(["canary-name"], dtype=pl.Enum(["canary-name"])),
    home=pl.lit({"canary-field": 1}),
)
"""Dtypes that hold values: the categories of an Enum, the fields of a struct."""


EXITS: dict[str, tuple[Any, bool]] = {
    "clean": (rows({}, {"id": 2, "name": "canary-two", "remark": "canary-remark" * 9}), True),
    "set aside": (rows({"id": 0, "name": "canary-zero"}, *ERRORS), True),
    "abort": (rows({"id": 0, "name": "canary-zero"}, *ERRORS), False),
    "nothing survives": (rows({"visits": -1}, {"visits": -2}), True),
    "drift": (DRIFTED, True),
    "skip": (None, True),
}


def parquet(folder: Path) -> Any:
    from dagster_polars import PolarsParquetIOManager

    return PolarsParquetIOManager(base_dir=str(folder))


def records(metadata: Any) -> list[dict[str, Any]]:
    return [dict(record.data) for record in metadata.records]


class Plain(dy.Schema):
    """Nothing is marked."""

    email = dy.String()
    phone = dy.String(metadata={"pii": False})


def categories(*values: str) -> pl.DataFrame:
    return pl.DataFrame({"value": pl.Series(values, dtype=pl.Enum(values))})
