"""Reach what Polars says only in the text of its plans."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl


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

    `concat` takes `strict` from 1.42 on; until 2.0 it warns where it is not given, then where it is.
    """
    takes_strict = inspect.signature(pl.concat).parameters.get("strict")
    must_say = takes_strict is not None and takes_strict.default is False
    strict: dict[str, Any] = {"strict": True} if must_say else {}
    return pl.concat(frames, how="horizontal", **strict)
