"""Write values that did not survive `dd.parse` as JSON, and find them again."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from dagster_dataframely._cells import FIRST_DAY, LAST_DAY, PER_DAY, REDACTED
from dagster_dataframely._names import ORIGINAL

_ESCAPES = {
    character: json.dumps(character)[1:-1] for character in (*map(chr, range(32)), '"', "\\")
}


def failed_in(column: str) -> pl.Expr:
    """Whether `dy_original` holds a value of a column; false where it is null."""
    return pl.col(ORIGINAL).str.contains(_key(column), literal=True).fill_null(value=False)


def lost_value(column: str) -> pl.Expr:
    """The JSON text of a column's value that `dy_original` holds; null for what is nested."""
    value = r'("(?:[^"\\]|\\.)*"|[^",{}\[\]]+)'
    return pl.col(ORIGINAL).str.extract(re.escape(_key(column)) + value)


def write_original(values: Mapping[str, pl.Expr], dtypes: Mapping[str, pl.DataType]) -> pl.Expr:
    """The JSON text of what is not null among these values, by column; null where all are null."""
    if not values:
        return pl.lit(None, dtype=pl.String)
    present = pl.any_horizontal(value.is_not_null() for value in values.values())
    members = [
        pl.when(value.is_not_null()).then(pl.lit(_key(column)) + _write(value, dtypes[column]))
        for column, value in values.items()
    ]
    joined = pl.concat_str(members, separator=",", ignore_nulls=True)
    return pl.when(present).then("{" + joined + "}")


def add_original(earlier: pl.Expr, later: pl.Expr) -> pl.Expr:
    """What an earlier parse wrote and what a later one writes, in one object."""
    both = earlier.str.strip_suffix("}") + "," + later.str.strip_prefix("{")
    return pl.coalesce(both, earlier, later)


def redact_original(text: str, redacted: Collection[str]) -> str:
    """What `dy_original` holds of one row, without the values of redacted columns."""
    if not redacted:
        return text
    try:
        values = dict(json.loads(text, parse_float=str))
    except ValueError:
        return REDACTED
    shown = {name: REDACTED if name in redacted else value for name, value in values.items()}
    return json.dumps(shown, ensure_ascii=False)


def _key(column: str) -> str:
    """A column as a key of the object, which occurs nowhere else in it.

    No value holds a quote without a backslash before it, and no other key any quote. What follows the
    quote at the end of a value cannot begin a key, and keys inside of values have a space after them.
    """
    text = json.dumps(column, ensure_ascii=False)[1:-1].replace('\\"', "\\u0022")
    if text[0] in ":,]}":
        text = f"\\u{ord(text[0]):04x}{text[1:]}"
    return f'"{text}":'


def _write(value: pl.Expr, dtype: Any) -> pl.Expr:
    """The JSON text of values; a null is `null` inside of others."""
    if isinstance(dtype, pl.Struct):
        return _write_struct(value, dtype)
    if isinstance(dtype, pl.Array):
        return _write(value.arr.to_list(), pl.List(dtype.inner))
    if isinstance(dtype, pl.List):
        elements = value.list.eval(_write(pl.element(), dtype.inner)).list.join(",")
        return ("[" + elements + "]").fill_null("null")
    if dtype == pl.Null:
        return value.cast(pl.String).fill_null("null")
    if dtype.is_float():
        text = value.cast(pl.String)
        return pl.when(value.is_finite()).then(text).otherwise(_quote(text))
    if dtype.is_numeric() or dtype == pl.Boolean:
        return value.cast(pl.String).fill_null("null")
    if dtype == pl.Binary:
        return _quote("0x" + value.bin.encode("hex"))
    if dtype == pl.Duration:
        return _quote(value.dt.to_string("iso"))
    if dtype.is_temporal():
        return _quote(_write_time(value, dtype))
    return _quote(value.cast(pl.String))


def _write_struct(value: pl.Expr, dtype: pl.Struct) -> pl.Expr:
    # By their names, Polars takes some fields for patterns (1.35 to 2.1).
    places = value.struct.rename_fields([str(place) for place in range(len(dtype.fields))])
    members = [
        pl.lit(f"{json.dumps(field.name, ensure_ascii=False)} :")
        + _write(places.struct.field(str(place)), field.dtype)
        for place, field in enumerate(dtype.fields)
    ]
    text = "{" + pl.concat_str(members, separator=",") + "}"
    return pl.when(value.is_not_null()).then(text).otherwise(pl.lit("null"))


def _write_time(value: pl.Expr, dtype: Any) -> pl.Expr:
    """Dates and times as Polars prints them; those that it cannot print as they are stored."""
    unit = "days" if dtype == pl.Date else getattr(dtype, "time_unit", "ns")
    stored = value.to_physical()
    can_print = (stored // PER_DAY[unit]).is_between(FIRST_DAY, LAST_DAY)
    printed = pl.when(can_print).then(value).dt.to_string("iso")
    return pl.coalesce(printed, stored.cast(pl.String) + f" {unit}")


def _quote(text: pl.Expr) -> pl.Expr:
    """A text as JSON writes it; `null` for null."""
    return ('"' + text.str.replace_many(_ESCAPES) + '"').fill_null("null")
