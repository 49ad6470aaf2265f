"""What a collection declares: keys, checks and arguments of each member."""

import inspect
from typing import Annotated, Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.shop import (
    CHECKS,
    DAYS,
    ORDERS,
    Line,
    Note,
    Order,
    Shop,
)

import dagster_dataframely as dd
from dagster_dataframely import _names
from dagster_dataframely._assets.collection_asset import DECIDED, DagsterArguments
from dagster_dataframely.errors import (
    CheckNameCollisionError,
    InvalidArgumentError,
    InvalidCollectionError,
    InvalidSeverityError,
)
from dagster_dataframely.testing import invoke_collection


def test_each_member_is_an_asset_with_its_columns_and_checks() -> None:
    shop = declare(Shop, None, quarantine=True, quarantine_layout="list")
    specs = {spec.key.to_user_string(): spec for spec in shop.specs}
    assert set(specs) == set(CHECKS)
    checks: dict[str, list[str]] = {}
    for spec in shop.check_specs:
        checks.setdefault(spec.asset_key.to_user_string(), []).append(spec.name)
    assert checks == CHECKS
    assert specs["orders"].description == "The head of an order."
    assert specs["orders"].kinds == {"polars"}
    assert specs["orders"].metadata[_names.QUARANTINE_LAYOUT] == "list"
    columns = specs["lines"].metadata["dagster/column_schema"]
    assert [column.name for column in columns.columns] == ["id", "line", "amount"]
    assert columns.constraints.other == [
        "primary key: id, line",
        "An order has lines, and a line has an order.",
    ]
    described = {(s.asset_key.path[-1], s.name): s.description for s in shop.check_specs}
    assert described["orders", "dy_filter__has_lines"] == columns.constraints.other[1]
    assert shop.op.name == "shop"


def test_a_member_takes_what_its_asset_out_says() -> None:
    condition = dg.AutomationCondition.eager()
    shop = declare(
        Shop,
        None,
        key_prefix="city",
        io_manager_key="lake",
        code_version="7",
        outs={
            "orders": dg.AssetOut(
                key="heads",
                io_manager_key="duckdb",
                description="Heads.",
                metadata={"partition_expr": "id"},
                group_name="shop",
                code_version="8",
                automation_condition=condition,
                owners=["team:data"],
                tags={"tier": "1"},
                kinds={"duckdb"},
            ),
            "notes": dg.AssetOut(key_prefix=["town", "hall"]),
        },
    )
    specs = {spec.key.to_user_string(): spec for spec in shop.specs}
    assert set(specs) == {"heads", "city/lines", "town/hall/notes"}
    heads = specs["heads"]
    assert (heads.description, heads.group_name, heads.code_version) == ("Heads.", "shop", "8")
    assert (heads.automation_condition, list(heads.owners)) == (condition, ["team:data"])
    assert heads.kinds == {"duckdb", "polars"}
    assert heads.tags["tier"] == "1"
    assert heads.metadata["partition_expr"] == "id"
    assert specs["city/lines"].code_version == "7"
    managers = {key.path[-1]: shop.get_io_manager_key_for_asset_key(key) for key in shop.keys}
    assert managers == {"heads": "duckdb", "lines": "lake", "notes": "lake"}


def test_arguments_of_the_op_reach_it() -> None:
    retry_policy = dg.RetryPolicy(max_retries=2)
    shop = declare(
        Shop,
        None,
        name="nightly",
        pool="duckdb",
        retry_policy=retry_policy,
        op_tags={"team": "data"},
        partitions_def=DAYS,
        group_name="shop",
        deps=["raw"],
    )
    assert (shop.op.name, shop.op.pool, shop.op.retry_policy) == ("nightly", "duckdb", retry_policy)
    assert {spec.partitions_def for spec in shop.check_specs} == {shop.partitions_def} == {DAYS}
    assert {spec.group_name for spec in shop.specs} == {"shop"}
    assert {dep.asset_key for spec in shop.specs for dep in spec.deps} == {dg.AssetKey("raw")}


def test_the_decorator_knows_every_argument_of_dg_multi_asset() -> None:
    upstream = set(inspect.signature(dg.multi_asset).parameters) - {"kwargs"}
    known = {*DagsterArguments.__annotations__, *DECIDED}
    assert known - {"key_prefix", "io_manager_key"} == upstream


@pytest.mark.parametrize("argument", DECIDED)
def test_an_argument_that_the_decorator_decides_is_refused(argument: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        dd.collection_asset(Shop, **{argument: None})
    assert raised.value.argument == argument


@pytest.mark.parametrize("argument", ["outs", "severities"])
def test_a_name_that_is_no_member_is_refused(argument: str) -> None:
    wrong: Any = {"trips": dg.AssetOut() if argument == "outs" else {"id|min": "warn"}}
    with pytest.raises(InvalidArgumentError, match="`trips` is no member of `Shop`"):
        dd.collection_asset(Shop, **{argument: wrong})


@pytest.mark.parametrize(
    "severities", [{"has_line": "warn"}, {"orders": {"min": "warn"}}, {"has_lines": "fatal"}]
)
def test_a_severity_that_fits_nothing_is_refused(severities: Any) -> None:
    with pytest.raises(InvalidSeverityError):
        dd.collection_asset(Shop, severities=severities)


def test_a_schema_is_no_collection() -> None:
    with pytest.raises(InvalidCollectionError):
        dd.collection_asset(Order)  # type: ignore[arg-type]


def test_a_filter_is_something_else_here() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'filter'"):
        dd.collection_asset(Shop, filter=True)  # type: ignore[call-arg]


class Clash(dy.Collection):
    """The filter and the propagation share a check name."""

    orders: Annotated[dy.LazyFrame[Order], dy.CollectionMember(propagate_row_failures=True)]

    @dy.filter()
    def orders__failure_propagation(self) -> pl.LazyFrame:
        return self.orders


def test_filters_whose_checks_share_a_name_are_refused() -> None:
    with pytest.raises(CheckNameCollisionError):
        dd.collection_asset(Clash)


def code_versions(collection: type[dy.Collection], **arguments: Any) -> dict[str, str | None]:
    shop = declare(collection, None, **arguments)
    return {spec.key.to_user_string(): spec.code_version for spec in shop.specs}


def test_the_code_version_changes_with_a_filter_and_its_severity() -> None:
    class Other(dy.Collection):
        """The same members, and another way to filter them."""

        orders: dy.DataFrame[Order]
        lines: dy.LazyFrame[Line]
        notes: Annotated[dy.DataFrame[Note] | None, dy.CollectionMember(ignored_in_filters=True)]

        @dy.filter()
        def has_lines(self) -> pl.LazyFrame:
            """An order has lines, and a line has an order."""
            return self.orders.lazy().join(self.lines, on="id", how="inner")

    assert code_versions(Shop) == code_versions(Shop)
    versions = [code_versions(Shop), code_versions(Other)]
    versions.append(code_versions(Shop, severities={"has_lines": "warn"}))
    for name, distinct in {"orders": 3, "lines": 3, "notes": 1}.items():
        assert len({found[name] for found in versions}) == distinct


def test_a_filter_that_needs_rows_does_not_keep_the_collection_from_being_declared() -> None:
    class Fussy(dy.Collection):
        """Its filter looks at the first row while it is built."""

        orders: dy.DataFrame[Order]

        @dy.filter()
        def first_is_kept(self) -> pl.LazyFrame:
            first = self.orders["id"][0]
            return self.orders.lazy().filter(pl.col("id") == first)

    result = invoke_collection(declare(Fussy, {"orders": ORDERS}, quarantine=True))
    assert result["orders"].failed == ["dy_filter__first_is_kept"]
