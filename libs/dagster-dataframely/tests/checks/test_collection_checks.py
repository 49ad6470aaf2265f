"""The filters of a collection as checks of the assets that hold its members."""

from pathlib import Path
from types import ModuleType

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.storage import Store
from support.stored_shop import (
    CITIES,
    LINES,
    ORDERS,
    REMOVED,
    Line,
    Order,
    Shop,
    removed,
    shop,
    table,
)

import dagster_dataframely as dd


def test_the_counts_are_dataframelys() -> None:
    data = {"orders": ORDERS.lazy(), "lines": LINES.drop_nulls().lazy(), "cities": CITIES.lazy()}
    _, failure = Shop.filter(data)
    assert failure["orders"].counts() == {"has_lines": 1, "city_is_known": 1}
    assert failure["lines"].counts() == {"has_lines": 1, "city_is_known": 2}


class Lazy(dy.Collection):
    """Two lazy members whose tables have columns of their own."""

    orders: dy.LazyFrame[Order]
    lines: dy.LazyFrame[Line]

    @dy.filter()
    def has_lines(self) -> pl.LazyFrame:
        return self.orders.join(self.lines, on="id", how="semi")


@pytest.mark.io_managers
def test_members_may_be_delta_lake_tables(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    from dagster_polars import PolarsDeltaIOManager

    members = {"orders": table("orders", ORDERS), "lines": table("lines", LINES[:4])}
    checks = dd.build_collection_checks(Lazy, members=members)
    result = dg.materialize(
        [*members.values(), checks],
        instance=instance,
        resources={"io_manager": PolarsDeltaIOManager(base_dir=str(tmp_path))},
    )
    assert {
        evaluation.asset_key.path[-1]: evaluation.metadata["dy_failed_count"].value
        for evaluation in result.get_asset_check_evaluations()
    } == {"orders": 1, "lines": 1}


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "lazy"])
def test_each_filter_is_a_check_of_each_member_it_applies_to(store: Store, *, eager: bool) -> None:
    members = shop()
    checks = dd.build_collection_checks(Shop, members=members)
    if eager:
        store.load_eagerly()
    result = store.materialize(*members.values(), checks)
    assert removed(store, result) == REMOVED
    assert removed(store, store.check(checks, *members.values())) == REMOVED
    assert store.found(result, asset="cities") == {}
    passed, severity, metadata = store.found(result, asset="lines")["dy_filter__has_lines"]
    sample = metadata.pop("dy_failed_sample")
    assert (passed, severity) == (False, "ERROR")
    assert metadata == {
        "dy_filter": "has_lines",
        "dy_failed_count": 2,
        "dy_severity": "error",
    }
    assert [record.data for record in sample.records] == [
        {"id": 9, "line": 1, "amount": 4},
        {"id": None, "line": 1, "amount": 5},
    ]


def test_a_passing_check_counts_no_row_and_has_no_sample(store: Store) -> None:
    members = shop(ORDERS[:1], LINES[:2])
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.materialize(*members.values(), checks)
    assert store.found(result, asset="orders") == {
        f"dy_filter__{name}": (
            True,
            "ERROR",
            {"dy_filter": name, "dy_failed_count": 0, "dy_severity": "error"},
        )
        for name in ("has_lines", "city_is_known")
    }


def test_specs_name_the_filter_and_depend_on_every_member() -> None:
    condition = dg.AutomationCondition.eager()
    retry_policy = dg.RetryPolicy(max_retries=2)
    checks = dd.build_collection_checks(
        Shop,
        members={"orders": "orders", "lines": ["shop", "lines"], "cities": dg.AssetKey("cities")},
        automation_condition=condition,
        op_tags={"team": "data"},
        pool="duckdb",
        retry_policy=retry_policy,
    )
    described = {
        (spec.asset_key.to_user_string(), spec.name): spec.description
        for spec in checks.check_specs
    }
    unnamed = "kept by filter `city_is_known` of collection `Shop`"
    assert described == {
        ("orders", "dy_filter__has_lines"): "An order has lines, and a line has an order.",
        ("orders", "dy_filter__city_is_known"): unnamed,
        ("shop/lines", "dy_filter__has_lines"): "An order has lines, and a line has an order.",
        ("shop/lines", "dy_filter__city_is_known"): unnamed,
    }
    depends_on = {
        spec.asset_key.to_user_string(): {dep.asset_key.path[-1] for dep in spec.additional_deps}
        for spec in checks.check_specs
    }
    assert depends_on == {"orders": {"lines", "cities"}, "shop/lines": {"orders", "cities"}}
    assert {spec.automation_condition for spec in checks.check_specs} == {condition}
    op = checks.op
    assert (op.name, op.pool, op.retry_policy) == (
        "Shop__collection_checks",
        "duckdb",
        retry_policy,
    )
    assert (op.tags, checks.can_subset) == ({"team": "data"}, True)
    named = dd.build_collection_checks(Shop, members=shop(), name="nightly")
    assert named.op.name == "nightly"


def test_a_check_runs_without_the_others(store: Store) -> None:
    members = shop()
    store.materialize(*members.values())
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.check(checks, *members.values(), only="dy_filter__has_lines")
    assert removed(store, result) == {
        "orders": {"dy_filter__has_lines": 1},
        "lines": {"dy_filter__has_lines": 2},
    }


def test_severities_by_filter(store: Store) -> None:
    members = shop()
    checks = dd.build_collection_checks(
        Shop, members=members, severity="warn", severities={"has_lines": "error"}
    )
    result = store.materialize(*members.values(), checks)
    found = store.found(result, asset="orders")
    assert {name: severity for name, (_, severity, _) in found.items()} == {
        "dy_filter__has_lines": "ERROR",
        "dy_filter__city_is_known": "WARN",
    }


def test_samples_are_bounded(store: Store) -> None:
    members = shop()
    checks = dd.build_collection_checks(Shop, members=members, max_failure_samples=1)
    found = store.found(store.materialize(*members.values(), checks), asset="lines")
    assert len(found["dy_filter__has_lines"][2]["dy_failed_sample"].records) == 1


def test_an_optional_member_may_be_left_out(store: Store) -> None:
    members = shop()
    del members["lines"]
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.materialize(*members.values(), checks)
    assert store.failures(result, asset="orders") == {
        "dy_filter__has_lines": 3,
        "dy_filter__city_is_known": 1,
    }


def test_another_column_fails_the_run_unless_it_is_cast(store: Store) -> None:
    members = shop(lines=LINES.with_columns(pl.col("amount").cast(pl.Int32)))
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.materialize(*members.values(), checks)
    name, message = store.error_of(result)
    assert (name, "with `cast=True`" in message) == ("ColumnSchemaError", True)
    assert store.found(result) == {}
    checks = dd.build_collection_checks(Shop, members=members, cast=True)
    assert removed(store, store.check(checks, *members.values())) == REMOVED


def test_dagster_can_move_checks_and_assets_to_other_keys(store: Store) -> None:
    members = shop()
    module = ModuleType("module")
    vars(module).update(members, checks=dd.build_collection_checks(Shop, members=members))
    # Dagster moves the assets that have checks, and no other that the checks depend on (1.13).
    cities = vars(module).pop("cities")
    moved = dg.load_assets_from_modules([module], key_prefix="city")
    (checks,) = dg.load_asset_checks_from_modules([module], asset_key_prefix="city")
    result = store.materialize(cities, *moved, checks)
    assert store.failures(result, asset="city/lines") == REMOVED["lines"]
