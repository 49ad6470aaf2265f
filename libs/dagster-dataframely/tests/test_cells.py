"""Every value of every dtype becomes a cell that strict JSON can hold, exactly."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from dagster_dataframely._cells import render_cell, render_frame, render_rows

VALUES: dict[str, tuple[pl.Series, list[object]]] = {
    "float": (pl.Series([1.5, float("nan"), float("inf"), -float("inf"), None]), [
        1.5, "NaN", "inf", "-inf", None,
    ]),
    "integer": (pl.Series([1, 2**53 - 1, 2**53, -(2**53)]), [
        1, 2**53 - 1, "9007199254740992", "-9007199254740992",
    ]),
    "unsigned": (pl.Series([2**64 - 1], dtype=pl.UInt64), ["18446744073709551615"]),
    "decimal": (
        pl.Series([Decimal("99999999999999999999999999999999999.999")], dtype=pl.Decimal(38, 3)),
        ["99999999999999999999999999999999999.999"],
    ),
    "small decimal": (pl.Series([Decimal("0.0000001")], dtype=pl.Decimal(10, 7)), ["0.0000001"]),
    "boolean": (pl.Series([True, None]), [True, None]),
    "string": (pl.Series(["ü|`<b>", ""]), ["ü|`<b>", ""]),
    "date": (pl.Series([dt.date(2026, 1, 2)]), ["2026-01-02"]),
    "date beyond Python": (pl.Series([3_000_000], dtype=pl.Int32).cast(pl.Date), ["+10183-09-21"]),
    "time": (pl.Series([1], dtype=pl.Int64).cast(pl.Time), ["00:00:00.000000001"]),
    "datetime with a zone": (
        pl.Series([dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)]).dt.convert_time_zone("Europe/Paris"),
        ["2026-07-01 14:00:00.000000+02:00"],
    ),
    "nanoseconds": (
        pl.Series([1], dtype=pl.Int64).cast(pl.Datetime("ns")), ["1970-01-01 00:00:00.000000001"],
    ),
    "duration": (pl.Series([dt.timedelta(days=1, seconds=5)]), ["1d 5s"]),
    "binary": (pl.Series([b"\x00\xff"]), ["0x00ff"]),
    "enum": (pl.Series(["a"], dtype=pl.Enum(["a", "b"])), ["a"]),
    "categorical": (pl.Series(["a"], dtype=pl.Categorical), ["a"]),
    "array": (pl.Series([[1.0, float("nan")]], dtype=pl.Array(pl.Float64, 2)), ['[1.0, "NaN"]']),
    "nested list": (pl.Series([[[1], []], None]), ["[[1], []]", None]),
    "struct": (
        pl.Series([{"when": dt.datetime(2026, 1, 2), "who": {"name": "é", "cost": Decimal("1.10")}}]),
        ['{"when": "2026-01-02 00:00:00", "who": {"name": "é", "cost": "1.10"}}'],
    ),
    "list of bytes": (pl.Series([[b"\x01"]]), ['["0x01"]']),
    "null": (pl.Series([None], dtype=pl.Null), [None]),
    "object": (pl.Series([{1}], dtype=pl.Object), ["{1}"]),
}  # fmt: skip
"""For each dtype a series and its cells."""


def refuse(constant: str) -> None:
    raise AssertionError(constant)


@pytest.mark.parametrize(("series", "cells"), VALUES.values(), ids=VALUES)
def test_render_frame(series: pl.Series, cells: list[object]) -> None:
    rendered = render_frame(series.alias("a b").to_frame())
    records = [dict(record.data) for record in rendered.records]
    assert records == [{"a b": cell} for cell in cells]
    assert json.loads(json.dumps(records), parse_constant=refuse) == records
    (column,) = rendered.schema.columns
    assert (column.name, column.type) == ("a b", str(series.dtype))


def test_render_frame_without_rows_keeps_the_columns() -> None:
    rendered = render_frame(pl.DataFrame(schema={"a": pl.Int64}))
    assert [column.name for column in rendered.schema.columns] == ["a"]
    assert not rendered.records


def test_render_rows_takes_any_value() -> None:
    rendered = render_rows([{"a": 1, "b": float("nan")}, {"a": 2, "b": Decimal("1.0")}])
    assert [dict(record.data) for record in rendered.records] == [
        {"a": 1, "b": "NaN"},
        {"a": 2, "b": "1.0"},
    ]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(minutes=1), "0:01:00"),
        ({1: [None]}, '{"1": [null]}'),
    ],
)
def test_render_cell_for_values_inside_others(value: Any, cell: str) -> None:
    assert render_cell(value) == cell
