"""Parse text to values that mean the same, or to null."""

import re
from collections.abc import Callable
from typing import Any

import polars as pl

from dagster_dataframely._schema.text_format import TextFormat
from dagster_dataframely._schema.times import Attempt, parse_iso, parse_time, try_usual

_EXACT_DIGITS = {pl.Float32: 6, pl.Float64: 15}
"""Decimal digits that every number of this dtype keeps."""

_NORMAL = {pl.Float32: 1e-30, pl.Float64: 1e-290}
"""Floats that are smaller may have fewer digits."""

_ZEROS = ["0", "0.0", "0.00"]


Keep = Callable[[pl.Expr], pl.Expr]
"""Makes a column of an expression that is used more than once, and returns that."""


def parse_text(text: pl.Expr, dtype: Any, found: TextFormat, keep: Keep) -> pl.Expr:
    """The values that a column of text means; null where it means none, or one with other digits.

    Most texts are parsed as they are, and only what is left with more care.
    """
    if dtype == pl.String:
        return text
    quick = _try_quickly(text, dtype, found)
    if quick is None:
        return _parse_with_care(text.str.strip_chars(), dtype, found)
    value, means_it = keep(quick[0]), keep(quick[1])
    left = pl.when(means_it).then(None).otherwise(text).str.strip_chars()
    return pl.when(means_it).then(value).otherwise(_parse_with_care(left, dtype, found))


def _try_quickly(text: pl.Expr, dtype: Any, found: TextFormat) -> Attempt | None:
    """Parse texts of the most usual form; `None` where there is no quicker way."""
    if dtype.is_temporal():
        return try_usual(text, dtype, found.formats, found.time_zone)
    plain = found.decimal == "." and found.thousands is None
    if isinstance(dtype, pl.Enum) or (dtype.is_numeric() and plain):
        value = text.cast(dtype, strict=False)
        if dtype.is_float():
            return value, _is_short(text, value, dtype)
        if isinstance(dtype, pl.Decimal):
            return value, value.is_not_null() & ~_loses_digits(text, dtype)
        return value, value.is_not_null()
    return None


def _parse_with_care(text: pl.Expr, dtype: Any, found: TextFormat) -> pl.Expr:
    if dtype == pl.Boolean:
        return _parse_boolean(text, found)
    if dtype.is_numeric():
        return _parse_number(_plain_number(text, found), dtype)
    if dtype.is_temporal():
        if not found.formats:
            return parse_iso(text, dtype, found.time_zone)
        return pl.coalesce(parse_time(text, f, dtype, found.time_zone) for f in found.formats)
    return text.cast(dtype, strict=False)


def means_null(text: pl.Expr, dtype: Any, found: TextFormat) -> pl.Expr:
    """Whether a text stands for null."""
    return (text if dtype == pl.String else text.str.strip_chars()).is_in(list(found.null))


def _parse_boolean(text: pl.Expr, found: TextFormat) -> pl.Expr:
    def is_one_of(texts: tuple[str, ...], default: str) -> pl.Expr:
        return text.is_in(list(texts)) if texts else text.str.to_lowercase() == default

    true, false = is_one_of(found.true, "true"), is_one_of(found.false, "false")
    return pl.when(true).then(True).when(false).then(False)


def _plain_number(text: pl.Expr, found: TextFormat) -> pl.Expr:
    """Write numbers without thousands, prefix and suffix, and with a decimal point."""
    prefix, suffix = re.escape(found.prefix.strip()), re.escape(found.suffix.strip())
    if prefix:
        text = text.str.replace(rf"^([+-]?)\s*{prefix}\s*", "$1")
    if suffix:
        text = text.str.replace(rf"\s*{suffix}$", "")
    if found.thousands is None and found.decimal == ".":
        return text
    groups, decimal = r"\d*", re.escape(found.decimal)
    if found.thousands is not None:
        groups = rf"(?:\d{{1,3}}(?:{re.escape(found.thousands)}\d{{3}})+|\d*)"
    is_number = text.str.contains(rf"^[+-]?{groups}(?:{decimal}\d*)?(?:[eE][+-]?\d+)?$")
    if found.thousands is not None:
        text = text.str.replace_all(found.thousands, "", literal=True)
    return pl.when(is_number).then(text.str.replace(found.decimal, ".", literal=True))


def _parse_number(text: pl.Expr, dtype: Any) -> pl.Expr:
    if dtype.is_float():
        return _parse_float(text, dtype)
    if isinstance(dtype, pl.Decimal):
        return _parse_decimal(text.str.strip_prefix("+"), dtype)  # Polars 1.35 takes none.
    # A whole number may have decimals that say nothing.
    return text.str.replace(r"^([+-]?\d+)\.0*$", "$1").cast(dtype, strict=False)


def _parse_decimal(text: pl.Expr, dtype: pl.Decimal) -> pl.Expr:
    return pl.when(~_loses_digits(text, dtype)).then(text.cast(dtype, strict=False))


def _loses_digits(text: pl.Expr, dtype: pl.Decimal) -> pl.Expr:
    """Whether a cast rounds, half to even (1.35 to 2.1), or may make 0 of an exponent (1.44)."""
    return text.str.contains(rf"\.\d{{{dtype.scale}}}\d*[1-9]|[eE]")


def _is_short(text: pl.Expr, value: pl.Expr, dtype: Any) -> pl.Expr:
    """Whether a text has too few digits for a float to lose any."""
    short = text.str.len_bytes() <= _EXACT_DIGITS[type(dtype)]
    return short & (value.abs().is_between(_NORMAL[type(dtype)], 1e38) | text.is_in(_ZEROS))


def _parse_float(text: pl.Expr, dtype: Any) -> pl.Expr:
    parsed = text.cast(dtype, strict=False)
    exact = _digits(text) == _digits(parsed.cast(pl.String))
    is_word = ~text.str.contains(r"\d")
    return pl.when(pl.when(parsed.is_finite()).then(exact).otherwise(is_word)).then(parsed)


def _digits(number: pl.Expr) -> pl.Expr:
    """The digits of a number without its sign, its point and the zeros that say nothing."""
    mantissa = number.str.replace(r"[eE].*$", "").str.replace_all(r"\D", "")
    return mantissa.str.strip_chars("0")
