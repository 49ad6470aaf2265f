"""Every value of every dtype becomes a cell that strict JSON can hold, exact but for its length."""

import datetime as dt
import json
import tracemalloc
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from dagster_dataframely._cells import (
    MAX_CHARACTERS,
    render_cell,
    render_dtype,
    render_redacted,
    render_series,
)

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
    "dates that Polars cannot print": (
        pl.Series([95_026_236, 95_026_237, None, -96_465_293], dtype=pl.Int32).cast(pl.Date),
        ["+262142-12-31", "95026237 days", None, "-96465293 days"],
    ),
    "the infinities of DuckDB": (
        pl.Series([2**63 - 1, 1, None, 1 - 2**63]).cast(pl.Datetime("us")),
        ["9223372036854775807 us", "1970-01-01 00:00:00.000001", None, "-9223372036854775807 us"],
    ),
    "the last moment that Polars prints, and the next": (
        pl.Series([8_210_266_876_799_999, 8_210_266_876_800_000])
        .cast(pl.Datetime("ms", "Pacific/Kiritimati")),
        ["+262143-01-01 13:59:59.999+14:00", "8210266876800000 ms"],
    ),
    "the first moment that Polars prints, and the one before": (
        pl.Series([-8_334_601_228_800_000, -8_334_601_228_800_001])
        .cast(pl.Datetime("ms", "Etc/GMT+12")),
        ["-262144-12-31 12:00:00.000-12:00", "-8334601228800001 ms"],
    ),
    "all nanoseconds": (
        pl.Series([2**63 - 1, -(2**63)]).cast(pl.Datetime("ns")),
        ["2262-04-11 23:47:16.854775807", "1677-09-21 00:12:43.145224192"],
    ),
    "the longest duration": (
        pl.Series([2**63 - 1]).cast(pl.Duration("us")), ["106751991d 4h 54s 775807\u00b5s"],
    ),
    "infinities inside": (
        pl.Series([[{"to": 2**63 - 1}, {"to": 0}]])
        .cast(pl.List(pl.Struct({"to": pl.Datetime("us")}))),
        ['[{"to": "9223372036854775807 us"}, {"to": "1970-01-01 00:00:00.000000"}]'],
    ),
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
        pl.Series([
            {"when": dt.datetime(2026, 1, 2), "who": {"name": "é", "cost": Decimal("1.10")}}, None
        ]),
        ['{"when": "2026-01-02 00:00:00.000000", "who": {"name": "é", "cost": "1.10"}}', None],
    ),
    "fields like patterns": (
        pl.Series([{"^a$": dt.date(2026, 1, 2), "*": [dt.timedelta(1)], "^.*$": "x", "a": 1}]),
        ['{"^a$": "2026-01-02", "*": ["1d"], "^.*$": "x", "a": 1}'],
    ),
    "a struct without fields": (pl.Series([{}], dtype=pl.Struct([])), ["{}"]),
    "nulls inside": (pl.Series([[{"a": None, "b": [None]}, None]]), [
        '[{"a": null, "b": [null]}, null]',
    ]),
    "list of dates beyond Python": (
        pl.Series([[3_000_000]], dtype=pl.List(pl.Int32)).cast(pl.List(pl.Date)),
        ['["+10183-09-21"]'],
    ),
    "list of bytes": (pl.Series([[b"\x01"]]), ['["0x01"]']),
    "null": (pl.Series([None], dtype=pl.Null), [None]),
    "object": (pl.Series([{1}], dtype=pl.Object), ["{1}"]),
}  # fmt: skip
"""For each dtype a series and its cells."""


def refuse(constant: str) -> None:
    raise AssertionError(constant)


LONG: dict[str, tuple[pl.Series, str]] = {
    "string": (pl.Series(["é" * 2_000_000]), "é" * 200 + "… (2,000,000 characters)"),
    "category": (pl.Series(["x" * 201], dtype=pl.Categorical), "x" * 200 + "… (201 characters)"),
    "binary": (pl.Series([b"\xab" * 2_000_000]), f"0x{'ab' * 99}… (2,000,000 bytes)"),
    "list": (pl.Series([range(100_000)], dtype=pl.List(pl.Int64)), "… (100,000 elements)"),
    "list of one": (pl.Series([["x" * 300]]), "x" * 198 + "… (1 element)"),
    "array": (pl.Series([[0] * 100], dtype=pl.Array(pl.Int8, 100)), "… (100 elements)"),
    "struct": (pl.Series([{"a": {"b": [{"c": "x" * 999}]}, "d": 1}]), "x" * 178 + "… (2 fields)"),
    "object": (pl.Series(["x" * 999], dtype=pl.Object), "x" * 200 + "… (999 characters)"),
}
"""For each kind of long value, how its cell ends."""


@pytest.mark.parametrize(("series", "cells"), VALUES.values(), ids=VALUES)
def test_every_value_is_shown_exactly(series: pl.Series, cells: list[object]) -> None:
    assert render_series(series) == cells
    assert json.loads(json.dumps(cells), parse_constant=refuse) == cells


@pytest.mark.parametrize(("series", "end"), LONG.values(), ids=LONG)
def test_a_long_value_is_cut_and_says_how_long_it_was(series: pl.Series, end: str) -> None:
    (cell,) = render_series(series)
    assert isinstance(cell, str)
    assert cell.endswith(end)
    assert len(cell.rpartition("…")[0]) == MAX_CHARACTERS


def test_a_value_of_the_greatest_length_is_whole() -> None:
    series = pl.Series(["x" * MAX_CHARACTERS, "x" * (MAX_CHARACTERS + 1)])
    whole, cut = render_series(series)
    assert (whole, cut) == ("x" * 200, "x" * 200 + "… (201 characters)")
    assert render_cell(b"x" * 99) == "0x" + "78" * 99
    assert render_series(pl.Series([["x" * 196]])) == [f'["{"x" * 196}"]']


@pytest.mark.parametrize(
    "series", [pl.Series([["x" * 100_000] * 1000]), pl.Series([{"a": ["x" * 100_000] * 1000}])]
)
def test_of_a_long_value_only_the_beginning_becomes_python(series: pl.Series) -> None:
    tracemalloc.start()
    try:
        render_series(series)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.parametrize(("series", "cells"), VALUES.values(), ids=VALUES)
def test_a_redacted_value_is_one_word_and_a_null_stays_null(
    series: pl.Series, cells: list[object]
) -> None:
    assert render_redacted(series) == [None if cell is None else "redacted" for cell in cells]


CODES = pl.Enum([f"code {number}" for number in range(20_000)])
SHORT = ", ".join(repr(f"code {number}") for number in range(14))


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (CODES, f"Enum(categories=[{SHORT}, … 19,986 more])"),
        (pl.List(CODES), f"List(Enum(categories=[{SHORT}, … 19,986 more]))"),
        (
            pl.Array(pl.List(CODES), (2, 3)),
            f"Array(List(Enum(categories=[{SHORT}, … 19,986 more])), shape=(2, 3))",
        ),
        (
            pl.Struct({"code": CODES, "n": pl.Int8}),
            f"Struct({{'code': Enum(categories=[{SHORT}, … 19,986 more]), … 1 more}})",
        ),
        (
            pl.Struct({f"c{number}": pl.Int64 for number in range(5_000)}),
            "Struct({" + ", ".join(f"'c{n}': Int64" for n in range(11)) + ", … 4,989 more})",
        ),
        (pl.Enum(["x" * 10**6, "y"]), f"Enum(categories=['{'x' * 39}…', 'y'])"),
        (pl.Struct({"x" * 10**6: pl.Int8}), f"Struct({{'{'x' * 39}…': Int8}})"),
    ],
)
def test_a_long_dtype_shows_the_first_of_what_is_inside(dtype: pl.DataType, text: str) -> None:
    assert render_dtype(dtype) == (text if len(text) <= 200 else f"{text[:199]}…")
    assert render_dtype(dtype, redacted=True) == str(dtype.base_type())


@pytest.mark.parametrize(
    "dtype",
    [
        pl.Enum([]),
        pl.Enum(["it's", '"']),
        pl.Array(pl.List(pl.Enum(["a"])), (2, 3)),
        pl.Struct({"a b": pl.Array(pl.Enum(["x"]), 2), "c": pl.Datetime("us", "UTC")}),
        pl.Struct({}),
        pl.Decimal(10, 2),
    ],
)
def test_a_short_dtype_is_as_polars_prints_it(dtype: pl.DataType) -> None:
    assert render_dtype(dtype) == str(dtype)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (float("nan"), "NaN"),
        (Decimal("1.0"), "1.0"),
        (None, None),
        (2**60, str(2**60)),
        ("x" * 201, "x" * 200 + "… (201 characters)"),
    ],
)
def test_render_cell_takes_what_python_has(value: Any, cell: str | None) -> None:
    assert render_cell(value) == cell
