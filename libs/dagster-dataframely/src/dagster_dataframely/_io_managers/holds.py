"""Know which dtypes of a stored table hold every value of another dtype."""

import re
from typing import Any

import polars as pl

_UNITS = {"ms": 0, "us": 1, "ns": 2}
_DUCKDB_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_DUCKDB_ORDERED = (
    _DUCKDB_INTEGERS,
    tuple(f"U{name}" for name in _DUCKDB_INTEGERS),
    ("FLOAT", "DOUBLE"),
    ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS"),
    ("TIME", "TIME_NS"),
)
"""DuckDB's names of types; each holds the values of those before it."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def widens(new: str, stored: str) -> bool:
    """Whether a column of DuckDB's type `stored` holds every value of the type `new`."""
    for names in _DUCKDB_ORDERED:
        if new in names and stored in names:
            return names.index(new) < names.index(stored)
    if new in {"SQLNULL", '"NULL"'}:
        return True
    if new.removeprefix("U") in _DUCKDB_INTEGERS and stored in _DUCKDB_INTEGERS:
        return _DUCKDB_INTEGERS.index(new.removeprefix("U")) < _DUCKDB_INTEGERS.index(stored)
    if (narrow := _DECIMAL.fullmatch(new)) and (wide := _DECIMAL.fullmatch(stored)):
        return _holds_decimal(*map(int, wide.groups()), *map(int, narrow.groups()))
    return new.endswith("[]") and stored.endswith("[]") and widens(new[:-2], stored[:-2])


def holds(stored: Any, new: Any) -> bool:
    """Whether a column of the dtype `stored` holds every value of the dtype `new`."""
    if new in (stored, pl.Null):
        return True
    if stored.is_integer() and new.is_integer():
        return _holds_integer(stored, new)
    if isinstance(stored, pl.Decimal) and isinstance(new, pl.Decimal):
        precisions = (stored.precision or 38, stored.scale, new.precision or 38, new.scale)
        return _holds_decimal(*precisions)
    if isinstance(stored, pl.Datetime) and isinstance(new, pl.Datetime):
        # Some storages keep the moment, and UTC in place of the zone.
        same = (stored.time_zone is None) == (new.time_zone is None)
        return same and _UNITS[stored.time_unit] >= _UNITS[new.time_unit]
    if isinstance(stored, pl.Duration) and isinstance(new, pl.Duration):
        return _UNITS[stored.time_unit] >= _UNITS[new.time_unit]
    if isinstance(stored, (pl.List, pl.Array)) and isinstance(new, (pl.List, pl.Array)):
        return isinstance(stored, pl.List) and holds(stored.inner, new.inner)
    if isinstance(stored, pl.Struct) and isinstance(new, pl.Struct):
        pairs = zip(stored.fields, new.fields, strict=False)
        return len(stored.fields) == len(new.fields) and all(
            old.name == field.name and holds(old.dtype, field.dtype) for old, field in pairs
        )
    is_text = isinstance(stored, (pl.String, pl.Categorical))
    return (stored == pl.Float64 and new == pl.Float32) or (
        is_text and isinstance(new, (pl.String, pl.Categorical, pl.Enum))
    )


def _holds_integer(stored: Any, new: Any) -> bool:
    """A storage without unsigned integers keeps them in signed ones of the same width."""
    bits, new_bits = (int(re.sub(r"\D", "", str(dtype))) for dtype in (stored, new))
    if stored.is_unsigned_integer() and not new.is_unsigned_integer():
        return False
    return bits >= new_bits


def _holds_decimal(precision: int, scale: int, new_precision: int, new_scale: int) -> bool:
    return scale >= new_scale and precision - scale >= new_precision - new_scale
