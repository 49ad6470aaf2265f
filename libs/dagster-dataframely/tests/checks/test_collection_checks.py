"""The filters of a collection as checks of the assets that hold its members."""

from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster import AssetExecutionContext
from support.storage import Store

import dagster_dataframely as dd
from dagster_dataframely.errors import (
    InvalidArgumentError,
    InvalidCollectionError,
    InvalidSeverityError,
)


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
    assert metadata == {"dy_filter": "has_lines", "dy_failed_count": 2}
    assert [record.data for record in sample.records] == [
        {"id": 9, "line": 1, "amount": 4},
        {"id": None, "line": 1, "amount": 5},
    ]


def test_a_passing_check_counts_no_row_and_has_no_sample(store: Store) -> None:
    members = shop(ORDERS[:1], LINES[:2])
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.materialize(*members.values(), checks)
    assert store.found(result, asset="orders") == {
        f"dy_filter__{name}": (True, "ERROR", {"dy_filter": name, "dy_failed_count": 0})
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


# Partitions.


ORDERS_BY_DAY = {"mon": ORDERS, "tue": ORDERS[:1], "wed": ORDERS[1:2]}
LINES_BY_DAY = {"mon": LINES, "tue": LINES[:1]}
"""On Wednesday there is an order and no line."""


def partitioned_shop(store: Store) -> dict[str, Any]:
    members = {
        "orders": table("orders", ORDERS_BY_DAY, DAYS),
        "lines": table("lines", LINES_BY_DAY, DAYS),
        "cities": table("cities", CITIES),
    }
    store.materialize(members["cities"])
    for day in DAYS.get_partition_keys():
        assert store.materialize(members["orders"], members["lines"], partition_key=day).success
    return members


NO_LINE = {"dy_filter__has_lines": 1}


def test_a_run_with_a_partition_checks_the_members_in_it(store: Store) -> None:
    members = partitioned_shop(store)
    checks = dd.build_collection_checks(Shop, members=members)
    assert {spec.partitions_def for spec in checks.check_specs} == {DAYS}
    assets = members["orders"], members["lines"], checks
    for day, expected in {"mon": REMOVED, "tue": {"orders": {}, "lines": {}}}.items():
        result = store.materialize(*assets, partition_key=day)
        assert (removed(store, result, day), store.found(result)) == (expected, {})


def test_a_run_without_a_partition_checks_each(store: Store) -> None:
    members = partitioned_shop(store)
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.check(checks, *members.values())
    assert removed(store, result, "mon") == REMOVED
    assert removed(store, result, "tue") == {"orders": {}, "lines": {}}
    # No line was written, so there are none.
    assert removed(store, result, "wed") == {"orders": NO_LINE, "lines": {}}
    assert store.found(result, asset="orders")["dy_filter__has_lines"] == (
        False,
        "ERROR",
        {"dy_partitions": 3, "dy_failed_partitions": 2, "dy_failed_count": 2},
    )
    assert store.statuses("lines", "dy_filter__has_lines") == {
        None: "FAILED",
        "mon": "FAILED",
        "tue": "SUCCEEDED",
        "wed": "SUCCEEDED",
    }


@pytest.mark.parametrize("tags", [{}, {"partition": "mon"}], ids=["no partition", "partition"])
def test_a_member_without_partitions_is_checked_against_all_of_the_others(
    store: Store, tags: dict[str, str]
) -> None:
    by_day = {"mon": LINES[:2], "wed": LINES[2:3]}
    members = {
        "orders": table("orders", ORDERS),
        "lines": table("lines", by_day, DAYS),
        "cities": table("cities", CITIES),
    }
    store.materialize(members["orders"], members["cities"])
    for day in DAYS.get_partition_keys():
        store.materialize(members["lines"], partition_key=day)
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.check(checks, *members.values(), only="dy_filter__has_lines", **tags)
    assert store.failures(result, asset="orders") == NO_LINE
    assert store.failures(result, "mon", asset="lines") == {}


def test_a_member_of_which_no_partition_is_known_is_read_nevertheless(store: Store) -> None:
    members: dict[str, Any] = {
        "orders": table("orders", ORDERS_BY_DAY, DAYS),
        "lines": dg.AssetSpec("lines", partitions_def=DAYS),
        "cities": table("cities", CITIES),
    }
    store.materialize(members["cities"])
    store.materialize(members["orders"], partition_key="mon")
    path = store.files.path(dg.AssetKey("lines"), "mon")
    path.parent.mkdir(parents=True, exist_ok=True)
    LINES.write_parquet(path)
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.check(checks, *members.values())
    assert removed(store, result, "mon") == REMOVED


# Arguments.


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
