"""Assets whose inputs are annotated with a schema."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl


class Raw(dy.Schema):
    """What is read."""

    id = dy.Int64(primary_key=True)
    x = dy.Float64(min=0.0)


class Out(dy.Schema):
    """What is written; no rule."""

    id = dy.Int64(nullable=True)


RAW = pl.DataFrame({"id": [1, 2], "x": [1.0, 2.0], "undeclared": ["a", "b"]})
"""The schema's columns and one more, which an input may have."""


DRIFTED = pl.DataFrame({"x": [1, 2]})
"""A missing column and another dtype."""


MISMATCH = "`id` is missing, declared Int64; `x` is Int64, declared Float64"


DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])


def build_raw(
    frame: pl.DataFrame, partitions_def: dg.PartitionsDefinition[Any] | None = None
) -> dg.AssetsDefinition:
    @dg.asset(partitions_def=partitions_def)
    def raw() -> pl.DataFrame:
        return frame

    return raw


Function = Callable[..., Any]


Materialize = Callable[..., dg.ExecuteInProcessResult]
