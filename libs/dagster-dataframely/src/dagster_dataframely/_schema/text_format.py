"""Read how text is written where a schema's author declares it: on a column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import dataframely as dy
import polars as pl

from dagster_dataframely._names import TEXT_FORMAT_METADATA_KEY
from dagster_dataframely._schema.times import problem_of
from dagster_dataframely.errors import InvalidTextFormatError


@dataclass(frozen=True)
class TextFormat:
    """How the values of a column are written as text."""

    formats: tuple[str, ...] = ()
    time_zone: str | None = None
    decimal: str = "."
    thousands: str | None = None
    prefix: str = ""
    suffix: str = ""
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    null: tuple[str, ...] = ()


_ARGUMENTS = tuple(field.name for field in fields(TextFormat))
_LISTS = ("formats", "true", "false", "null")
_NUMBER = ("decimal", "thousands", "prefix", "suffix")
_IN_NUMBERS = frozenset("0123456789+-")


def text_format(
    *formats: str,
    time_zone: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    prefix: str | None = None,
    suffix: str | None = None,
    true: Sequence[str] | None = None,
    false: Sequence[str] | None = None,
    null: Sequence[str] | None = None,
) -> dict[str, dict[str, Any]]:
    """Column metadata that says how the column's values are written as text, for `dd.parse`.

    Runs at definition. The result is a plain mapping for `metadata=` of a Dataframely column; merge it
    into other metadata, such as that of `dd.severity`, with `**`. It never shows as a column tag. What
    cannot parse the column's dtype is an `InvalidTextFormatError` where the schema is read, not here.
    In a list or a struct, the column inside it has the format.

    Args:
        *formats: For dates and times, tried in order, in the words of `strftime`; `%.f` stands for the
            decimals of a second with the dot before them. Without any, ISO 8601.
        time_zone: For zoned datetimes, what a text without a zone means. A local time that does not
            exist there, or exists twice, does not survive. `None`: a text must carry its zone.
        decimal: For numbers, the character before the decimals. `None` means `.`.
        thousands: For numbers, the character between groups of three digits. `None`: there is none.
        prefix: For numbers, what may stand before one, such as a currency sign.
        suffix: For numbers, what may stand after one, such as `%`, which divides nothing.
        true: For Booleans, the texts that mean true, exactly so. `None`: `true` in any case.
        false: For Booleans, the texts that mean false, exactly so. `None`: `false` in any case.
        null: For any dtype, texts that mean null. `None`: there is none, and an empty text is no number.

    Returns:
        `{"dagster_dataframely_text_format": {...}}`, with what was given.

    Example:
        ```python
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            placed_on = dy.Date(metadata=dd.text_format("%d.%m.%Y"))
            amount = dy.Decimal(10, 2, metadata=dd.text_format(decimal=",", thousands="."))


        frame = pl.DataFrame({"placed_on": ["24.12.2024"], "amount": ["1.234,50"]})
        print(dd.parse(Orders, frame).row(0))
        #> (datetime.date(2024, 12, 24), Decimal('1234.50'), None)
        ```
    """
    given = {
        "formats": list(formats) or None,
        "time_zone": time_zone,
        "decimal": decimal,
        "thousands": thousands,
        "prefix": prefix,
        "suffix": suffix,
        "true": true,
        "false": false,
        "null": null,
    }
    known = {name: value for name, value in given.items() if value is not None}
    return {TEXT_FORMAT_METADATA_KEY: known}


def read_text_format(column: dy.Column) -> TextFormat:
    """What a column's metadata says of its text, once `reject_text_formats` has looked at it."""
    given = _given(column)
    lists = {name: tuple(given[name]) for name in _LISTS if name in given}
    return TextFormat(**{**given, **lists})


def reject_text_formats(schema: str, columns: Mapping[str, dy.Column]) -> None:
    """Raise where a format cannot parse the dtype of its column, or of one inside of it."""
    for name, column in columns.items():
        for part in _with_inner(column):
            if (problem := _problem(part)) is not None:
                raise InvalidTextFormatError(schema, name, problem)


def inner_columns(column: dy.Column) -> list[dy.Column]:
    """The columns of a struct, or the one of a list or an array."""
    inner = getattr(column, "inner", None) or {}
    return list(inner.values()) if isinstance(inner, Mapping) else [cast("dy.Column", inner)]


def _with_inner(column: dy.Column) -> Iterator[dy.Column]:
    yield column
    for inner in inner_columns(column):
        yield from _with_inner(inner)


def _given(column: dy.Column) -> dict[str, Any]:
    given: Any = (column.metadata or {}).get(TEXT_FORMAT_METADATA_KEY) or {}
    return cast("dict[str, Any]", given)


def _problem(column: dy.Column) -> str | None:
    """What is wrong with a column's text format, in words."""
    given = _given(column)
    if not given:
        return None
    allowed = _arguments_for(column.dtype) if not isinstance(column, dy.Any) else ()
    for name, value in given.items():
        if name not in allowed:
            known = "" if name in _ARGUMENTS else ", or any other column"
            return f"`{name}` is not for {column.dtype.base_type()}{known}"
        if name in _LISTS:
            if not isinstance(value, (list, tuple)) or not all(isinstance(t, str) for t in value):
                return f"`{name}` is {value!r}, and not a list of texts"
        elif not isinstance(value, str):
            return f"`{name}` is {value!r}, and not a text"
    found = read_text_format(column)
    if isinstance(column.dtype, (pl.Date, pl.Datetime, pl.Time)):
        return _time_problem(found, column.dtype)
    if column.dtype == pl.Boolean:
        return _boolean_problem(found)
    return _number_problem(found)


def _arguments_for(dtype: pl.DataType) -> tuple[str, ...]:
    if dtype.is_nested():
        return ()
    if dtype.is_numeric():
        return (*_NUMBER, "null")
    if dtype == pl.Boolean:
        return "true", "false", "null"
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        return "formats", "time_zone", "null"
    if isinstance(dtype, (pl.Date, pl.Datetime, pl.Time)):
        return "formats", "null"
    return ("null",)


def _time_problem(found: TextFormat, dtype: pl.DataType) -> str | None:
    if found.time_zone is not None:
        try:
            pl.Series([0], dtype=pl.Datetime("us", found.time_zone)).dt.to_string("%z")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return f"`time_zone` is {found.time_zone!r}, which Polars does not know"
    for format_ in found.formats:
        if (problem := problem_of(format_, dtype, found.time_zone)) is not None:
            return f"`{format_}`: {problem}"
    return None


def _boolean_problem(found: TextFormat) -> str | None:
    if both := sorted({*found.true} & {*found.false}):
        return f"{both[0]!r} means true and false"
    return None


def _number_problem(found: TextFormat) -> str | None:
    for name in ("decimal", "thousands"):
        sign = getattr(found, name)
        if sign is not None and (len(sign) != 1 or sign in _IN_NUMBERS):
            return f"`{name}` is {sign!r}, and not one character between digits"
    if found.thousands == found.decimal:
        return f"`decimal` and `thousands` are both {found.decimal!r}"
    for name in ("prefix", "suffix"):
        if _IN_NUMBERS & {*getattr(found, name)}:
            return f"`{name}` is {getattr(found, name)!r}, which has digits or signs"
    return None
