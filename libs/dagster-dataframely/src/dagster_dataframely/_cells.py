"""Polars values to the cells of a Dagster table: strict JSON, and no longer than a line."""

import decimal
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from dagster_dataframely._text import count, cut

Cell = str | int | float | bool | None

MAX_CHARACTERS = 200
"""Of one value; what is longer says how long it was."""
REDACTED = "redacted"
"""Stands for each value that must not be shown."""

_MAX_NAME, _AROUND = 40, 50
"""Characters: of one category or field of a dtype, and of what stands around the listed ones."""

_MAX_EXACT_INT = 2**53 - 1
"""Larger whole numbers lose digits where JSON is read as doubles, as in the Dagster UI."""

FIRST_DAY, LAST_DAY = -96_465_292, 95_026_236
"""From 1970, the days that Polars prints; at others, as DuckDB's `infinity`, it panics (1.35 to 2.1)."""
PER_DAY = {"days": 1, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def render_series(series: pl.Series) -> list[Cell]:
    """Every value of a series; dates and times as Polars prints them.

    Python's own dates end at year 9999 and its times at microseconds; Polars' do not. Those that Polars
    cannot print are what it stores, with the unit. Of a long value only the beginning is rendered,
    whether it is text, bytes or nested.
    """
    if series.dtype in (pl.Date, pl.Time, pl.Datetime):
        return _render_times(series)
    if series.dtype == pl.Duration:
        return series.dt.to_string("polars").to_list()
    if series.dtype in (pl.String, pl.Categorical, pl.Enum):
        return _render_texts(series.cast(pl.String))
    if series.dtype.is_nested():
        return [_render_nested(series.slice(row, 1)) for row in range(series.len())]
    return [render_cell(value) for value in series.to_list()]


def render_redacted(series: pl.Series) -> list[Cell]:
    """`redacted` for each value of a series; a null stays one."""
    return [None if is_null else REDACTED for is_null in series.is_null()]


def render_cell(value: Any) -> Cell:
    """One value, exact but for its length: what JSON cannot hold becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_EXACT_INT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _render_non_finite(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        shown = f"0x{value[: MAX_CHARACTERS // 2 - 1].hex()}"
        return (
            shown if len(shown) == 2 + 2 * len(value) else _with_length(shown, len(value), "byte")
        )
    text = str(value)
    shown = text[:MAX_CHARACTERS]
    return shown if len(shown) == len(text) else _with_length(shown, len(text), "character")


def render_dtype(
    dtype: pl.DataType, *, redacted: bool = False, max_characters: int = MAX_CHARACTERS
) -> str:
    """Print a dtype as Polars does, with the first of many categories or fields.

    `redacted`: without what is inside, which can be values.
    """
    if redacted:
        return str(dtype.base_type())
    return cut(_render_dtype(dtype, max_characters - _AROUND), max_characters)


def _render_dtype(dtype: Any, max_characters: int) -> str:
    match dtype:
        case pl.Enum():
            categories = dtype.categories
            shown = (repr(cut(text, _MAX_NAME)) for text in categories.head(max_characters))
            return f"Enum(categories=[{_first(shown, len(categories), max_characters)}])"
        case pl.List():
            return f"List({_render_dtype(dtype.inner, max_characters)})"
        case pl.Array():
            # Polars prints arrays of arrays as one (1.35 to 2.1).
            shape = dtype.shape
            while isinstance(dtype, pl.Array):
                dtype = dtype.inner
            return f"Array({_render_dtype(dtype, max_characters)}, shape={shape})"
        case pl.Struct():
            fields = (
                f"{cut(field.name, _MAX_NAME)!r}: {_render_dtype(field.dtype, max_characters)}"
                for field in dtype.fields
            )
            return f"Struct({{{_first(fields, len(dtype.fields), max_characters)}}})"
    return str(dtype)


def _first(items: Iterable[str], number: int, max_characters: int) -> str:
    """List items until they are too long."""
    text = ""
    for position, item in enumerate(items):
        if position and len(text) + len(item) > max_characters:
            return f"{text}, … {number - position:,} more"
        text += f", {item}" if position else item
    return text


def _render_times(series: pl.Series) -> list[Cell]:
    unit = "days" if series.dtype == pl.Date else getattr(series.dtype, "time_unit", "ns")
    stored = series.to_physical()
    can_print = (stored // PER_DAY[unit]).is_between(FIRST_DAY, LAST_DAY)
    printed = series.zip_with(can_print, series.clear(1)).dt.to_string("iso")
    return [
        f"{number} {unit}" if text is None and number is not None else text
        for text, number in zip(printed, stored, strict=True)
    ]


def _render_texts(series: pl.Series) -> list[Cell]:
    lengths = series.str.len_chars()
    return [
        text
        if text is None or length <= MAX_CHARACTERS
        else _with_length(text, length, "character")
        for text, length in zip(series.str.head(MAX_CHARACTERS), lengths, strict=True)
    ]


def _render_nested(series: pl.Series) -> Cell:
    """The one value of a series of lists, arrays or structs, as JSON."""
    if series.null_count():
        return None
    text = ""
    for piece in _pieces(series):
        text += piece
        if len(text) > MAX_CHARACTERS:
            break
    else:
        return text
    shown = text[:MAX_CHARACTERS]
    if isinstance(series.dtype, pl.Struct):
        return _with_length(shown, len(series.dtype.fields), "field")
    return _with_length(shown, series.item().len(), "element")


def _pieces(series: pl.Series) -> Iterator[str]:
    """The one value of a series as JSON, in pieces, so that a long one is not rendered to its end."""
    if not series.dtype.is_nested() or series.null_count():
        (cell,) = render_series(series)
        yield json.dumps(cell, ensure_ascii=False, allow_nan=False)
    elif isinstance(series.dtype, pl.Struct):
        yield "{"
        # By their names, Polars takes some fields for patterns (1.35 to 2.1).
        for number, field in enumerate(series.struct.unnest()):
            yield f"{', ' if number else ''}{json.dumps(field.name, ensure_ascii=False)}: "
            yield from _pieces(field.alias("value"))
        yield "}"
    else:
        elements = series.item()
        yield "["
        for number in range(elements.len()):
            yield ", " if number else ""
            yield from _pieces(elements.slice(number, 1))
        yield "]"


def _with_length(shown: str, length: int, unit: str) -> str:
    return f"{shown}… ({count(length, unit)})"


def _render_non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
