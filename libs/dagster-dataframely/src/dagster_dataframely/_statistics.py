"""A frame to one table of statistics for each dtype family."""

from collections.abc import Callable, Iterable, Mapping

import polars as pl
from polars import selectors as cs

from dagster_dataframely._cells import Cell, render_series

_BINS = 8
_BLOCKS = " ▁▂▃▄▅▆▇█"
_HISTOGRAM = "histogram"


def describe_families(frame: pl.DataFrame) -> dict[str, list[dict[str, Cell]]]:
    """For each dtype family the frame has columns of, one row of statistics for each column.

    All statistics of all columns come out of one query. A family without columns has no entry; dtypes
    that belong to no family (lists, structs, binary, ...) are left out.
    """
    members = {
        family: cs.expand_selector(frame, selector) for family, (selector, _) in _FAMILIES.items()
    }
    expressions = [
        expression.alias(_alias(column, statistic))
        for family, columns in members.items()
        for column in columns
        for statistic, expression in _FAMILIES[family][1](column).items()
    ]
    if not expressions:
        return {}
    values = frame.lazy().select(expressions).collect()
    return {
        family: [_row(column, _FAMILIES[family][1](column), values) for column in columns]
        for family, columns in members.items()
        if columns
    }


def _row(column: str, statistics: Iterable[str], values: pl.DataFrame) -> dict[str, Cell]:
    row: dict[str, Cell] = {"column": column}
    for statistic in statistics:
        series = values[_alias(column, statistic)]
        drawn = statistic == _HISTOGRAM
        row[statistic] = _draw(series.item().to_list()) if drawn else render_series(series)[0]
    return row


def _alias(column: str, statistic: str) -> str:
    return f"{column}\0{statistic}"


def _draw(counts: list[int]) -> str:
    """One block for each bin, as high as its share of the fullest; a bin with any value shows."""
    top = max(counts)
    if not top:
        return ""
    return "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // top)] for count in counts)


def _numeric(name: str) -> dict[str, pl.Expr]:
    column = pl.col(name)
    # A sum of Decimals or 128-bit integers can overflow; doubles only lose digits.
    number = column.cast(pl.Float64)
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        "mean": number.mean(),
        "std": number.std(),
        "min": column.min(),
        "median": number.median(),
        "max": column.max(),
        _HISTOGRAM: number.filter(number.is_finite()).hist(bin_count=_BINS).implode(),
    }


def _temporal(name: str) -> dict[str, pl.Expr]:
    column = pl.col(name)
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        "min": column.min(),
        "max": column.max(),
    }


def _string(name: str) -> dict[str, pl.Expr]:
    """Lengths in characters and the number of distinct values; never a value."""
    length = pl.col(name).cast(pl.String).str.len_chars()
    return {
        "count": pl.col(name).count(),
        "nulls": pl.col(name).null_count(),
        "distinct": pl.col(name).drop_nulls().n_unique(),
        "min_length": length.min(),
        "mean_length": length.mean(),
        "max_length": length.max(),
    }


def _boolean(name: str) -> dict[str, pl.Expr]:
    column = pl.col(name)
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        "true": column.sum(),
        "false": column.not_().sum(),
    }


_FAMILIES: Mapping[str, tuple[cs.Selector, Callable[[str], dict[str, pl.Expr]]]] = {
    "numeric": (cs.numeric(), _numeric),
    "temporal": (cs.temporal(), _temporal),
    "string": (cs.string(include_categorical=True) | cs.enum(), _string),
    "boolean": (cs.boolean(), _boolean),
}
