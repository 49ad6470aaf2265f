"""Turn values into ones of another dtype that mean the same, and say which do not survive."""

import math
from decimal import Decimal
from typing import Any, NamedTuple

import dataframely as dy
import polars as pl

from dagster_dataframely._schema.from_text import Keep, means_null, parse_text
from dagster_dataframely._schema.text_format import inner_columns, read_text_format


class Parsed(NamedTuple):
    """What becomes of values, and which of them do not survive."""

    source: pl.Expr
    """The values as they came; null where their text means null."""
    value: pl.Expr

    @property
    def lost(self) -> pl.Expr:
        """Whether a value does not survive."""
        return self.source.is_not_null() & self.value.is_null()


_Inside = tuple[pl.Expr, pl.Expr]
"""What becomes of nested values, and whether anything inside of them is lost."""


def parse_values(
    values: pl.Expr, found: Any, column: dy.Column, keep: Keep = lambda expression: expression
) -> Parsed | None:
    """Parse the values of a column, or inside of one; `None` where they stay as they are.

    The conversion has one meaning, as `left_open` says.
    """
    dtype: Any = column.dtype
    formats = read_text_format(column)
    if found.is_nested() and not isinstance(column, dy.Any):
        return _parse_nested(values, found, column)
    if found == pl.String and formats.null:
        values = keep(pl.when(~means_null(values, dtype, formats)).then(values))
    elif column.validate_dtype(found):
        return None
    if found == pl.String:
        value = parse_text(values, dtype, formats, keep)
    elif found == pl.Null:
        value = values.cast(dtype)
    elif isinstance(found, (pl.Categorical, pl.Enum)):
        value = values.cast(pl.String).cast(dtype, strict=False)
    elif dtype == pl.String:
        value = values.cast(pl.String)
    elif dtype == pl.Boolean:
        value = pl.when(values == 1).then(True).when(values == 0).then(False)
    elif found == pl.Boolean:
        value = values.cast(pl.UInt8).cast(dtype)
    else:
        there = _cast(values, found, dtype)
        value = pl.when(_cast(there, dtype, found).eq_missing(values)).then(there)
    return Parsed(values, value)


def _cast(values: pl.Expr, found: Any, dtype: Any) -> pl.Expr:
    """Cast values; ones that do not fit are null."""
    if found.is_float() and isinstance(dtype, pl.Decimal):
        # Polars raises where a float is rounded to a digit too many (1.35 to 2.1).
        values = pl.when(values.cast(pl.Float64).abs() < _bound(dtype)).then(values)
    return values.cast(dtype, strict=False)


def _bound(dtype: pl.Decimal) -> float:
    """A float below which no number needs more digits than the dtype has."""
    whole, smallest = Decimal(10) ** (dtype.precision - dtype.scale), Decimal(10) ** -dtype.scale
    return math.nextafter(
        float(whole - smallest), math.inf if float(whole - smallest) < whole else 0
    )


def _parse_nested(values: pl.Expr, found: Any, column: dy.Column) -> Parsed | None:
    """Parse what is inside of values; one that loses anything there is lost."""
    inside = (_parse_struct if isinstance(found, pl.Struct) else _parse_list)(values, found, column)
    if inside is None:
        return None
    value, lost = inside
    return Parsed(values, pl.when(values.is_not_null() & ~lost.fill_null(value=False)).then(value))


def _parse_struct(values: pl.Expr, found: pl.Struct, column: dy.Column) -> _Inside | None:
    # By their names, Polars takes some fields for patterns (1.35 to 2.1).
    by_place = values.struct.rename_fields([str(place) for place in range(len(found.fields))])
    fields = {
        field.name: (by_place.struct.field(str(place)), field.dtype)
        for place, field in enumerate(found.fields)
    }
    inner: dict[str, dy.Column] = dict(
        zip(_field_names(column), inner_columns(column), strict=True)
    )
    parsed = {name: parse_values(*fields[name], field) for name, field in inner.items()}
    if found == column.dtype and not any(parsed.values()):
        return None
    value = pl.struct(
        (fields[name][0] if one is None else one.value).alias(name) for name, one in parsed.items()
    )
    lost = [one.lost for one in parsed.values() if one is not None]
    dropped = [fields[name][0].is_not_null() for name in fields if name not in inner]
    return value, pl.any_horizontal(pl.lit(value=False), *lost, *dropped)


def _field_names(column: dy.Column) -> list[str]:
    dtype: Any = column.dtype
    return [field.name for field in dtype.fields]


def _parse_list(values: pl.Expr, found: Any, column: dy.Column) -> _Inside | None:
    (inner,) = inner_columns(column)
    parsed = parse_values(pl.element(), found.inner, inner)
    dtype: Any = column.dtype
    if found == dtype and parsed is None:
        return None
    lists = values.arr.to_list() if isinstance(found, pl.Array) else values
    value, lost = lists, pl.lit(value=False)
    if parsed is not None:
        value, lost = lists.list.eval(parsed.value), lists.list.eval(parsed.lost).list.any()
    if isinstance(dtype, pl.Array):
        fits = lists.list.len() == dtype.size
        value, lost = pl.when(fits).then(value).list.to_array(dtype.size), lost | ~fits
    return value, lost
