"""Know which dtypes of a stored table hold every value of another dtype."""

import re
from typing import Any

import polars as pl

_UNITS = {"ms": 0, "us": 1, "ns": 2}
_LEAST_BITS = {"Delta Lake": 8, "Iceberg": 32}
"""The narrowest integers of storages that have only signed ones."""


def holds(stored: Any, new: Any, storage: str = "") -> bool:
    """Whether a column of the dtype `stored` holds every value of the dtype `new`.

    Of a storage that is known, it has the dtype of numbers that a new table would have.
    """
    if new in (stored, pl.Null):
        return True
    if stored.is_integer() and new.is_integer():
        return _holds_integer(stored, new, storage)
    if isinstance(stored, pl.Decimal) and isinstance(new, pl.Decimal):
        return storage not in _LEAST_BITS and _holds_decimal(stored, new)
    if isinstance(stored, pl.Datetime) and isinstance(new, pl.Datetime):
        # Some storages keep the moment, and UTC in place of the zone.
        same = (stored.time_zone is None) == (new.time_zone is None)
        return same and _UNITS[stored.time_unit] >= _UNITS[new.time_unit]
    if isinstance(stored, pl.Duration) and isinstance(new, pl.Duration):
        return _UNITS[stored.time_unit] >= _UNITS[new.time_unit]
    if isinstance(stored, (pl.List, pl.Array)) and isinstance(new, (pl.List, pl.Array)):
        return isinstance(stored, pl.List) and holds(stored.inner, new.inner, storage)
    if isinstance(stored, pl.Struct) and isinstance(new, pl.Struct):
        pairs = zip(stored.fields, new.fields, strict=False)
        return len(stored.fields) == len(new.fields) and all(
            old.name == field.name and holds(old.dtype, field.dtype, storage)
            for old, field in pairs
        )
    if stored == pl.Float64 and new == pl.Float32:
        return storage not in _LEAST_BITS
    is_text = isinstance(stored, (pl.String, pl.Categorical))
    return is_text and isinstance(new, (pl.String, pl.Categorical, pl.Enum))


def _holds_integer(stored: Any, new: Any, storage: str) -> bool:
    bits, new_bits = (int(re.sub(r"\D", "", str(dtype))) for dtype in (stored, new))
    if storage in _LEAST_BITS:
        return bits == max(_LEAST_BITS[storage], new_bits)
    if stored.is_unsigned_integer() and not new.is_unsigned_integer():
        return False
    return bits >= new_bits


def _holds_decimal(stored: pl.Decimal, new: pl.Decimal) -> bool:
    whole, new_whole = ((d.precision or 38) - d.scale for d in (stored, new))
    return stored.scale >= new.scale and whole >= new_whole
