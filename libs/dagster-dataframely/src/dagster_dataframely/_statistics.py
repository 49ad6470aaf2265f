"""A frame to one table of statistics for each dtype family."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import polars as pl
from polars import selectors as cs

from dagster_dataframely._cells import REDACTED, Cell, render_series

_BINS = 8
_BLOCKS = " ▁▂▃▄▅▆▇█"
_HISTOGRAM = "histogram"
_LOW, _HIGH = "lowest finite", "highest finite"
_TELLS_NO_VALUE = ("count", "nulls")
"""The statistics of a redacted column; the others are not computed."""
_SLOTS = 2**22
"""Of linear counting: 40 MB at most, and within 1 % for up to ten times as many values."""
_EXACT = 1_000_000
"""Up to about so many distinct strings are counted exactly, in a second query."""


def describe_families(
    frame: pl.DataFrame | pl.LazyFrame, redacted: Collection[str] = ()
) -> dict[str, list[dict[str, Cell]]]:
    """For each dtype family the frame has columns of, one row of statistics for each column.

    All statistics come out of two queries over all columns. A family without columns has no entry;
    dtypes that belong to no family (lists, structs, binary, ...) are left out. Means and deviations
    have ten digits, since the last ones depend on how Polars splits a sum. Of redacted columns values
    and nulls are counted, and the other statistics read `redacted`.
    """
    rows = frame.lazy()
    schema = rows.collect_schema()
    members = {
        family: cs.expand_selector(schema, selector) for family, (selector, _) in _FAMILIES.items()
    }
    first = _query(
        rows,
        {
            (column, statistic): expression
            for family, columns in members.items()
            for column in columns
            for statistic, expression in _FAMILIES[family][1](column).items()
            if column not in redacted or statistic in _TELLS_NO_VALUE
        },
    )
    second = _query(rows, dict(_second_look(members, first)))
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


def _second_look(
    members: Mapping[str, Iterable[str]], first: _Values
) -> Iterator[tuple[tuple[str, str], pl.Expr]]:
    """What needs to know the first query's values: the bins of a histogram, an exact count."""
    for column in members["numeric"]:
        low = first[column, _LOW].item() if (column, _LOW) in first else None
        if low is not None:
            bins = _bins(_number(column), low, first[column, _HIGH].item())
            for number, count in enumerate(bins):
                yield (column, f"{_HISTOGRAM} {number}"), count
    for column in members["string"]:
        if (column, "distinct") in first and first[column, "distinct"].item() < _EXACT:
            yield (column, "distinct"), pl.col(column).drop_nulls().n_unique()


def _bins(number: pl.Expr, low: float, high: float) -> Iterator[pl.Expr]:
    """How many values fall into each of equally wide bins; the last one holds the highest value."""
    edges = [low + (high - low) * (number_ / _BINS) for number_ in range(_BINS)]
    for lower, upper in zip(edges, [*edges[1:], None], strict=True):
        below = number.is_finite() if upper is None else number < upper
        yield ((number >= lower) & below & number.is_finite()).sum()


def _row(family: str, column: str, first: _Values, second: _Values) -> dict[str, Cell]:
    row: dict[str, Cell] = {"column": column}
    for statistic in _FAMILIES[family][1](column):
        name = _HISTOGRAM if statistic == _LOW else statistic
        if statistic != _HIGH:
            known = (column, statistic) in first
            row[name] = _cell(column, statistic, first, second) if known else REDACTED
    return row


def _cell(column: str, statistic: str, first: _Values, second: _Values) -> Cell:
    if statistic == _LOW:
        bins = [(column, f"{_HISTOGRAM} {number}") for number in range(_BINS)]
        return _draw([second[key].item() for key in bins if key in second])
    if statistic == "distinct" and (exact := second.get((column, statistic))) is not None:
        return int(exact.item())
    (value,) = render_series(first[column, statistic])
    if statistic == "distinct":
        return f"≈ {value:,}"
    if statistic in ("mean", "std", "mean_length") and isinstance(value, float):
        return float(f"{value:.10g}")
    return value


def _draw(counts: list[int]) -> str:
    """One block for each bin, as high as its share of the fullest; a bin with any value shows."""
    top = max(counts, default=0)
    if not top:
        return ""
    return "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // top)] for count in counts)


def _number(name: str) -> pl.Expr:
    # A sum of Decimals or 128-bit integers can overflow; doubles only lose digits.
    return pl.col(name).cast(pl.Float64)


def _numeric(name: str) -> dict[str, pl.Expr]:
    column, number = pl.col(name), _number(name)
    finite = number.filter(number.is_finite())
    return {
        "count": column.count(),
        "nulls": column.null_count(),
        "mean": number.mean(),
        "std": number.std(),
        "min": column.min(),
        "max": column.max(),
        _LOW: finite.min(),
        _HIGH: finite.max(),
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
        "distinct": _estimate_distinct(pl.col(name)),
        "min_length": length.min(),
        "mean_length": length.mean(),
        "max_length": length.max(),
    }


def _estimate_distinct(column: pl.Expr) -> pl.Expr:
    """The number of distinct values by linear counting over hashes, which bounds the memory.

    `Expr.approx_n_unique` would do, but its answer differs from engine to engine (1.35 to 2.1).
    """
    taken = (column.drop_nulls().hash() % _SLOTS).n_unique().cast(pl.Float64)
    free = pl.max_horizontal(_SLOTS - taken, pl.lit(1.0))
    return (-_SLOTS * (free / _SLOTS).log()).round().cast(pl.Int64)


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
