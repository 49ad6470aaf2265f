"""What the decorator makes of a function: what `@dg.asset` would, with the schema's parts."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.described_orders import FRAME, Orders, as_frame
from support.execution import Execute
from support.storage import FileIOManager

import dagster_dataframely as dd

CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__amount__min",
    "dy_rule__primary_key",
    "dy_rule__even",
]


class Undocumented(dy.Schema):
    id = dy.Int64()


def test_specs_and_columns_are_there_before_any_run() -> None:
    @dd.asset(Orders, key_prefix="shop")
    def orders() -> None: ...

    specs = list(orders.check_specs)
    assert [(spec.name, spec.asset_key, spec.blocking) for spec in specs] == [
        (name, orders.key, name == "dy_schema__columns") for name in CHECKS
    ]
    assert all(spec.description for spec in specs)
    assert specs[-1].description == "Amounts are even."
    assert orders.metadata_by_key[orders.key] == {
        "dagster/column_schema": dd.wiring.table_schema(Orders)
    }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, CHECKS),
        (
            {"check_granularity": "column"},
            [
                "dy_schema__columns",
                "dy_col__id",
                "dy_col__amount",
                "dy_schema__rules",
            ],
        ),
        (
            {"check_granularity": "column", "multi_column_rules": "per_rule"},
            [
                "dy_schema__columns",
                "dy_col__id",
                "dy_col__amount",
                "dy_rule__primary_key",
                "dy_rule__even",
            ],
        ),
        ({"check_granularity": "schema"}, ["dy_schema__columns", "dy_schema__rules"]),
        ({"check_granularity": dd.Granularity.SCHEMA}, ["dy_schema__columns", "dy_schema__rules"]),
    ],
)
def test_granularity_decides_which_checks_are_declared_and_reported(
    execute: Execute, settings: dict[str, Any], expected: list[str]
) -> None:
    @dd.asset(Orders, **settings)
    def orders() -> pl.DataFrame:
        return FRAME

    assert [spec.name for spec in orders.check_specs] == expected
    assert list(execute(orders).checks) == expected


@pytest.mark.parametrize(
    ("schema", "given", "documented", "expected"),
    [
        (Orders, "given", True, "given"),
        (Orders, None, True, "Orders of a shop."),
        (Undocumented, None, True, "What the function says."),
        (Undocumented, None, False, None),
    ],
    ids=["argument", "schema", "function", "nothing"],
)
def test_description_is_the_argument_or_the_schemas_or_the_functions(
    schema: type[dy.Schema], given: str | None, expected: str | None, *, documented: bool
) -> None:
    def orders() -> None: ...

    orders.__doc__ = "What the function says." if documented else None
    asset = dd.asset(schema, description=given)(orders)
    assert asset.descriptions_by_key.get(asset.key) == expected


TEN_KINDS = {f"k{number}" for number in range(10)}
"""As many as Dagster allows."""


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (None, {"polars"}),
        ({"duckdb"}, {"duckdb", "polars"}),
        (TEN_KINDS - {"k9"}, TEN_KINDS - {"k9"} | {"polars"}),
        (TEN_KINDS, TEN_KINDS),
    ],
)
def test_polars_is_a_kind_where_dagster_leaves_room_for_it(
    kinds: set[str] | None, expected: set[str]
) -> None:
    (spec,) = dd.asset(Orders, kinds=kinds)(lambda_named_orders()).specs
    assert spec.kinds == expected


def test_a_code_version_is_derived_from_the_schema_or_given() -> None:
    def version(schema: type[dy.Schema], **arguments: Any) -> str | None:
        (spec,) = dd.asset(schema, **arguments)(lambda_named_orders()).specs
        return spec.code_version

    assert version(Orders) == version(Orders)
    assert version(Orders, severities={"amount|min": "warn"}) != version(Orders)
    assert version(Undocumented) != version(Orders)
    assert version(Orders, code_version="mine") == "mine"


def test_assets_of_one_name_under_different_prefixes_load_and_run_together(
    instance: dg.DagsterInstance, files: FileIOManager
) -> None:
    assets = [
        dd.asset(Orders, key_prefix=prefix)(lambda_named_orders())
        for prefix in ("sales", ["returns", "eu"])
    ]
    assert [asset.node_def.name for asset in assets] == ["sales__orders", "returns__eu__orders"]
    defs = dg.Definitions(assets=assets, resources={"io_manager": files})
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(instance=instance)
    assert result.success
    assert files.files == ["returns/eu/orders.parquet", "sales/orders.parquet"]


@pytest.mark.parametrize("quarantine", [False, True])
def test_an_asset_loaded_under_another_prefix_keeps_its_checks_and_quarantine(
    run: Execute, files: FileIOManager, *, quarantine: bool
) -> None:
    module = ModuleType("module")
    frame = pl.DataFrame({"id": [1, 2], "amount": [2, -2 if quarantine else 2]})
    module.orders = dd.asset(Orders, quarantine=quarantine)(as_frame(frame))  # type: ignore[attr-defined]
    (orders,) = dg.load_assets_from_modules([module], key_prefix="shop")
    assert isinstance(orders, dg.AssetsDefinition)
    assert {spec.asset_key for spec in orders.check_specs} == {dg.AssetKey(["shop", "orders"])}
    outcome = run(orders)
    assert (outcome.success, outcome.error) == (True, None)
    assert list(outcome.checks) == CHECKS
    quarantined = ["shop/orders_quarantine.parquet"] if quarantine else []
    assert files.files == ["shop/orders.parquet", *quarantined]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["orders"]),
        ({"name": "other"}, ["other"]),
        ({"key_prefix": "a"}, ["a", "orders"]),
        ({"key_prefix": ["a", "b"], "name": "other"}, ["a", "b", "other"]),
        ({"key": "other"}, ["other"]),
        ({"key": ["a", "other"]}, ["a", "other"]),
        ({"key": dg.AssetKey(["a", "other"])}, ["a", "other"]),
    ],
)
def test_checks_and_results_have_the_key_of_the_asset(
    execute: Execute, arguments: dict[str, Any], expected: list[str]
) -> None:
    @dd.asset(Orders, **arguments)
    def orders() -> pl.DataFrame:
        return FRAME

    assert orders.key == dg.AssetKey(expected)
    assert {spec.asset_key for spec in orders.check_specs} == {orders.key}
    assert execute(orders).success


def lambda_named_orders() -> Callable[[], pl.DataFrame]:
    def orders() -> pl.DataFrame:
        return FRAME

    return orders
