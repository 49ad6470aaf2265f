"""`dd.text_format` says how the values of a column are written as text."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dagster_dataframely as dd
from dagster_dataframely._names import ORIGINAL, SCHEMA_METADATA_KEY
from dagster_dataframely.errors import InvalidTextFormatError

LOST = object()
"""Stands for a value that does not survive."""

DAY = dt.date(2024, 7, 1)
NOON = dt.datetime(2024, 7, 1, 12)
IN_UTC = NOON.replace(tzinfo=ZoneInfo("UTC"))
NOT_ANY: Any = dd.text_format(null=["x"])
GERMAN = dd.text_format(decimal=",", thousands=".", suffix="€")
MONEY = dd.text_format(thousands=",", prefix="$", null=["-", "n/a"])

WRITTEN: dict[str, tuple[dy.Column, dict[str, Any]]] = {
    "one format": (
        dy.Date(metadata=dd.text_format("%d.%m.%Y")),
        {"01.07.2024": DAY, " 1.7.2024 ": DAY, "1.7.24": LOST, "2024-07-01": LOST, "31.06.2024": LOST},
    ),
    "several formats, in order": (
        dy.Date(metadata=dd.text_format("%d/%m/%Y", "%m/%d/%Y")),
        {"02/01/2024": dt.date(2024, 1, 2), "01/13/2024": dt.date(2024, 1, 13), "13/13/2024": LOST},
    ),
    "years of two digits": (
        dy.Date(metadata=dd.text_format("%d.%m.%y")),
        {"01.07.24": DAY, "1.7.2024": LOST},
    ),
    "a format of days for moments": (
        dy.Datetime(metadata=dd.text_format("%Y%m%d", "%Y%m%d%H%M%S")),
        {"20240701": dt.datetime(2024, 7, 1), "20240701120000": NOON, "20240701115960": LOST},
    ),
    "moments with decimals": (
        dy.Datetime(metadata=dd.text_format("%d.%m.%Y %H:%M:%S%.f")),
        {"01.07.2024 12:00:00.5": NOON.replace(microsecond=500_000),
         "01.07.2024 12:00:00.0000001": LOST},
    ),
    "moments with a zone": (
        dy.Datetime(time_zone="UTC", metadata=dd.text_format("%d.%m.%Y %H:%M %z")),
        {"01.07.2024 14:00 +0200": IN_UTC, "01.07.2024 14:00": LOST},
    ),
    "moments of New York": (
        dy.Datetime(
            time_zone="UTC",
            metadata=dd.text_format("%m/%d/%Y %I:%M %p", time_zone="America/New_York"),
        ),
        {"07/01/2024 08:00 AM": IN_UTC, "03/10/2024 02:30 AM": LOST, "11/03/2024 01:30 AM": LOST},
    ),
    "seconds since 1970": (
        dy.Datetime(time_zone="UTC", metadata=dd.text_format("%s")),
        {"1719835200": IN_UTC, "x": LOST},
    ),
    "times": (
        dy.Time(metadata=dd.text_format("%I:%M %p")),
        {"12:30 PM": dt.time(12, 30), "13:30": LOST},
    ),
    "German money": (
        dy.Decimal(10, 2, metadata=GERMAN),
        {
            "1.234,50 €": Decimal("1234.50"), "12,5": Decimal("12.50"), "-1.234": Decimal(-1234),
            "12.50": LOST, "1.23,4": LOST, "1,2,3": LOST, "12,345": LOST, "€ 1": LOST,
        },
    ),
    "American money": (
        dy.Decimal(10, 2, nullable=True, metadata=MONEY),
        {
            "$1,234.50": Decimal("1234.50"), "-$ 12": Decimal(-12), "$-12": Decimal(-12),
            "7": Decimal(7),
            " - ": None, "n/a": None, "N/A": LOST, "": LOST, "-$-12": LOST,
        },
    ),
    "percents": (dy.Float64(metadata=dd.text_format(suffix="%")), {"12.5 %": 12.5, "%": LOST}),
    "whole numbers with spaces": (
        dy.Int64(metadata=dd.text_format(thousands=" ")),
        {"1 234 567": 1234567, "12 34": LOST, "1234": 1234},
    ),
    "yes and no": (
        dy.Bool(metadata=dd.text_format(true=["yes", "1"], false=["no"])),
        {"yes": True, " 1 ": True, "no": False, "YES": LOST, "true": LOST, "0": LOST},
    ),
    "only what is true": (dy.Bool(metadata=dd.text_format(true=["x"])), {"x": True, "False": False}),
    "numbers that mean null": (
        dy.Int64(nullable=True, metadata=dd.text_format(null=["", "-999"])),
        {"": None, "  ": None, "-999": None, "-99": -99, "NA": LOST},
    ),
    "text that means null": (
        dy.String(nullable=True, metadata=dd.text_format(null=["NA"])),
        {"NA": None, " NA ": " NA ", "": ""},
    ),
    "categories that mean null": (
        dy.Enum(["a", "NA"], nullable=True, metadata=dd.text_format(null=["NA"])),
        {"NA": None, "a": "a"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("column", "texts"), WRITTEN.values(), ids=WRITTEN)
def test_text_is_read_as_it_is_written(column: dy.Column, texts: dict[str, Any]) -> None:
    schema: type[dy.Schema] = type("Declared", (dy.Schema,), {"value": column})
    frame = pl.DataFrame({"value": [*texts]})
    found = dd.parse(schema, frame)
    streamed = dd.parse(schema, frame.lazy()).collect(engine="streaming")
    assert_frame_equal(streamed, found)
    values = dict(zip(texts, found["value"], strict=True))
    assert values == {text: None if value is LOST else value for text, value in texts.items()}
    lost = {text for text, kept in zip(texts, found[ORIGINAL], strict=True) if kept is not None}
    assert lost == {text for text, value in texts.items() if value is LOST}
    assert [json.loads(kept) for kept in found[ORIGINAL].drop_nulls()] == [
        {"value": text} for text in texts if text in lost
    ]


@pytest.mark.parametrize("first", ["severity", "text_format"])
def test_severities_and_formats_do_not_hide_each_other(first: str) -> None:
    both = [dd.severity(min="warn"), dd.text_format(decimal=",")]
    one, other = both if first == "severity" else reversed(both)
    column = dy.Float64(min=0.0, metadata={"unit": "EUR", **one, **other})
    schema: type[dy.Schema] = type("Declared", (dy.Schema,), {"value": column})
    assert dd.parse(schema, pl.DataFrame({"value": ["1,5"]}))["value"].to_list() == [1.5]
    table = dd.wiring.table_schema(schema)
    assert table.columns[0].tags == {"unit": "EUR"}
    assert any("(warn)" in words for words in table.columns[0].constraints.other)


def test_formats_leave_room_for_severities() -> None:
    assert SCHEMA_METADATA_KEY not in dd.text_format("%Y")


WRONG: dict[str, tuple[dy.Column, str]] = {
    "a format for numbers": (dy.Int64(metadata=dd.text_format("%Y")), "`formats` is not for Int64"),
    "decimals for days": (
        dy.Date(metadata=dd.text_format(decimal=",")),
        "`decimal` is not for Date",
    ),
    "a zone for local time": (
        dy.Datetime(metadata=dd.text_format(time_zone="UTC")),
        "`time_zone` is not for Datetime",
    ),
    "true for text": (dy.String(metadata=dd.text_format(true=["x"])), "`true` is not for String"),
    "null for any dtype": (dy.Any(metadata=NOT_ANY), "`null` is not for Null"),
    "a format of a list": (
        dy.List(dy.Date(), metadata=dd.text_format("%Y")),
        "`formats` is not for List",
    ),
    "in a list": (dy.List(dy.Date(metadata=dd.text_format("%Y"))), "`%Y`: it says too little"),
    "in a struct": (
        dy.Struct({"a": dy.Int8(metadata=dd.text_format(decimal=""))}),
        "`decimal` is ''",
    ),
    "an unknown word": (
        dy.Int8(metadata={"dagster_dataframely_text_format": {"decimals": ","}}),
        "`decimals` is not for Int8, or any other column",
    ),
    "a text for a list": (
        dy.Int8(metadata=dd.text_format(null="NA")),
        "`null` is 'NA', and not a list of texts",
    ),
    "a number for a list": (
        dy.Int8(metadata={"dagster_dataframely_text_format": {"null": 1}}),
        "`null` is 1, and not a list of texts",
    ),
    "a number for a text": (
        dy.Int8(metadata={"dagster_dataframely_text_format": {"decimal": 1}}),
        "`decimal` is 1, and not a text",
    ),
    "a format of time for days": (
        dy.Date(metadata=dd.text_format("%Y-%m-%d %H:%M")),
        "`%Y-%m-%d %H:%M`: a date has no time of day",
    ),
    "a format of days for times": (
        dy.Time(metadata=dd.text_format("%Y-%m-%d %H:%M")),
        "a time has no day",
    ),
    "hours for moments": (dy.Datetime(metadata=dd.text_format("%H:%M")), "it says too little"),
    "hours without halves": (
        dy.Datetime(metadata=dd.text_format("%Y-%m-%d %I")),
        "Polars does not know it",
    ),
    "words of its own": (dy.Date(metadata=dd.text_format("%Q")), "Polars does not know it"),
    "nanoseconds": (
        dy.Datetime(metadata=dd.text_format("%Y-%m-%d %H:%M:%S.%f")),
        "its `%f` counts nanoseconds: write `%.f`",
    ),
    "names of zones": (
        dy.Datetime(time_zone="UTC", metadata=dd.text_format("%Y-%m-%d %H:%M %Z")),
        "it has `%Z`",
    ),
    "a zone too many": (
        dy.Datetime(metadata=dd.text_format("%Y-%m-%d %H:%M %z")),
        "the column has no time zone",
    ),
    "no zone": (
        dy.Datetime(time_zone="UTC", metadata=dd.text_format("%Y-%m-%d %H:%M")),
        "it has no `%z`",
    ),
    "an unknown zone": (
        dy.Datetime(time_zone="UTC", metadata=dd.text_format(time_zone="Mars/Olympus")),
        "`time_zone` is 'Mars/Olympus', which Polars does not know",
    ),
    "one text for both": (
        dy.Bool(metadata=dd.text_format(true=["x"], false=["x"])),
        "'x' means true and false",
    ),
    "one sign for both": (
        dy.Float64(metadata=dd.text_format(thousands=".")),
        "`decimal` and `thousands` are both '.'",
    ),
    "a digit for a sign": (
        dy.Float64(metadata=dd.text_format(thousands="0")),
        "`thousands` is '0', and not one character",
    ),
    "a sign in the suffix": (
        dy.Float64(metadata=dd.text_format(suffix="-")),
        "`suffix` is '-', which has digits or signs",
    ),
}


@pytest.mark.parametrize(("column", "problem"), WRONG.values(), ids=WRONG)
def test_a_format_that_cannot_parse_its_dtype_is_an_error(column: dy.Column, problem: str) -> None:
    schema: type[dy.Schema] = type("Declared", (dy.Schema,), {"value": column})
    for read in (lambda: dd.parse(schema, pl.DataFrame()), lambda: dd.asset(schema)):
        with pytest.raises(InvalidTextFormatError) as raised:
            read()
        assert raised.value.problem.partition(problem)[1] == problem
        assert str(raised.value).startswith("Text format of `value` of schema `Declared`: ")
    assert (raised.value.schema, raised.value.column) == ("Declared", "value")
