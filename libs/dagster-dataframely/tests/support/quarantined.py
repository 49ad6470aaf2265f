"""An asset with a quarantine, and rows for it."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    """An error rule, a warn rule, and a column for partitions."""

    id = dy.Int64(nullable=True, min=0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))
    day = dy.String(nullable=True)


DIRTY = pl.DataFrame({"id": [1, -2], "note": ["a", "long note"], "day": ["mon", "mon"]})
"""The second row fails the error rule and the warn rule."""


CLEAN = DIRTY[:1]


DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])


Read = Callable[[str | None], pl.DataFrame | None]


QUARANTINED: dict[str, Any] = {
    "name": "orders",
    "quarantine": True,
    "metadata": {"partition_expr": "day"},
}
