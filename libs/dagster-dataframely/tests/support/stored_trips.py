"""Stored tables that checks look at."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster import AssetExecutionContext

import dagster_dataframely as dd


class Trips(dy.Schema):
    """Rules of both severities, of columns and of the schema; one column has none."""

    id = dy.Int64(primary_key=True)
    km = dy.Int64(nullable=True, min=0)
    city = dy.String(nullable=True, max_length=4, metadata=dd.severity("warn"))
    note = dy.String(nullable=True)


CLEAN = pl.DataFrame({"id": [1, 2], "km": [1, None], "city": ["rome", None], "note": ["", None]})
"""No rule fails."""


DIRTY = pl.DataFrame(
    {
        "id": [3, 4, 4],
        "km": [-1, -2, 3],
        "city": ["rome", "oslo", "london"],
        "note": ["a", "b", "c"],
    }
)
"""Two rows fail an error rule, one a warn rule, and two share a key."""


DRIFTED = DIRTY.drop("km")
"""A column is missing, so no rule that names it can be evaluated."""


CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__km__min",
    "dy_rule__city__max_length",
    "dy_rule__primary_key",
]


FAILED = {"dy_rule__km__min": 2, "dy_rule__city__max_length": 1, "dy_rule__primary_key": 2}
"""How many rows of the dirty frame fail each rule."""


DAYS = dg.StaticPartitionsDefinition(["mon", "tue", "wed", "thu"])


def table(
    frame: Any, *, partitions_def: dg.PartitionsDefinition[Any] | None = None, **arguments: Any
) -> dg.AssetsDefinition:
    """A plain asset, whose frame is that of the run's partition where there are several."""

    def trips(context: AssetExecutionContext) -> Any:
        return frame[context.partition_key] if partitions_def is not None else frame

    definition: dg.AssetsDefinition = dg.asset(partitions_def=partitions_def, **arguments)(trips)
    return definition
