"""Many checks of one asset are warned of where it is declared."""

import warnings
from typing import Any

import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely.errors import ManyChecksWarning


def schema_of(columns: int, **members: Any) -> type[dy.Schema]:
    """A schema with one rule for each column."""
    rules = {f"c{number}": dy.Int64(nullable=True, min=0) for number in range(columns)}
    return type("Many", (dy.Schema,), rules | members)


def defined_in(build: Any) -> tuple[Any, list[Any]]:
    """What is built, and the warnings of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return build(), [warning.message for warning in caught]


def test_many_checks_are_warned_of_once_where_the_asset_is_declared() -> None:
    schema = schema_of(199, twice=dy.Int64(nullable=True, min=0, max=9))
    with pytest.warns(ManyChecksWarning) as caught:
        dd.asset(schema, name="orders", key_prefix="sales")(lambda: None)
    (warning,) = caught
    assert str(warning.message) == (
        "Asset `sales/orders` has 202 checks, and each takes a run 5 to 30 ms. "
        "`check_granularity` makes fewer: 201 with `column`, 2 with `schema`."
    )
    assert isinstance(warning.message, ManyChecksWarning)
    assert vars(warning.message) == {
        "asset": "sales/orders",
        "checks": 202,
        "fewer": {"column": 201, "schema": 2},
    }
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("columns", "settings", "fewer"),
    [
        (199, {}, None),
        (200, {}, {"schema": 2}),
        (200, {"check_granularity": "column"}, {"schema": 2}),
        (400, {"check_granularity": "schema"}, None),
    ],
)
def test_two_hundred_checks_are_not_too_many(
    columns: int, settings: dict[str, Any], fewer: dict[str, int] | None
) -> None:
    _, caught = defined_in(
        lambda: dd.wiring.check_specs(schema_of(columns), asset="orders", **settings)
    )
    assert [warning.fewer for warning in caught] == ([] if fewer is None else [fewer])


def test_checks_of_a_stored_table_and_of_members_are_counted_for_each_asset() -> None:
    schema: Any = schema_of(150, key=dy.Int64(primary_key=True))
    shop = type(
        "Shop", (dy.Collection,), {"__annotations__": dict.fromkeys("ab", dy.LazyFrame[schema])}
    )
    _, none = defined_in(lambda: dd.collection_asset(shop, name="shop")(lambda: None))
    assert none == []
    _, (warning,) = defined_in(lambda: dd.build_rule_checks(schema_of(250), asset="stored"))
    assert (warning.asset, warning.checks) == ("stored", 251)


def test_many_checks_of_a_member_are_warned_of_where_the_collection_is_declared() -> None:
    keyed: dict[str, Any] = {"key": dy.Int64(primary_key=True)}
    annotations = {
        "few": dy.LazyFrame[schema_of(9, **keyed)],  # type: ignore[misc]
        "many": dy.LazyFrame[schema_of(199, **keyed)],  # type: ignore[misc]
    }

    def known(self: Any) -> pl.LazyFrame:
        frame: pl.LazyFrame = self.few.select("key")
        return frame

    members = {"__annotations__": annotations, "known": dy.filter()(known)}
    shop = type("Shop", (dy.Collection,), members)
    with pytest.warns(ManyChecksWarning) as caught:
        dd.collection_asset(shop, name="shop")(lambda: None)
    (warning,) = caught
    assert warning.filename == __file__
    assert isinstance(warning.message, ManyChecksWarning)
    assert vars(warning.message) == {
        "asset": "many",
        "checks": 203,  # Of the columns, 199 minima, two rules of the key, and the filter.
        "fewer": {"schema": 3},  # The filter keeps its own.
    }


def test_the_number_of_checks_that_a_setting_makes_takes_the_others_as_they_are() -> None:
    def both(number: int) -> Any:
        return dd.rule()(lambda cls: pl.col(f"c{number}") < pl.col("c0"))

    schema = schema_of(150, **{f"r{number}": both(number) for number in range(1, 100)})
    for multi, column in [("schema", 152), ("per_rule", None)]:
        settings: dict[str, Any] = {"multi_column_rules": multi}
        _, (warning,) = defined_in(
            lambda settings=settings: dd.wiring.check_specs(schema, asset="orders", **settings)
        )
        assert warning.fewer == ({"column": column} if column else {}) | {"schema": 2}
