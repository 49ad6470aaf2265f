"""How tables are split."""

import warnings
from collections.abc import Mapping
from typing import Any

import dagster as dg

ORIGINS = ("EWR", "JFK", "LGA")

# The drops end with 2013-12; the two months after it are there to be skipped.
MONTHS = dg.MonthlyPartitionsDefinition(start_date="2013-01", end_date="2014-03", fmt="%Y-%m")

MONTH_AND_ORIGIN = dg.MultiPartitionsDefinition(
    {"month": MONTHS, "origin": dg.StaticPartitionsDefinition(ORIGINS)}
)
"""42 cells: one for each month and airport."""


with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.BetaWarning)  # As Dagster 1.13 has it.
    CELLS_OF_A_MONTH = dg.MultiToSingleDimensionPartitionMapping("month")

SKIPPED_CELLS_ALLOWED: Mapping[str, Any] = {"allow_missing_partitions": True}
"""For an input that reads many cells: those that were skipped have no file."""

# Dagster's `eager` looks at the newest month alone, and waits for cells that are always skipped.
WHEN_UPSTREAM_IS_UPDATED = (
    dg.AutomationCondition.eager()
    .without(dg.AutomationCondition.in_latest_time_window())
    .without(~dg.AutomationCondition.any_deps_missing())
    .with_label("upstream_updated")
)


def month_and_origin(partition_key: str) -> tuple[str, str]:
    """The month, as `2013-01`, and the airport of a cell; a cell's key names both in this order."""
    month, origin = partition_key.split("|")
    return month, origin
