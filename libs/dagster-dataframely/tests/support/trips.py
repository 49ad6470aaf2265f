"""A partitioned asset with a clean partition, and dirty ones."""

import dagster as dg
import dataframely as dy
import polars as pl
from dagster import AssetExecutionContext


class Trips(dy.Schema):
    """One rule is enough to set rows aside."""

    id = dy.Int64(nullable=True)
    km = dy.Int64(nullable=True, min=0)


CLEAN = pl.DataFrame({"id": [1, 2, 3], "km": [1, 2, 3]})
"""No rule fails."""


DIRTY = pl.DataFrame({"id": [4, 5, 6], "km": [4, -5, 6]})
"""One error row between two valid ones."""


DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-04")


CITIES = dg.StaticPartitionsDefinition(["rome", "oslo"])


GRID = dg.MultiPartitionsDefinition({"day": DAYS, "city": CITIES})


# The dimensions are named so that their order by name is not the order of the declaration.
DAY_1_OSLO = dg.MultiPartitionKey({"day": "2026-01-01", "city": "oslo"})


DAY_2_OSLO = dg.MultiPartitionKey({"day": "2026-01-02", "city": "oslo"})


def by_partition(context: AssetExecutionContext) -> pl.DataFrame:
    """The clean frame for the first key of each kind of partitions, and else the dirty one."""
    return CLEAN if context.partition_key in {"2026-01-01", "rome", DAY_1_OSLO} else DIRTY
