"""What a function of a collection returns, and where it goes."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster import AssetExecutionContext
from polars.testing import assert_frame_equal
from support.declare import declare
from support.shop import (
    CLEAN,
    DAYS,
    DIRTY,
    FAILED,
    LINES,
    ORDERS,
    Line,
    Order,
    Shop,
)
from support.storage import Store

import dagster_dataframely as dd
from dagster_dataframely.errors import (
    ColumnSchemaError,
    ReturnValueError,
    ValidationAbortError,
)
from dagster_dataframely.testing import invoke_collection


def of_partition(by_partition: Mapping[str, object]) -> Callable[..., object]:
    def shop(context: AssetExecutionContext) -> object:
        return by_partition[context.partition_key]

    return shop


def test_a_member_may_come_with_metadata_tags_and_a_data_version(store: Store) -> None:
    orders = dg.MaterializeResult(
        value=ORDERS,
        metadata={"source": "till"},
        tags={"tier": "1"},
        data_version=dg.DataVersion("v1"),
    )
    result = store.materialize(declare(Shop, {"orders": orders, "lines": LINES.lazy()}))
    (event,) = (
        materialization
        for materialization in result.asset_materializations_for_node("shop")
        if materialization.asset_key == dg.AssetKey("orders")
    )
    assert event.metadata["source"].value == "till"
    assert event.metadata["dagster/row_count"].value == 2
    columns: Any = event.metadata["dagster/column_schema"].value
    assert columns.constraints.other[-1] == "An order has lines, and a line has an order."
    assert event.tags is not None
    assert (event.tags["tier"], event.tags["dagster/data_version"]) == ("1", "v1")


@pytest.mark.parametrize(
    ("returned", "asset", "found"),
    [
        ([ORDERS], "shop", "a `list`"),
        (
            {"orders": ORDERS, "lines": LINES, "trips": LINES},
            "shop",
            "`trips`, which is not a member",
        ),
        ({"orders": ORDERS, "lines": None}, "shop", "nothing for member `lines`"),
        ({"orders": ORDERS}, "shop", "nothing for member `lines`"),
        ({"orders": ORDERS, "lines": [1]}, "lines", "a `list`"),
    ],
)
def test_anything_else_is_refused_by_name(returned: Any, asset: str, found: str) -> None:
    with pytest.raises(ReturnValueError) as raised:
        invoke_collection(declare(Shop, returned))
    assert raised.value.asset == asset
    assert raised.value.found.startswith(found)
    if asset == "shop":
        assert "a frame for each member, or an instance, of `Shop`" in str(raised.value)


def test_inputs_config_and_an_async_body(store: Store) -> None:
    class Config(dg.Config):
        first: int = 1

    @dg.asset
    def raw() -> pl.DataFrame:
        return LINES

    @dd.collection_asset(Shop, quarantine=True)
    async def shop(config: Config, raw: dy.LazyFrame[Line]) -> Any:
        return {"orders": ORDERS[: config.first], "lines": raw}

    assert store.materialize(raw, shop).success
    lines = store.files.read("lines")
    assert lines is not None
    assert lines["id"].to_list() == [1]
    called = invoke_collection(shop, config=Config(first=2), raw=LINES.lazy())
    assert called["lines"].failed == ["dy_rule__amount__max"]


@pytest.mark.parametrize("how", ["run", "call"])
def test_partitions(store: Store, how: str) -> None:
    by_day = {"mon": Shop.cast(CLEAN), "tue": Shop.cast(DIRTY)}
    shop = declare(Shop, of_partition(by_day), quarantine=True, partitions_def=DAYS)
    if how == "call":
        called = invoke_collection(shop, partition_key="tue")
        assert called["lines"].metadata["dagster/partition_row_count"] == 3
        return
    assert store.materialize(shop, partition_key="mon").success
    result = store.materialize(shop, partition_key="tue")
    assert {name: store.failures(result, "tue", name) for name in FAILED} == FAILED
    assert store.files.files == [
        "lines/mon.parquet",
        "lines/tue.parquet",
        "lines_quarantine/tue.parquet",
        "notes/mon.parquet",
        "notes/tue.parquet",
        "orders/mon.parquet",
        "orders/tue.parquet",
        "orders_quarantine/tue.parquet",
    ]
    assert store.statuses("orders", "dy_filter__has_lines") == {"mon": "SUCCEEDED", "tue": "FAILED"}


def test_a_lazy_member_is_handed_over_lazily(store: Store) -> None:
    handed: dict[str, type] = {}
    handle = store.files.handle_output

    def record(context: dg.OutputContext, obj: Any) -> None:
        handed[context.asset_key.path[-1]] = type(obj)
        handle(context, obj)

    store.files.handle_output = record  # type: ignore[method-assign]
    assert store.materialize(declare(Shop, Shop.cast(DIRTY), quarantine=True)).success
    assert handed == {
        "orders": pl.DataFrame,
        "orders_quarantine": pl.DataFrame,
        "lines": pl.LazyFrame,
        "lines_quarantine": pl.LazyFrame,
        "notes": pl.DataFrame,
    }


def test_dagster_can_move_the_members_to_other_keys(store: Store) -> None:
    module = ModuleType("module")
    vars(module)["shop"] = declare(Shop, Shop.cast(DIRTY), quarantine=True)
    (moved,) = dg.load_assets_from_modules([module], key_prefix="city")
    result = store.materialize(moved)
    assert store.failures(result, asset="city/orders") == FAILED["orders"]
    assert "city/orders_quarantine.parquet" in store.files.files
    assert isinstance(moved, dg.AssetsDefinition)
    invoked = dd.testing.invoke_collection(moved)
    stored = store.files.read(["city", "orders_quarantine"])
    assert stored is not None
    assert invoked["orders"].quarantine is not None
    assert_frame_equal(invoked["orders"].quarantine, stored)


class Twins(dy.Collection):
    """One member has the key of the other's quarantine."""

    orders: dy.LazyFrame[Order]
    orders_quarantine: dy.LazyFrame[Order]


def test_a_quarantine_may_not_be_another_member(store: Store) -> None:
    frames = {"orders": ORDERS, "orders_quarantine": ORDERS}
    result = store.materialize(declare(Twins, frames, quarantine=True))
    assert store.error_of(result)[0] == "QuarantineKeyCollisionError"
    assert store.files.files == []


@pytest.mark.parametrize("layout", ["columns", "list"])
def test_quarantines_of_the_members_are_assets_of_the_graph(store: Store, layout: Any) -> None:
    shop = declare(
        Shop,
        Shop.cast(DIRTY),
        quarantine=True,
        quarantine_layout=layout,
        outs={"lines": dg.AssetOut(key_prefix="city", group_name="retail")},
    )
    specs = {spec.key.to_user_string(): spec for spec in dd.build_quarantine_specs(Shop, shop)}
    assert list(specs) == ["orders_quarantine", "city/lines_quarantine", "notes_quarantine"]
    lines = specs["city/lines_quarantine"]
    assert (lines.group_name, lines.metadata["dagster/io_manager_key"]) == ("retail", "io_manager")
    assert [dep.asset_key.path for dep in lines.deps] == [["city", "lines"]]

    @dg.asset(ins={"rows": dg.AssetIn(lines.key)})
    def seen(rows: pl.LazyFrame) -> None:
        columns = [column.name for column in lines.metadata["dagster/column_schema"].columns]
        assert rows.collect_schema().names() == columns
        assert ("dy_filter__has_lines" in columns) is (layout == "columns")

    assert store.materialize(shop).success
    assert store.materialize(*specs.values(), seen).success


def test_errors_of_a_call_name_the_member() -> None:
    with pytest.raises(ValidationAbortError) as aborted:
        invoke_collection(declare(Shop, Shop.cast(DIRTY)))
    assert (aborted.value.asset, aborted.value.counts) == (
        "orders",
        {"total|min": 1, "has_lines": 1},
    )
    with pytest.raises(ColumnSchemaError) as drifted:
        invoke_collection(declare(Shop, {"orders": ORDERS, "lines": LINES.drop("line")}))
    assert drifted.value.asset == "lines"
