"""Reach what Polars says only in the text of its plans."""

import inspect
from collections.abc import Mapping, Sequence
from typing import get_args

import polars as pl
from polars._typing import ConcatMethod

_EXTEND: ConcatMethod = "horizontal_extend"

NO_NULL_FOR_AN_EMPTY_LIST = {
    name: False
    for name in ("empty_as_null",)
    if name in inspect.signature(pl.LazyFrame.explode).parameters
}
"""For `explode`, which below Polars 2 makes one; 1.44 warns where nothing is said."""


def look_at_one_row(expressions: Mapping[str, pl.Expr], schema: pl.Schema) -> frozenset[str]:
    """The names of the Boolean expressions that look at one row at a time.

    Polars filters the parts of a concatenation on their own exactly where that gives the same rows, so
    the plan of such a filter tells (1.35 to 2.1).
    """
    part = pl.LazyFrame(schema=schema)
    parts = pl.concat([part, part])
    plans = {name: parts.filter(rule.fill_null(value=True)) for name, rule in expressions.items()}
    return frozenset(
        name for name, plan in plans.items() if plan.explain().lstrip().startswith("UNION")
    )


def side_by_side(frames: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """The columns of frames that are equally high.

    Polars has another name for what it did below 1.42, and warns of the old one.
    """
    extends = "horizontal_extend" in get_args(ConcatMethod)
    return pl.concat(frames, how=_EXTEND if extends else "horizontal")


def is_pyarrow_dataset(rows: pl.LazyFrame) -> bool:
    """Whether rows are read as a PyArrow dataset, as some of Delta Lake are (1.38 to 2.1).

    Only the optimized plan tells. Where Polars collects several at once, it may wait for itself (1.44).
    """
    return any(name in rows.explain() for name in ("PYTHON SCAN", "PythonDataset SCAN"))
