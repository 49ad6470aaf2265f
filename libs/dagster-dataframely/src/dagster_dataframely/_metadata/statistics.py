"""Compute statistics of a frame: a table for each dtype family."""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import polars as pl
from polars import selectors as cs

from dagster_dataframely._cells import REDACTED, Cell, render_cell, render_series
from dagster_dataframely._text import count, share

_BINS = 8


_BLOCKS = " ▁▂▃▄▅▆▇█"


_HISTOGRAM = "histogram"


_DISTINCT = "distinct"


_MEDIAN, _SPAN, _TRUE_RATE = "median", "span", "true_rate"


_LOW, _HIGH = "lowest finite", "highest finite"


_BOUNDS = {_LOW: "min", _HIGH: "max"}


_TELLS_NO_VALUE = ("count", "nulls")
"""The statistics of a redacted column; the others are not computed."""


EXACT = 1_000_000
"""Distinct strings among up to so many values are counted exactly, in a second query."""


SAMPLE = 1_000_000
"""From about so many rows, evenly spaced, come median and histogram; from all where there are fewer."""


_ROW, _NUMBER, _FINITE, _LENGTH = "dy_row", "dy_number ", "dy_finite ", "dy_length "


def describe_families(
    frame: pl.DataFrame | pl.LazyFrame,
    redacted: Collection[str] = (),
    *,
    exact: int = EXACT,
    sample: int = SAMPLE,
) -> dict[str, list[dict[str, Cell]]]:
    """For each dtype family the frame has columns of, one row of statistics for each column.

    All statistics come out of two queries over all columns, on the streaming engine whatever the frame
    is, so that they are the same on either. A family without columns has no entry;
    dtypes that belong to no family (lists, structs, binary, ...) are left out. Means, medians and
    deviations are rounded to four digits, or to whole numbers where those have more; minima and maxima
    are exact. The median is that of the finite values. Of redacted columns values and nulls are counted,
    and the other statistics read `redacted`.
    """
    rows = frame.lazy()
    schema = rows.collect_schema()
    members = {
        family: cs.expand_selector(schema, selector) for family, (selector, _) in _FAMILIES.items()
    }
    first = _query(
        rows.with_columns(_derived(schema, members)),
        {
            (column, statistic): expression
            for family, columns in members.items()
            for column in columns
            for statistic, expression in _FAMILIES[family][1](column, schema[column]).items()
            if column not in redacted or statistic in _TELLS_NO_VALUE
        },
    )
    second = {
        **_query(rows, dict(_distinct(members["string"], first, exact))),
        **_query(
            _sample(rows, sample).select(
                _finite(name, schema[name]) for name in members["numeric"]
            ),
            {
                **{
                    (column, _MEDIAN): pl.col(_FINITE + column).median()
                    for column in members["numeric"]
                    if column not in redacted
                },
                **dict(_histograms(members["numeric"], first)),
            },
        ),
    }
    return {
        family: [_row(family, column, first, second) for column in columns]
        for family, columns in members.items()
        if columns
    }


_Values = Mapping[tuple[str, str], pl.Series]


def _query(rows: pl.LazyFrame, expressions: Mapping[tuple[str, str], pl.Expr]) -> _Values:
    if not expressions:
        return {}
    numbered = {str(number): key for number, key in enumerate(expressions)}
    values = rows.select(
        expression.alias(number)
        for number, expression in zip(numbered, expressions.values(), strict=True)
    ).collect(engine="streaming")
    return {key: values[number] for number, key in numbered.items()}


def _distinct(
    columns: Iterable[str], first: _Values, exact: int
) -> Iterator[tuple[tuple[str, str], pl.Expr]]:
    """An exact count where there are few values."""
    for column in columns:
        if (column, _DISTINCT) in first and first[column, "count"].item() <= exact:
            yield (column, _DISTINCT), pl.col(column).drop_nulls().n_unique()


def _sample(rows: pl.LazyFrame, size: int) -> pl.LazyFrame:
    height = rows.select(pl.len()).collect(engine="streaming").item()
    every = -(-height // size)
    return rows if every < 2 else rows.with_row_index(_ROW).filter(pl.col(_ROW) % every == 0)


def _histograms(
    columns: Iterable[str], first: _Values
) -> Iterator[tuple[tuple[str, str], pl.Expr]]:
    """How many values lie below the end of each of equally wide bins; the last holds the highest."""
    for column in columns:
        low, high = (_bound(column, bound, first) for bound in (_LOW, _HIGH))
        if low is not None and high is not None:
            width = (high - low) / _BINS
            finite = pl.col(_FINITE + column)
            for bin_ in range(1, _BINS):
                yield (column, f"{_HISTOGRAM} {bin_}"), (finite < low + width * bin_).sum()
            yield (column, f"{_HISTOGRAM} {_BINS}"), finite.count()


def _bound(column: str, bound: str, first: _Values) -> float | None:
    """Of the finite values, as a double; for other dtypes than floats that is the minimum or maximum."""
    values = first.get((column, bound), first.get((column, _BOUNDS[bound])))
    value: float | None = None if values is None else values.cast(pl.Float64).item()
    return value


def _row(family: str, column: str, first: _Values, second: _Values) -> dict[str, Cell]:
    row: dict[str, Cell] = {"column": column}
    for statistic in _STATISTICS[family]:
        # A redacted column has values under the statistics that tell none.
        known = (column, _MADE_OF.get(statistic, statistic)) in first
        row[statistic] = _cell(column, statistic, first, second) if known else REDACTED
    return row


def _cell(column: str, statistic: str, first: _Values, second: _Values) -> Cell:
    if statistic == _HISTOGRAM:
        bins = [(column, f"{_HISTOGRAM} {bin_}") for bin_ in range(1, _BINS + 1)]
        below = [0, *(second[key].item() for key in bins if key in second)]
        return _draw([upper - lower for lower, upper in itertools.pairwise(below)])
    if statistic == _MEDIAN:
        return _round(second[column, statistic].item())
    if statistic == _SPAN:
        return _span(first[column, "min"], first[column, "max"])
    if statistic == _TRUE_RATE:
        values = first[column, "count"].item()
        return share(first[column, "true"].item(), values) if values else None
    if statistic == _DISTINCT and (exact := second.get((column, statistic))) is not None:
        return int(exact.item())
    (value,) = render_series(first[column, statistic])
    if statistic == _DISTINCT:
        return f"≈ {float(f'{value:.2g}'):,.0f}"
    if statistic in ("mean", "std", "mean_length") and isinstance(value, float):
        return _round(value)
    return value


def _round(value: float | None) -> Cell:
    """Four digits, or all of those before the point where there are more."""
    if value is None or not math.isfinite(value):
        return render_cell(value)
    digits = max(4, len(str(int(abs(value)))))
    return float(f"{value:.{digits}g}")


def _span(low: pl.Series, high: pl.Series) -> str | None:
    """The time between two moments, in the two largest units that it has."""
    if low.is_null().any():
        return None
    # As whole numbers: a difference of far dates overflows in Polars (1.35 to 2.1).
    unit = "days" if low.dtype == pl.Date else getattr(low.dtype, "time_unit", "ns")
    rest = (high.to_physical().item() - low.to_physical().item()) * _NANOSECONDS[unit]
    parts = []
    for name, length in _NANOSECONDS.items():
        number, rest = divmod(rest, length)
        if number:
            parts.append(f"{number:,} {name}" if name != "days" else count(number, "day"))
    return " ".join(parts[:2]) or "0 s"


def _draw(counts: list[int]) -> str:
    """One block for each bin, as high as its share of the fullest; a bin with any value shows."""
    top = max(counts, default=0)
    if not top:
        return ""
    return "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // top)] for count in counts)


def _derived(schema: pl.Schema, members: Mapping[str, Iterable[str]]) -> Iterator[pl.Expr]:
    """Columns that several statistics are made of, so that each is computed once."""
    for name in members["numeric"]:
        yield _number(name).alias(_NUMBER + name)
        if schema[name].is_float():
            yield _finite(name, schema[name])
    for name in members["string"]:
        yield pl.col(name).cast(pl.String).str.len_chars().alias(_LENGTH + name)


def _number(name: str) -> pl.Expr:
    # A sum of Decimals or 128-bit integers can overflow; doubles only lose digits.
    return pl.col(name).cast(pl.Float64)


def _finite(name: str, dtype: pl.DataType) -> pl.Expr:
    number = _number(name)
    finite = pl.when(number.is_finite()).then(number) if dtype.is_float() else number
    return finite.alias(_FINITE + name)


def _numeric(name: str, dtype: pl.DataType) -> dict[str, pl.Expr]:
    column, number, finite = pl.col(name), pl.col(_NUMBER + name), pl.col(_FINITE + name)
    bounds = {_LOW: finite.min(), _HIGH: finite.max()} if dtype.is_float() else {}
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        "mean": number.mean(),
        "std": number.std(),
        "min": column.min(),
        "max": column.max(),
        **bounds,
    }


def _temporal(name: str, _dtype: pl.DataType) -> dict[str, pl.Expr]:
    column = pl.col(name)
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        "min": column.min(),
        "max": column.max(),
    }


def _string(name: str, dtype: pl.DataType) -> dict[str, pl.Expr]:
    """Lengths in characters and the number of distinct values; never a value."""
    column, length = pl.col(name), pl.col(_LENGTH + name)
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        # There are few categories, and Polars estimates the number of strings only.
        _DISTINCT: column.approx_n_unique() if dtype == pl.String else column.n_unique(),
        "empty": (length == 0).sum(),
        "min_length": length.min(),
        "mean_length": length.mean(),
        "max_length": length.max(),
    }


def _boolean(name: str, _dtype: pl.DataType) -> dict[str, pl.Expr]:
    column = pl.col(name)
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        "true": column.sum(),
        "false": column.not_().sum(),
    }


_FAMILIES: Mapping[str, tuple[cs.Selector, Callable[[str, pl.DataType], dict[str, pl.Expr]]]] = {
    "numeric": (cs.numeric(), _numeric),
    "temporal": (cs.temporal(), _temporal),
    "string": (cs.string(include_categorical=True) | cs.enum(), _string),
    "boolean": (cs.boolean(), _boolean),
}


_STATISTICS: Mapping[str, Sequence[str]] = {
    "numeric": ("count", "nulls", "mean", "std", "min", _MEDIAN, "max", _HISTOGRAM),
    "temporal": ("count", "nulls", "min", "max", _SPAN),
    "string": ("count", "nulls", _DISTINCT, "empty", "min_length", "mean_length", "max_length"),
    "boolean": ("count", "nulls", "true", "false", _TRUE_RATE),
}


_MADE_OF = {_HISTOGRAM: "min", _MEDIAN: "min", _SPAN: "min", _TRUE_RATE: "true"}
"""Statistics that are worked out of another one."""


_NANOSECONDS = {
    "days": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "min": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
