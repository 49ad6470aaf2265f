"""What entries of the component name."""

from types import ModuleType

import dagster as dg
import dataframely as dy
import polars as pl

DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])


class Orders(dy.Schema):
    """A rule that no row fails and one that a row of `ROWS` does."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0, allow_inf=True, allow_nan=True)


class Shop(dy.Collection):
    """Not one schema."""

    orders: dy.LazyFrame[Orders]


ROWS = pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


@dg.asset
def plain() -> pl.DataFrame:
    return ROWS


@dg.asset(partitions_def=DAYS)
def daily() -> pl.DataFrame:
    return ROWS


external = dg.AssetSpec("external", partitions_def=DAYS)


SHOP = ModuleType("shop")
"""A module of a project, as references name it."""
for name in ("Orders", "Shop", "DAYS", "plain", "daily", "external"):
    setattr(SHOP, name, globals()[name])
