"""Parse dates and times from text, where no digit is lost."""

import datetime as dt
import functools
import re
from collections.abc import Sequence
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

_YEAR_1000 = {
    unit: -354_285 * per_day
    for unit, per_day in {"days": 1, "ms": 86_400_000, "us": 86_400_000_000}.items()
}
"""When it began, counted from 1970; nanoseconds cannot count so far."""


Attempt = tuple[pl.Expr, pl.Expr]
"""What Polars makes of texts, and where that is what they mean."""


def try_usual(text: pl.Expr, dtype: Any, formats: Sequence[str], time_zone: str | None) -> Attempt:
    """Try the first format, or the most usual form of ISO 8601, on years of four digits."""
    if isinstance(dtype, pl.Datetime) and not formats:
        text = text.str.replace("T", " ", literal=True)
        formats = [_ISO_MOMENTS[0] if dtype.time_zone is None else f"{_ISO_MOMENTS[0]}%#z"]
    elif not formats:
        formats = ["%Y-%m-%d" if isinstance(dtype, pl.Date) else _ISO_TIMES[0]]
    value, means_it = _try(text, formats[0], dtype, time_zone)
    return value, means_it & _is_late(value, dtype)


def parse_iso(text: pl.Expr, dtype: Any, time_zone: str | None) -> pl.Expr:
    """Parse dates and times as ISO 8601 writes them; others are null."""
    if isinstance(dtype, pl.Date):
        return parse_time(text, "%Y-%m-%d", dtype, None)
    if isinstance(dtype, pl.Time):
        return pl.coalesce(parse_time(text, format_, dtype, None) for format_ in _ISO_TIMES)
    text = text.str.replace("T", " ", literal=True)
    formats: list[str] = []
    if dtype.time_zone is not None:
        formats += [f"{format_}%#z" for format_ in _ISO_MOMENTS]
    if dtype.time_zone is None or time_zone is not None:
        formats += [*_ISO_MOMENTS, "%Y-%m-%d"]
    return pl.coalesce(parse_time(text, format_, dtype, time_zone) for format_ in formats)


def parse_time(text: pl.Expr, format_: str, dtype: Any, time_zone: str | None) -> pl.Expr:
    """Parse dates or times of one format; others, and those with a digit too many, are null."""
    value, means_it = _try(text, format_, dtype, time_zone)
    # Polars takes the 24 of `1.2.24` for the year 24 (1.35 to 2.1).
    early = r"(^|[^\d.,])0\d{3}" if _FRACTION.search(format_) else r"(^|\D)0\d{3}(\D|$)|^0\d{7}"
    return pl.when(means_it & (_is_late(value, dtype) | text.str.contains(early))).then(value)


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
    if parsed is None or not _is_close(parsed):
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


def _is_close(parsed: Any) -> bool:
    """Whether a parsed sample is of the day of the sample, in one zone or another."""
    if isinstance(parsed, dt.time):
        return True
    day: dt.date = parsed.date() if isinstance(parsed, dt.datetime) else parsed
    return abs(day - _SAMPLE.date()) <= dt.timedelta(days=1)


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


def _try(text: pl.Expr, format_: str, dtype: Any, time_zone: str | None) -> Attempt:
    if isinstance(dtype, pl.Date):
        return text.str.to_date(format_, strict=False), text.is_not_null()
    if isinstance(dtype, pl.Time):
        time = text.str.to_time(format_, strict=False)
        return time, _keeps_digits(text, time, format_, "ns")
    if time_zone is None or _look_at(format_).zone:
        return _try_moment(text, format_, dtype)
    local, means_it = _try_moment(text, format_, pl.Datetime(dtype.time_unit))
    there = local.dt.replace_time_zone(time_zone, ambiguous="null", non_existent="null")
    return there.dt.convert_time_zone(dtype.time_zone), means_it


def _try_moment(text: pl.Expr, format_: str, dtype: pl.Datetime) -> Attempt:
    if not _look_at(format_).time:
        day = text.str.to_date(format_, strict=False)
        return day.cast(dtype, strict=False), _in_range(day, dtype)
    moment = text.str.to_datetime(format_, time_unit=dtype.time_unit, strict=False)
    day = text.str.to_date(format_, strict=False) if dtype.time_unit == "ns" else moment
    if "%s" in format_:
        moment = moment.dt.replace_time_zone("UTC")
    if dtype.time_zone is not None:
        moment = moment.dt.convert_time_zone(dtype.time_zone)
    return moment, _in_range(day, dtype) & _keeps_digits(text, moment, format_, dtype.time_unit)


def _keeps_digits(text: pl.Expr, time: pl.Expr, format_: str, time_unit: str) -> pl.Expr:
    keeps = time.is_not_null()
    if _FRACTION.search(format_):
        digits = _DIGITS[time_unit]
        lost = rf"[.,]\d{{{digits}}}\d*[1-9]\d*\s*([Zz+-].*|[AaPp][Mm])?$"
        keeps &= ~text.str.contains(lost)
    if _SECOND.search(format_):
        # The second 60 becomes the next minute (1.35 to 2.1).
        keeps &= (time.dt.second() != 0) | ~text.str.contains(r"[:T ]60|\d{4}60")
    return keeps


def _in_range(day: pl.Expr, dtype: pl.Datetime) -> pl.Expr:
    """Whether a time unit can count what was parsed."""
    return day.is_between(_FIRST_NS, _LAST_NS) if dtype.time_unit == "ns" else day.is_not_null()


def _is_late(value: pl.Expr, dtype: Any) -> pl.Expr:
    """Whether a day has a year of four digits or more."""
    unit = "days" if isinstance(dtype, pl.Date) else getattr(dtype, "time_unit", "ns")
    if unit not in _YEAR_1000:
        return value.is_not_null()
    return value.to_physical() >= _YEAR_1000[unit]
