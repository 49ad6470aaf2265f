"""Divide `max_metadata_bytes` among the parts of a run's metadata, and cut each to its share."""

from collections.abc import Callable, Mapping
from itertools import accumulate, islice
from typing import Any, Literal

import dagster as dg

from dagster_dataframely._metadata.tables import Table, left_out
from dagster_dataframely._settings import Settings

Part = Literal[
    "check samples", "column errors", "extra columns", "tables", "report", "failures", "manager"
]

SIXTEENTHS: Mapping[Part, int] = {
    "check samples": 5,  # Failing rows and duplicated keys of all checks.
    "column errors": 1,  # The column check: what is missing or has another dtype.
    "extra columns": 1,  # The column check: names that the schema does not declare.
    "tables": 4,  # The materialization: samples, statistics, combinations of failing rules.
    "report": 2,  # The materialization: the run in words.
    "failures": 1,  # The materialization: counts by rule, which the next run compares itself with.
    "manager": 2,  # The materialization: the tables that the IO manager records.
}
"""Shares are fixed, so that no part has to know how large another one is."""

_KEY = 40
"""Bytes: a metadata key, with the JSON around it, takes no more."""

_LEAST = 1_500
"""Bytes: where tables compete, each gets at least this, if it needs it, or only a note."""

_SMALLEST = 300
"""Bytes: a table with a row takes more."""


def share(settings: Settings, part: Part, copies: int = 1) -> int:
    """The bytes of one part, where Dagster stores it this many times."""
    return settings.max_metadata_bytes * SIXTEENTHS[part] // 16 // copies


def size(value: Any) -> int:
    """The bytes of a metadata value in the event log, with its key."""
    return len(dg.serialize_value(value)) + _KEY


def shrink[Value: dg.MetadataValue[Any]](
    build: Callable[[int], Value], number: int, max_bytes: int
) -> Value:
    """Build with a number of rows or names, halved until the result fits; with 0, it may not fit."""
    while size(value := build(number)) > max_bytes and number:
        number //= 2
    return value


def fit_names(names: Mapping[str, int | None], noun: str, max_bytes: int) -> dict[str, int | None]:
    """The first names with their counts; a note without a count stands for the others."""

    def build(most: int) -> dg.JsonMetadataValue:
        hidden = len(names) - most
        note = {left_out(hidden, noun): None} if hidden else {}
        return dg.MetadataValue.json({**dict(islice(names.items(), most)), **note})

    shown: Any = shrink(build, len(names), max_bytes).data
    return dict(shown)


def fit(table: Table, max_bytes: int) -> dg.MetadataValue[Any]:
    """Halve the rows of a table until it fits, then its columns; a note stands for one that cannot."""

    def with_rows(rows: int) -> dg.MetadataValue[Any]:
        return table.cut(rows) if rows else shrink(with_columns, len(table.columns), max_bytes)

    def with_columns(columns: int) -> dg.MetadataValue[Any]:
        return table.cut(1, columns) if columns else table.note()

    return shrink(with_rows, len(table.rows), max_bytes)


def limit_each(max_bytes: int, tables: int) -> tuple[int, int]:
    """How many of these tables are worth rendering, and the bytes that each is worth."""
    shown = min(tables, max_bytes // _SMALLEST)
    return shown, min(max_bytes, max(_LEAST, 4 * max_bytes // max(1, shown)))


def fit_tables[Key](values: Mapping[Key, Any], max_bytes: int) -> dict[Key, Any]:
    """Fit the tables among these values, the most important first; other values stay.

    Small tables are whole, and the others get equally much. Where that would be too little to show a
    row, notes stand for the last tables; they are not counted.
    """
    tables = {key: value for key, value in values.items() if isinstance(value, Table)}
    fitted = {key: fit(table, max_bytes) for key, table in tables.items()}
    sizes = {key: size(value) for key, value in fitted.items()}
    if sum(sizes.values()) <= max_bytes:
        return {**values, **fitted}
    fitted = {key: table.note() for key, table in tables.items()}
    needed = accumulate(min(taken, _LEAST) for taken in sizes.values())
    shown = [key for key, total in zip(sizes, needed, strict=True) if total <= max_bytes]
    for number, key in enumerate(sorted(shown, key=lambda key: sizes[key])):
        fitted[key] = fit(tables[key], max_bytes // (len(shown) - number))
        max_bytes -= size(fitted[key])
    return {**values, **fitted}
