"""Say which conversions between two dtypes have one meaning."""

from collections.abc import Collection
from typing import Any

import polars as pl

from dagster_dataframely._text import count

_CAST_FROM_TEXT = frozenset({"number", "category"})
"""What text is cast to as it is; for anything else its format has to be known."""


PARSED_FROM_TEXT = frozenset({*_CAST_FROM_TEXT, "moment", "Time", "Binary"})


def left_open(
    found: Any, declared: Any, from_text: Collection[str] = _CAST_FROM_TEXT
) -> str | None:
    """What a conversion leaves open, or `None` where it has one meaning.

    `from_text`: the kinds of dtypes that text is converted to.
    """
    if isinstance(found, pl.Struct) and isinstance(declared, pl.Struct):
        fields = {field.name: field.dtype for field in found.fields}
        if missing := [field.name for field in declared.fields if field.name not in fields]:
            return f"it has no field `{missing[0]}`"
        pairs = [(fields[field.name], field.dtype) for field in declared.fields]
        return next((reason for pair in pairs if (reason := left_open(*pair, from_text))), None)
    kinds = (_kind(found), _kind(declared))
    if (
        isinstance(found, pl.Array)
        and isinstance(declared, pl.Array)
        and found.size != declared.size
    ):
        return f"its arrays have {count(found.size, 'element')}"
    if kinds == ("nested", "nested"):
        return left_open(found.inner, declared.inner, from_text)
    if kinds == ("moment", "moment") and _has_zone(found) != _has_zone(declared):
        return "name the time zone with `dt.replace_time_zone`"
    if kinds[0] == "text" and kinds[1] in from_text:
        return None
    same = kinds[0] == kinds[1] and (kinds[0] in _KINDS or found == declared)
    if same or found == pl.Null or kinds in (("number", "text"), ("category", "text")):
        return None
    return "write the conversion that is meant"


_KINDS = frozenset({"number", "moment", "category", "text", "Duration"})


def _kind(dtype: pl.DataType) -> str:
    """Dtypes of one of `_KINDS` are converted to each other with one meaning."""
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "number"
    if isinstance(dtype, (pl.Date, pl.Datetime)):
        return "moment"
    if isinstance(dtype, (pl.List, pl.Array)):
        return "nested"
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        return "category"
    return "text" if dtype == pl.String else str(dtype.base_type())


def _has_zone(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
