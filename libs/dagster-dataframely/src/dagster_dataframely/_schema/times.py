"""Parse dates and times from text, where no digit is lost."""

import datetime as dt
import functools
import re
from dataclasses import dataclass
from typing import Any

import polars as pl

_ISO_TIMES = ("%H:%M:%S%.f", "%H:%M")
_ISO_MOMENTS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M")

_SAMPLE = dt.datetime(2001, 2, 3, 4, 5, 6)
_OTHER_DAY = dt.datetime(2012, 11, 13, 4, 5, 6)
_OTHER_TIME = dt.datetime(2001, 2, 3, 14, 15, 16)

_FRACTION = re.compile(r"%\.|%\+")
_SECOND = re.compile(r"%[STXcr+]")
_NANOSECONDS = re.compile(r"%[369]?f")

_FIRST_NS, _LAST_NS = dt.date(1677, 9, 22), dt.date(2262, 4, 10)
"""On these days every moment can be counted in nanoseconds; Polars wraps the others (1.35 to 2.1)."""

_DIGITS = {"ms": 3, "us": 6, "ns": 9}
"""Decimals of a second that a time unit has."""

_YEAR_1000 = -354_285
"""Its first day, counted from 1970."""

_PER_DAY = {"days": 1, "ms": 86_400_000, "us": 86_400_000_000}


def parse_iso(text: pl.Expr, dtype: Any, time_zone: str | None) -> pl.Expr:
    """Parse dates and times as ISO 8601 writes them; others are null."""
    if isinstance(dtype, pl.Date):
        return _parse_date(text, "%Y-%m-%d")
    if isinstance(dtype, pl.Time):
        return pl.coalesce(parse_time(text, format_, dtype, None) for format_ in _ISO_TIMES)
    spaced = text.str.replace("T", " ", literal=True)
    attempts = []
    if dtype.time_zone is not None:
        attempts += [_parse_moment(spaced, f"{format_}%#z", dtype) for format_ in _ISO_MOMENTS]
    if dtype.time_zone is None or time_zone is not None:
        formats = (*_ISO_MOMENTS, "%Y-%m-%d")
        attempts += [_parse_local(spaced, format_, dtype, time_zone) for format_ in formats]
    return pl.coalesce(attempts)


def parse_usual_iso(text: pl.Expr, dtype: Any) -> pl.Expr:
    """Parse the most usual form of ISO 8601."""
    if isinstance(dtype, pl.Date):
        return _parse_date(text, "%Y-%m-%d")
    if isinstance(dtype, pl.Time):
        return parse_time(text, _ISO_TIMES[0], dtype, None)
    zone = "" if dtype.time_zone is None else "%#z"
    return _parse_moment(text.str.replace("T", " ", literal=True), f"{_ISO_MOMENTS[0]}{zone}", dtype)


def parse_time(text: pl.Expr, format_: str, dtype: Any, time_zone: str | None) -> pl.Expr:
    """Parse dates or times of one format; others, and those with a digit too many, are null."""
    if isinstance(dtype, pl.Date):
        return _parse_date(text, format_)
    if isinstance(dtype, pl.Time):
        # `str.to_time` drops digits after the sixth decimal (1.35 to 2.1).
        return _parse_moment("1970-01-01 " + text, f"%Y-%m-%d {format_}", pl.Datetime("ns")).dt.time()
    if _look_at(format_).zone:
        return _parse_moment(text, format_, dtype)
    return _parse_local(text, format_, dtype, time_zone)


def problem_of(format_: str, dtype: Any, time_zone: str | None) -> str | None:
    """Why a format cannot parse values of a dtype, in words."""
    if _NANOSECONDS.search(format_):
        return "its `%f` counts nanoseconds: write `%.f`, without a dot before it"
    if "%Z" in format_:
        return "it has `%Z`, whose names of zones are not parsed: write `%z`"
    try:
        facts = _look_at(format_)
        parsed = pl.select(parse_time(pl.lit(facts.text), format_, dtype, time_zone)).item()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return "Polars does not know it"
    if parsed is None:
        return "it says too little, or what Polars does not parse"
    if facts.day is isinstance(dtype, pl.Time):
        return "a time has no day" if facts.day else "it has no day"
    if facts.time and isinstance(dtype, pl.Date):
        return "a date has no time of day"
    if isinstance(dtype, pl.Datetime):
        if facts.zone and dtype.time_zone is None:
            return "the column has no time zone"
        if not facts.zone and dtype.time_zone is not None and time_zone is None:
            return 'it has no `%z`: say `time_zone="..."` too'
    return None


@dataclass(frozen=True)
class _Facts:
    """What a format writes."""

    text: str
    """A sample of it."""
    day: bool
    time: bool
    zone: bool


@functools.lru_cache
def _look_at(format_: str) -> _Facts:
    def write(moment: dt.datetime, zone: str = "UTC") -> str:
        there = pl.Series([moment]).dt.replace_time_zone(zone)
        return str(there.dt.to_string(format_.replace("%#z", "%z")).item())

    text = write(_SAMPLE)
    return _Facts(
        text=text,
        day=text != write(_OTHER_DAY),
        time=text != write(_OTHER_TIME),
        zone=text != write(_SAMPLE, "Asia/Kolkata"),
    )


def _parse_date(text: pl.Expr, format_: str) -> pl.Expr:
    return _with_whole_year(
        text, text.str.to_date(format_, strict=False), "days", fraction=False
    )


def _parse_local(text: pl.Expr, format_: str, dtype: Any, time_zone: str | None) -> pl.Expr:
    """Parse local times; in a zone, where one exists once there."""
    local = _parse_moment(text, format_, pl.Datetime(dtype.time_unit))
    if time_zone is None:
        return local
    there = local.dt.replace_time_zone(time_zone, ambiguous="null", non_existent="null")
    return there.dt.convert_time_zone(dtype.time_zone)


def _parse_moment(text: pl.Expr, format_: str, dtype: pl.Datetime) -> pl.Expr:
    facts = _look_at(format_)
    if not facts.time:
        return _in_range(_parse_date(text, format_), dtype).cast(dtype)
    moment = text.str.to_datetime(format_, time_unit=dtype.time_unit, strict=False)
    if dtype.time_unit == "ns":
        in_microseconds = text.str.to_datetime(format_, time_unit="us", strict=False)
        moment = pl.when(_in_range(in_microseconds, dtype).is_not_null()).then(moment)
    if "%s" in format_:
        moment = moment.dt.replace_time_zone("UTC")
    if dtype.time_zone is not None:
        moment = moment.dt.convert_time_zone(dtype.time_zone)
    lost = pl.lit(value=False)
    if _FRACTION.search(format_):
        digits = _DIGITS[dtype.time_unit]
        lost |= text.str.contains(rf"[.,]\d{{{digits}}}\d*[1-9]\d*\s*([Zz+-].*|[AaPp][Mm])?$")
    if _SECOND.search(format_):
        # The second 60 becomes the next minute (1.35 to 2.1).
        full = pl.when(moment.dt.second() == 0).then(text)
        lost |= full.str.contains(r"[:T ]60|\d{4}60").fill_null(value=False)
    if dtype.time_unit != "ns":
        fraction = _FRACTION.search(format_) is not None
        moment = _with_whole_year(text, moment, dtype.time_unit, fraction=fraction)
    return pl.when(~lost).then(moment)


def _in_range(moment: pl.Expr, dtype: pl.Datetime) -> pl.Expr:
    """Days or moments that a time unit can count; the others are null."""
    if dtype.time_unit != "ns":
        return moment
    return pl.when(moment.dt.date().is_between(_FIRST_NS, _LAST_NS)).then(moment)


def _with_whole_year(text: pl.Expr, parsed: pl.Expr, unit: str, *, fraction: bool) -> pl.Expr:
    """Drop what Polars parses as one of the first 999 years, unless that has four digits in the text.

    It takes the 24 of `1.2.24` for the year 24 (1.35 to 2.1).
    """
    four_digits = r"(^|[^\d.,])0\d{3}" if fraction else r"(^|\D)0\d{3}(\D|$)|^0\d{7}"
    is_early = parsed.to_physical() < _YEAR_1000 * _PER_DAY[unit]
    early = pl.when(is_early).then(text)
    return pl.when(~is_early | early.str.contains(four_digits)).then(parsed)
