"""How tables are split."""

import dagster as dg

ORIGINS = ("EWR", "JFK", "LGA")

# The drops end with 2013-12; the two months after it are there to be skipped.
MONTHS = dg.MonthlyPartitionsDefinition(start_date="2013-01", end_date="2014-03", fmt="%Y-%m")

MONTH_AND_ORIGIN = dg.MultiPartitionsDefinition(
    {"month": MONTHS, "origin": dg.StaticPartitionsDefinition(ORIGINS)}
)
"""42 cells: one for each month and airport."""


def month_and_origin(partition_key: str) -> tuple[str, str]:
    """The month, as `2013-01`, and the airport of a cell; a cell's key names both in this order."""
    month, origin = partition_key.split("|")
    return month, origin
