"""Members that do not fit the collection are refused."""

from typing import Annotated, Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.stored_shop import (
    DAYS,
    Line,
    Order,
    Shop,
    shop,
)

import dagster_dataframely as dd
from dagster_dataframely.errors import (
    InvalidArgumentError,
    InvalidCollectionError,
    InvalidSeverityError,
)


class NoFilter(dy.Collection):
    """Members alone."""

    orders: dy.LazyFrame[Order]


@pytest.mark.parametrize(
    ("collection", "members", "argument"),
    [
        (NoFilter, {"orders": "orders"}, "collection"),
        (Shop, {"orders": "orders"}, "members"),
        (Shop, {"orders": "orders", "cities": "cities", "trips": "trips"}, "members"),
        (
            Shop,
            {
                "orders": dg.AssetSpec("orders", partitions_def=DAYS),
                "lines": dg.AssetSpec(
                    "lines", partitions_def=dg.DynamicPartitionsDefinition(name="d")
                ),
                "cities": "cities",
            },
            "members",
        ),
    ],
    ids=["no filter", "missing", "unknown", "partitions"],
)
def test_members_that_do_not_fit_are_refused(
    collection: type[dy.Collection], members: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        dd.build_collection_checks(collection, members=members)
    assert raised.value.argument == argument


@pytest.mark.parametrize("found", [Order, dy.Collection, NoFilter.create_empty(), "Shop"])
def test_something_other_than_a_collection_is_refused(found: Any) -> None:
    with pytest.raises(InvalidCollectionError) as raised:
        dd.build_collection_checks(found, members={})
    assert raised.value.found is found


@pytest.mark.parametrize("severities", [{"has_line": "warn"}, {"has_lines": "fatal"}])
def test_a_severity_that_fits_no_filter_is_refused(severities: Any) -> None:
    with pytest.raises(InvalidSeverityError) as raised:
        dd.build_collection_checks(Shop, members=shop(), severities=severities)
    assert (raised.value.schema, raised.value.rules) == ("Shop", ("has_lines", "city_is_known"))


def test_propagated_failures_are_not_left_out_in_silence() -> None:
    class Propagating(dy.Collection):
        orders: Annotated[dy.LazyFrame[Order], dy.CollectionMember(propagate_row_failures=True)]
        lines: dy.LazyFrame[Line]

        @dy.filter()
        def has_lines(self) -> pl.LazyFrame:
            return self.orders.join(self.lines, on="order_id", how="semi")

    with pytest.raises(InvalidArgumentError, match="`orders` of `Propagating` propagates"):
        dd.build_collection_checks(Propagating, members={"orders": "orders", "lines": "lines"})
