"""An asset whose error rows are set aside."""

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Sales(dy.Schema):
    """Columns for two ways to partition."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(nullable=True, min=0.0, allow_inf=True, allow_nan=True, description="Net.")
    day = dy.String(nullable=True)
    region = dy.String(nullable=True)


SALES = pl.DataFrame(
    {
        "id": [1, 2, 3, 4],
        "amount": [1.0, -2.0, 3.0, -4.0],
        "day": ["mon", "mon", "tue", "tue"],
        "region": ["eu", "us", "eu", "us"],
    }
)
"""In each day and in both regions together, one row is valid and one is not."""


SURVIVORS = SALES.filter(pl.col("amount") >= 0)


ERROR_ROWS = SALES.filter(pl.col("amount") < 0).with_columns(
    pl.lit("invalid" if rule == "amount|min" else "valid").alias(dd.wiring.check_name(rule))
    for rule in ("id|nullability", "amount|min", "primary_key")
)


DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])
