"""Stored tables of a collection, and rows that its filters reject."""

from typing import Annotated, Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster import AssetExecutionContext
from support.storage import Store


class Order(dy.Schema):
    """A head."""

    id = dy.Int64(primary_key=True)
    city = dy.String(nullable=True)


class Line(dy.Schema):
    """Several for each order."""

    id = dy.Int64(primary_key=True)
    line = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True)


class City(dy.Schema):
    """Has another key, so that filters can look at it and not apply to it."""

    name = dy.String(primary_key=True)


class Shop(dy.Collection):
    """Two members with a common key, and one to look things up in."""

    orders: dy.LazyFrame[Order]
    lines: dy.DataFrame[Line] | None
    cities: Annotated[dy.LazyFrame[City], dy.CollectionMember(ignored_in_filters=True)]

    @dy.filter()
    def has_lines(self) -> pl.LazyFrame:
        """An order has lines, and a line has an order.

        It is the first paragraph that counts.
        """
        lines = pl.LazyFrame({"id": [0]}) if self.lines is None else self.lines.lazy()
        return self.orders.join(lines, on="id")

    @dy.filter()
    def city_is_known(self) -> pl.LazyFrame:
        return self.orders.join(self.cities, left_on="city", right_on="name")


ORDERS = pl.DataFrame({"id": [1, 2, 3], "city": ["rome", "oslo", "atlantis"]})


LINES = pl.DataFrame({"id": [1, 1, 3, 9, None], "line": [1, 2, 1, 1, 1], "amount": [1, 2, 3, 4, 5]})
"""Order 2 has no line, line 9 has no order, and a line whose key is null has none either."""


CITIES = pl.DataFrame({"name": ["rome", "oslo"]})


REMOVED = {
    "orders": {"dy_filter__has_lines": 1, "dy_filter__city_is_known": 1},
    "lines": {"dy_filter__has_lines": 2, "dy_filter__city_is_known": 3},
}
"""How many rows of each member each filter takes away, as Dataframely has it."""


DAYS = dg.StaticPartitionsDefinition(["mon", "tue", "wed"])


def table(
    name: str, frame: Any, partitions_def: dg.PartitionsDefinition[Any] | None = None
) -> dg.AssetsDefinition:
    """An asset of one frame, or of one for each partition; a partition without one is skipped."""

    def compute(context: AssetExecutionContext) -> Any:
        found = frame if partitions_def is None else frame.get(context.partition_key)
        if found is not None:
            yield dg.MaterializeResult(value=found)

    definition: dg.AssetsDefinition = dg.asset(
        name=name, partitions_def=partitions_def, output_required=False
    )(compute)
    return definition


def shop(orders: Any = ORDERS, lines: Any = LINES, cities: Any = CITIES) -> dict[str, Any]:
    return {
        "orders": table("orders", orders),
        "lines": table("lines", lines),
        "cities": table("cities", cities),
    }


def removed(store: Store, result: dg.ExecuteInProcessResult, partition: str | None = None) -> Any:
    return {name: store.failures(result, partition, name) for name in ("orders", "lines")}
