"""`dd.parse` gives values that mean the same, and keeps the others as they came."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any, Literal
from zoneinfo import ZoneInfo

import dataframely as dy
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.strategies import values_of

import dagster_dataframely as dd
from dagster_dataframely._names import ORIGINAL
from dagster_dataframely._schema.parse import noting_filled
from dagster_dataframely.errors import (
    InvalidArgumentError,
    ParseError,
    ReservedColumnError,
    StrictCastError,
)

LOST = object()
"""Stands for a value that does not survive."""

ENGINES: list[Literal["in-memory", "streaming"]] = ["in-memory", "streaming"]
NOON = dt.datetime(2024, 7, 1, 12)
UTC_NOON = NOON.replace(tzinfo=ZoneInfo("UTC"))
NEW_YORK = dd.text_format(time_zone="America/New_York")


def schema_of(column: dy.Column) -> type[dy.Schema]:
    return type("Declared", (dy.Schema,), {"value": column})


def parsed(schema: type[dy.Schema], frame: pl.DataFrame) -> pl.DataFrame:
    """What `dd.parse` gives, the same for a DataFrame and for both engines on a LazyFrame."""
    found = dd.parse(schema, frame)
    for engine in ENGINES:
        assert_frame_equal(dd.parse(schema, frame.lazy()).collect(engine=engine), found)
    return found


TEXTS: dict[str, tuple[dy.Column, dict[str, Any]]] = {
    "whole numbers": (
        dy.Int64(),
        {
            "12": 12, " 12 ": 12, "\u00a012": 12, "+12": 12, "-12": -12, "007": 7, "1.0": 1,
            "12.": 12, "1.9": LOST, "1e3": LOST, "1,0": LOST, "": LOST, " ": LOST, "x": LOST,
            "9223372036854775807": 2**63 - 1, "9223372036854775808": LOST, "1_000": LOST,
            "--1": LOST, ".": LOST, ".0": LOST, "٣": LOST,
        },
    ),
    "small numbers": (dy.UInt8(), {"255": 255, "256": LOST, "-1": LOST}),
    "floats": (
        dy.Float64(),
        {
            "0.1": 0.1, " 0.1 ": 0.1, "0": 0.0, "0.00": 0.0, "-0.0": 0.0, "1.5e3": 1500.0,
            "0.30000000000000004": 0.30000000000000004, "1.50000000000000000000": 1.5,
            "00000000000000000001": 1.0, "9007199254740992": 2.0**53, "9007199254740993": LOST,
            "3.14159265358979323846": LOST, "1e400": LOST, "-1e400": LOST, "1e-400": LOST,
            "5e-324": 5e-324, "1.2345e-320": LOST, "inf": float("inf"), "-Infinity": -float("inf"),
            "1,5": LOST, "0x1": LOST, "": LOST, "0.1234567890123456789e-5": LOST,
        },
    ),
    "short floats": (dy.Float32(), {"0.1": 0.10000000149011612, "16777217": LOST, "1e39": LOST}),
    "decimals": (
        dy.Decimal(10, 2),
        {
            "12.50": Decimal("12.50"), "12.5": Decimal("12.50"), "+1": Decimal(1),
            "-.5": Decimal("-0.5"),
            "12.500": Decimal("12.50"), " 12 ": Decimal(12), "12.345": LOST, "12.355": LOST,
            "12.999": LOST, "12.5000001": LOST, "1e3": LOST, "1e-9": LOST, "123456789.00": LOST,
            "12,50": LOST, "": LOST, "NaN": LOST,
        },
    ),
    "decimals without decimals": (
        dy.Decimal(4, 0),
        {"12": Decimal(12), "12.0": Decimal(12), "12.1": LOST},
    ),
    "Booleans": (
        dy.Bool(),
        {"true": True, "FALSE": False, " True ": True, "yes": LOST, "1": LOST, "": LOST},
    ),
    "days": (
        dy.Date(),
        {
            "2024-07-01": NOON.date(), " 2024-07-01 ": NOON.date(), "2024-7-1": NOON.date(),
            "0001-01-01": dt.date(1, 1, 1), "9999-12-31": dt.date(9999, 12, 31),
            "2026-02-30": LOST, "24-07-01": LOST, "01-02-24": LOST, "2024-07-01 12:00": LOST,
            "01.07.2024": LOST, "20240701": LOST, "": LOST,
        },
    ),
    "moments": (
        dy.Datetime(),
        {
            "2024-07-01T12:00:00": NOON, "2024-07-01 12:00:00.000000": NOON, "2024-07-01 12:00": NOON,
            " 2024-07-01T12:00 ": NOON, "2024-07-01": dt.datetime(2024, 7, 1),
            "2024-07-01 12:00:00.000001": NOON.replace(microsecond=1),
            "2024-07-01 12:00:00.000000000": NOON, "2024-07-01 12:00:00.0000001": LOST,
            "2024-07-01 11:59:60": LOST, "2024-07-01T12:00:00Z": LOST, "2024-07-01T24:00:00": LOST,
            "24-07-01 12:00:00": LOST, "24-07-01 12:00:00.0123": LOST,
            "0001-01-01 00:00:00": dt.datetime(1, 1, 1),
            "1960-07-01 10:00:00": dt.datetime(1960, 7, 1, 10),
        },
    ),
    "milliseconds": (
        dy.Datetime(time_unit="ms"),
        {"2024-07-01 12:00:00.500": NOON.replace(microsecond=500_000), "2024-07-01 12:00:00.0001": LOST},
    ),
    "nanoseconds": (
        dy.Datetime(time_unit="ns"),
        {
            "2024-07-01 12:00:00": NOON, "9999-12-31 00:00:00": LOST, "1600-01-01": LOST,
            "2024-07-01": dt.datetime(2024, 7, 1), "2024-07-01 12:00:00.0000000001": LOST,
        },
    ),
    "moments in a zone": (
        dy.Datetime(time_zone="UTC"),
        {
            "2024-07-01T12:00:00Z": UTC_NOON, "2024-07-01 14:00:00+02:00": UTC_NOON,
            "2024-07-01T14:00+0200": UTC_NOON, "2024-07-01T12:00:00": LOST, "2024-07-01": LOST,
        },
    ),
    "moments of New York": (
        dy.Datetime(time_zone="UTC", metadata=NEW_YORK),
        {
            "2024-07-01 08:00:00": UTC_NOON, "2024-07-01T12:00:00Z": UTC_NOON,
            "2024-07-01 08:00": UTC_NOON,
            "2024-03-10 02:30:00": LOST, "2024-11-03 01:30:00": LOST,
        },
    ),
    "times": (
        dy.Time(),
        {
            "12:30": dt.time(12, 30), "12:30:45.5": dt.time(12, 30, 45, 500_000), "24:00": LOST,
            "12:30:45.0000000001": LOST, "12:30:60": LOST, "12": LOST,
        },
    ),
    "categories": (dy.Enum(["a", " b "]), {"a": "a", " a ": "a", " b ": " b ", "b": LOST, "": LOST}),
    "open categories": (dy.Categorical(), {"a": "a", " a ": "a", "": ""}),
    "bytes": (dy.Binary(), {"a": b"a"}),
    "text": (dy.String(), {" a ": " a ", "": ""}),
}  # fmt: skip


@pytest.mark.parametrize(("column", "texts"), TEXTS.values(), ids=TEXTS)
def test_text_survives_where_no_digit_is_lost(column: dy.Column, texts: dict[str, Any]) -> None:
    frame = pl.DataFrame({"value": [*texts, None]}, schema={"value": pl.String})
    found = parsed(schema_of(column), frame)
    assert found.schema == {"value": column.dtype, ORIGINAL: pl.String}
    values = dict(zip(texts, found["value"], strict=False))
    assert values == {text: None if value is LOST else value for text, value in texts.items()}
    lost = [None if text is None else json.loads(text) for text in found[ORIGINAL]]
    assert lost == [*({"value": t} if v is LOST else None for t, v in texts.items()), None]


def test_a_nan_as_text_survives() -> None:
    found = parsed(schema_of(dy.Float64()), pl.DataFrame({"value": ["NaN", "nan"]}))
    assert found["value"].is_nan().all()
    assert found[ORIGINAL].null_count() == 2


def test_polars_loses_digits_of_text_itself() -> None:
    """Why `dd.parse` looks at more than what Polars makes of a text."""
    decimals = pl.Series(["12.345", "12.355", "12.999"]).cast(pl.Decimal(10, 2))
    assert decimals.to_list() == [Decimal("12.34"), Decimal("12.36"), Decimal("13.00")]
    with pytest.raises(pl.exceptions.InvalidOperationError):
        pl.Series(["true"]).cast(pl.Boolean, strict=False)
    assert pl.Series(["9007199254740993"]).cast(pl.Float64).to_list() == [2.0**53]
    days = pl.Series(["24-07-01"]).str.to_date("%Y-%m-%d")
    assert days.to_list() == [dt.date(24, 7, 1)]
    moments = pl.Series(["2024-07-01 11:59:60"]).str.to_datetime("%Y-%m-%d %H:%M:%S")
    assert moments.to_list() == [NOON]
    far = pl.Series(["9999-12-31 00:00:00"]).str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ns")
    assert far.dt.year().to_list() == [1816]


# Every pair of dtypes.

FLAT: list[pl.DataType] = [
    pl.Null(), pl.Boolean(), pl.Int8(), pl.UInt64(), pl.Int64(), pl.Float32(), pl.Float64(),
    pl.Decimal(10, 2), pl.Decimal(38, 10), pl.String(), pl.Categorical(), pl.Enum(["a", "b"]),
    pl.Binary(), pl.Date(), pl.Time(), pl.Datetime("ms"), pl.Datetime("ns"),
    pl.Datetime("us", "UTC"), pl.Datetime("ms", "America/New_York"), pl.Duration("us"),
    pl.Duration("ms"),
]  # fmt: skip
PAIRED: list[Any] = [
    *FLAT,
    pl.List(pl.String()),
    pl.List(pl.Int64()),
    pl.Array(pl.Int8(), 2),
    pl.Array(pl.Int8(), 3),
    pl.Struct({"a": pl.Int8(), "b": pl.Datetime("us")}),
    pl.Struct({"b": pl.Datetime("ns"), "a": pl.Int64()}),
]
NUMBERS = {pl.Boolean, pl.Int8, pl.UInt64, pl.Int64, pl.Float32, pl.Float64, pl.Decimal}


def column_of(dtype: Any) -> dy.Column:
    """A nullable column of a dtype."""
    match dtype:
        case pl.List():
            return dy.List(column_of(dtype.inner), nullable=True)
        case pl.Array():
            return dy.Array(column_of(dtype.inner), dtype.size, nullable=True)
        case pl.Struct():
            inner = {field.name: column_of(field.dtype) for field in dtype.fields}
            return dy.Struct(inner, nullable=True)
        case pl.Decimal():
            return dy.Decimal(dtype.precision, dtype.scale, nullable=True)
        case pl.Enum():
            return dy.Enum(dtype.categories.to_list(), nullable=True)
        case pl.Datetime():
            return dy.Datetime(time_unit=dtype.time_unit, time_zone=dtype.time_zone, nullable=True)
        case pl.Duration():
            return dy.Duration(time_unit=dtype.time_unit, nullable=True)
    names = {pl.Null: "Any", pl.Boolean: "Bool"}
    kind = getattr(dy, names.get(type(dtype), type(dtype).__name__))
    column: dy.Column = kind() if dtype == pl.Null() else kind(nullable=True)
    return column


def has_one_meaning(found: Any, declared: Any) -> bool:
    """Whether a conversion is defined, spelled by hand."""
    if found == declared or pl.Null() in (found, declared):
        return True  # A column of Nulls stands for `dy.Any` here.
    pair = {type(found), type(declared)}
    if isinstance(found, pl.Array) and isinstance(declared, pl.Array):
        return False
    if pair <= {pl.List, pl.Array}:
        return has_one_meaning(found.inner, declared.inner)
    if pair == {pl.Struct} or pair <= NUMBERS or pair <= {pl.Categorical, pl.Enum, pl.String}:
        return True
    if declared == pl.String:
        return type(found) in NUMBERS
    if found == pl.String:
        return not declared.is_nested() and not isinstance(declared, pl.Duration)
    if pair <= {pl.Date, pl.Datetime}:
        zones = [getattr(dtype, "time_zone", None) is None for dtype in (found, declared)]
        return zones[0] == zones[1]
    return pair == {pl.Duration}


@pytest.mark.parametrize("declared", PAIRED, ids=str)
@pytest.mark.parametrize("found", PAIRED, ids=str)
def test_every_pair_of_dtypes_is_parsed_or_refused_at_once(found: Any, declared: Any) -> None:
    schema, frame = schema_of(column_of(declared)), values_of(found).alias("value").to_frame()
    if not has_one_meaning(found, declared):
        for refused in (frame, frame.lazy()):
            with pytest.raises(ParseError, match="Frame cannot be parsed as `Declared`: `value`"):
                dd.parse(schema, refused)
        return
    result = parsed(schema, frame)
    if declared != pl.Null():
        assert result.schema["value"] == declared
    survives = result["value"].is_not_null() | frame["value"].is_null()
    assert result[ORIGINAL].is_null().to_list() == survives.to_list()
    if found == pl.String() or (declared == pl.String() and found == pl.Boolean()):
        return  # A strict cast has no formats.
    if pl.Boolean() in (found, declared) and any(
        isinstance(d, pl.Decimal) for d in (found, declared)
    ):
        return  # Polars has no such casts.
    for row in range(frame.height):
        one = frame[row : row + 1]
        try:
            cast = dd.strict_cast(schema, one)
        except StrictCastError:
            assert not survives[row]
        else:
            assert survives[row]
            assert_frame_equal(cast, result.select("value")[row : row + 1])


def test_flags_and_decimals_are_parsed_to_each_other() -> None:
    flags = pl.DataFrame({"value": [True, False, None]})
    to_decimals = parsed(schema_of(dy.Decimal(4, 2)), flags)
    assert to_decimals["value"].to_list() == [Decimal(1), Decimal(0), None]
    back = parsed(schema_of(dy.Bool()), to_decimals.drop(ORIGINAL))
    assert back["value"].to_list() == [True, False, None]
    texts = parsed(schema_of(dy.String()), flags)
    assert texts["value"].to_list() == ["true", "false", None]


# Nested values.


def test_arrays_are_lists_of_the_same_values() -> None:
    class Pairs(dy.Schema):
        a = dy.List(dy.Int8())

    found = pl.DataFrame({"a": [[1, 2], None]}, schema={"a": pl.Array(pl.Int8, 2)})
    parsed = dd.parse(Pairs, found)
    assert parsed["a"].to_list() == [[1, 2], None]
    assert parsed["a"].dtype == pl.List(pl.Int8)


def test_nested_values_survive_whole_or_not_at_all() -> None:
    class Nested(dy.Schema):
        days = dy.List(dy.Date(metadata=dd.text_format("%d.%m.%Y")))
        pair = dy.Struct({"a": dy.Int8(), "*": dy.List(dy.Decimal(4, 1))})
        two = dy.Array(dy.Int8(), 2)

    frame = pl.DataFrame(
        {
            "days": [["1.2.2024", None], ["x"], None],
            "pair": [
                {"*": ["1.5"], "more": None, "a": "3"},
                {"*": ["1.55"], "more": None, "a": "3"},
                {"*": None, "more": "u", "a": "3"},
            ],
            "two": [["1", "2"], ["1"], ["1", "x"]],
        }
    )
    found = parsed(Nested, frame)
    assert found.drop(ORIGINAL).rows() == [
        ([dt.date(2024, 2, 1), None], {"a": 3, "*": [Decimal("1.5")]}, [1, 2]),
        (None, None, None),
        (None, None, None),
    ]
    assert [text and json.loads(text) for text in found[ORIGINAL]] == [
        None,
        {"days": ["x"], "pair": {"*": ["1.55"], "more": None, "a": "3"}, "two": ["1"]},
        {"pair": {"*": None, "more": "u", "a": "3"}, "two": ["1", "x"]},
    ]


def test_texts_that_mean_null_do_so_inside_of_lists() -> None:
    column = dy.List(dy.Int8(nullable=True, metadata=dd.text_format(null=["-"])))
    found = parsed(schema_of(column), pl.DataFrame({"value": [["1", " - "], ["x"]]}))
    assert found.rows() == [([1, None], None), (None, '{"value":["x"]}')]
    same = dy.List(dy.String(nullable=True, metadata=dd.text_format(null=["-"])))
    found = parsed(schema_of(same), pl.DataFrame({"value": [["1", "-"]]}))
    assert found.rows() == [(["1", None], None)]


# Columns.


class Pair(dy.Schema):
    b = dy.Int8()
    a = dy.String(nullable=True)


@pytest.mark.parametrize("lazy", [False, True])
def test_declared_columns_come_in_order_and_others_are_dropped(*, lazy: bool) -> None:
    frame = pl.DataFrame({"a": ["x"], "0": [1], "0 parsed": [1], "b": ["1"]})
    found: Any = dd.parse(Pair, frame.lazy() if lazy else frame)
    assert isinstance(found, pl.LazyFrame if lazy else pl.DataFrame)
    assert found.lazy().collect().rows(named=True) == [{"b": 1, "a": "x", ORIGINAL: None}]


def test_missing_columns_fail_or_come_as_nulls() -> None:
    frame = pl.DataFrame({"b": ["1", "x"]})
    with pytest.raises(ParseError, match=r"`a`: it is missing\. .*`missing=\"null\"`") as raised:
        dd.parse(Pair, frame.lazy())
    assert raised.value.columns == ("a",)
    with noting_filled() as filled:
        found = dd.parse(Pair, frame, missing="null")
    assert filled == {"a"}
    assert found.rows() == [(1, None, None), (None, None, '{"b":"x"}')]
    with pytest.raises(ParseError, match="`b`: it is missing"):
        dd.parse(Pair, pl.DataFrame({"a": ["x"]}), missing="null")


def test_a_frame_with_no_declared_column_has_no_rows_to_fill() -> None:
    with pytest.raises(ParseError, match="`value`: it is missing"):
        dd.parse(schema_of(dy.Int8(nullable=True)), pl.DataFrame({"c": [1]}), missing="null")


def test_another_word_for_missing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"`missing`.*'drop'"):
        dd.parse(Pair, pl.DataFrame(), missing="drop")  # type: ignore[call-overload]


def test_durations_are_not_parsed_from_text() -> None:
    with pytest.raises(ParseError, match="write the conversion") as raised:
        dd.parse(schema_of(dy.Duration()), pl.LazyFrame({"value": ["PT1H"]}))
    (failure,) = raised.value.failures
    assert (failure.column, failure.found) == ("value", "String")


def test_what_an_earlier_parse_kept_stays() -> None:
    first = type("First", (dy.Schema,), {"b": dy.Int64(nullable=True), "a": dy.String()})
    once = dd.parse(first, pl.DataFrame({"b": ["x", "1000", "x", "1"], "a": ["1", "y", "y", "1"]}))
    second = type("Second", (dy.Schema,), {"b": dy.Int8(nullable=True), "a": dy.Int8()})
    found = parsed(second, once)
    assert [text and json.loads(text) for text in found[ORIGINAL]] == [
        {"b": "x"},
        {"b": 1000, "a": "y"},
        {"b": "x", "a": "y"},
        None,
    ]


def test_a_schema_with_a_reserved_column_is_refused() -> None:
    with pytest.raises(ReservedColumnError):
        dd.parse(schema_of(dy.Int8(alias=ORIGINAL)), pl.DataFrame())


def test_no_value_is_looked_at_before_a_lazy_frame_runs() -> None:
    def fail(_batch: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError

    frame = pl.LazyFrame({"b": ["1"], "a": ["x"]}).map_batches(fail)
    dd.parse(Pair, frame)


# Random texts.


def write_short(number: float) -> str:
    return str(pl.Series([number], dtype=pl.Float32).cast(pl.String).item())


DECIMALS = st.decimals(min_value=-99_999_999, max_value=99_999_999, places=2)
WRITTEN: list[tuple[dy.Column, st.SearchStrategy[Any], Any]] = [
    (dy.Int64(), st.integers(-(2**63), 2**63 - 1), str),
    (dy.Float64(), st.floats(allow_nan=False), repr),
    (dy.Float32(), st.floats(allow_nan=False, width=32), write_short),
    (dy.Decimal(10, 2), DECIMALS, lambda number: f"{number:f}"),
    (dy.Date(), st.dates(), str),
    (dy.Datetime(), st.datetimes(), lambda moment: moment.isoformat()),
    (dy.Datetime(time_zone="UTC"), st.datetimes(timezones=st.just(ZoneInfo("UTC"))), str),
    (dy.Time(), st.times(), str),
    (dy.Bool(), st.booleans(), str),
    (dy.String(), st.text(st.characters(exclude_categories=["Cs"])), str),
]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "values", "write"), WRITTEN, ids=[str(column.dtype) for column, *_ in WRITTEN]
)
@given(data=st.data())
def test_written_values_are_read_again(
    data: st.DataObject, column: dy.Column, values: st.SearchStrategy[Any], write: Any
) -> None:
    drawn = data.draw(st.lists(st.none() | values, min_size=1, max_size=5))
    texts = [None if value is None else write(value) for value in drawn]
    frame = pl.DataFrame({"value": texts}, schema={"value": pl.String})
    found = parsed(schema_of(column), frame)
    assert found["value"].to_list() == drawn
    assert found[ORIGINAL].null_count() == len(drawn)


@given(text=st.from_regex(r"\A[ +-]?[0-9]{0,18}[.,]?[0-9]{0,18}([eE][+-]?[0-9]{1,3})? ?\Z"))
def test_numbers_as_text_keep_every_digit_or_are_kept(text: str) -> None:
    frame = pl.DataFrame({"value": [text]})
    for column in (dy.Int64(), dy.Decimal(20, 4), dy.Float64()):
        (value, original), *_ = parsed(schema_of(column), frame).rows()
        assert original == (
            json.dumps({"value": text}, separators=(",", ":")) if value is None else None
        )
        if value is not None:
            written = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
            assert written == Decimal(text.strip())
