"""Each argument of the decorator does what it does on a plain asset, or is refused."""

import datetime as dt
import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.described_orders import FRAME, Orders
from support.execution import Execute

import dagster_dataframely as dd
from dagster_dataframely._assets.asset import DECIDED
from dagster_dataframely._settings import SettingArguments


@dg.success_hook
def a_hook(context: dg.HookContext) -> None: ...


GIVEN: dict[str, Any] = {
    "name": "other",
    "key": dg.AssetKey(["a", "b"]),
    "key_prefix": ["a", "b"],
    "ins": {"raw": dg.AssetIn(key=["lake", "raw"], metadata={"a": 1})},
    "deps": ["before"],
    "metadata": {"mine": 1},
    "tags": {"a": "b"},
    "description": "what it is",
    "config_schema": {"rows": dg.Int},
    "required_resource_keys": {"unit"},
    "resource_defs": {"unit": dg.ResourceDefinition.hardcoded_resource(1)},
    "hooks": {a_hook},
    "io_manager_def": dg.mem_io_manager,
    "io_manager_key": "lake",
    "partitions_def": dg.StaticPartitionsDefinition(["x"]),
    "op_tags": {"queue": "slow"},
    "group_name": "shop",
    "automation_condition": dg.AutomationCondition.eager(),
    "freshness_policy": dg.FreshnessPolicy.time_window(fail_window=dt.timedelta(hours=1)),
    "backfill_policy": dg.BackfillPolicy.single_run(),
    "retry_policy": dg.RetryPolicy(max_retries=3),
    "code_version": "7",
    "owners": ["team:shop"],
    "kinds": {"a", "b", "c"},
    "pool": "slow",
}


def describe(asset: dg.AssetsDefinition) -> dict[str, Any]:
    """Everything about a definition that an argument of `@dg.asset` decides."""
    (spec,) = asset.specs
    op = asset.op
    metadata = {k: v for k, v in spec.metadata.items() if k != "dagster/column_schema"}
    kind = {"dagster/kind/polars"}
    return {
        "key": asset.key,
        "op": op.name,
        "inputs": {
            definition.name: (asset.keys_by_input_name[definition.name], definition.metadata)
            for definition in op.input_defs
        },
        "deps": {dep.asset_key for dep in spec.deps},
        "metadata": metadata,
        "tags": {k: v for k, v in spec.tags.items() if k not in kind},
        "description": spec.description,
        "config": op.config_schema.as_field().config_type.key,
        "required": asset.required_resource_keys,
        "resources": set(asset.resource_defs),
        "hooks": asset.hook_defs,
        "io_manager": asset.get_io_manager_key_for_asset_key(asset.key),
        "partitions": asset.partitions_def,
        "op_tags": op.tags,
        "group": spec.group_name,
        "automation": spec.automation_condition,
        "freshness": spec.freshness_policy,
        "backfill": asset.backfill_policy,
        "retry": op.retry_policy,
        "code_version": spec.code_version,
        "owners": spec.owners,
        "pool": op.pool,
    }


def undecided(**arguments: Any) -> dict[str, Any]:
    """What the schema decides where nobody else does, set to one thing for a comparison."""
    return {"description": "-", "code_version": "-", **arguments}


@pytest.mark.filterwarnings("ignore:Parameter `.*`:dagster.BetaWarning")
@pytest.mark.filterwarnings("ignore:Parameter `.*`:dagster.PreviewWarning")
@pytest.mark.parametrize("argument", sorted(GIVEN))
def test_an_argument_does_what_it_does_on_a_plain_asset(argument: str) -> None:
    def orders(raw: pl.DataFrame): ...  # type: ignore[no-untyped-def]  # noqa: ANN202

    def without_inputs(): ...  # type: ignore[no-untyped-def]  # noqa: ANN202

    without_inputs.__name__ = "orders"
    function = orders if argument == "ins" else without_inputs

    def plain(**arguments: Any) -> dict[str, Any]:
        # A check makes the default IO manager a required resource, on a plain asset too.
        given = dg.asset(**arguments)(function)
        specs = [dg.AssetCheckSpec("any", asset=given.key)]
        return describe(dg.asset(**arguments, check_specs=specs)(function))

    arguments = undecided(**{argument: GIVEN[argument]})
    assert describe(dd.asset(Orders, **arguments)(function)) == plain(**arguments)
    assert plain(**arguments) != plain(**undecided())


def test_an_argument_is_taken_or_refused_or_a_setting() -> None:
    own = {
        "schema",
        "quarantine",
        "filter",
        "severities",
        "unknown",
        *SettingArguments.__annotations__,
    }
    listed = inspect.signature(dd.asset).parameters.keys()
    assert not listed & DECIDED.keys()
    assert GIVEN.keys() == listed - own


@pytest.mark.parametrize(
    ("function", "typed", "meant"),
    [
        (dd.asset, "partition_def", "partitions_def"),
        (dd.collection_asset, "partition_def", "partitions_def"),
        (dd.asset, "quarantne", "quarantine"),
    ],
)
def test_a_mistyped_argument_is_told_at_the_decorator(
    function: Callable[..., Any], typed: str, meant: str
) -> None:
    with pytest.raises(TypeError, match=f"'{typed}'. Did you mean `{meant}`") as raised:
        function(Orders, **{typed: None})
    assert len(raised.traceback) <= 3


def test_help_lists_every_parameter_of_the_decorator_by_name() -> None:
    text = pydoc.render_doc(dd.asset)
    for parameter in inspect.signature(dg.asset).parameters.keys() - DECIDED.keys():
        assert parameter in {"compute_fn", "kwargs"} or f"{parameter}:" in text


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("check_specs", [dg.AssetCheckSpec("mine", asset="orders")]),
        ("check_specs", None),
        ("output_required", True),
        ("dagster_type", dg.Any),
        ("is_virtual", True),
    ],
)
def test_an_argument_that_the_schema_decides_is_refused_by_name(
    argument: str, value: object
) -> None:
    arguments: Any = {argument: value}
    with pytest.raises(dd.errors.InvalidArgumentError, match=f"`{argument}`") as caught:
        dd.asset(Orders, **arguments)
    assert caught.value.argument == argument
    assert DECIDED[argument] in str(caught.value)


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ({}, False),
        ({"quarantine": None, "filter": None}, False),
        ({"quarantine": False}, False),
        ({"filter": False}, False),
        ({"quarantine": True}, True),
        ({"filter": True}, True),
        ({"quarantine": True, "filter": True}, True),
        ({"quarantine": False, "filter": False}, False),
        ({"quarantine": None, "filter": True}, True),
    ],
)
def test_quarantine_and_filter_are_one_switch(
    execute: Execute, switch: dict[str, Any], *, expected: bool
) -> None:
    @dd.asset(Orders, **switch)
    def orders() -> pl.DataFrame:
        return FRAME.with_columns(amount=pl.Series([4, -2]))

    assert execute(orders).success is expected


@pytest.mark.parametrize(
    ("switch", "argument"),
    [
        ({"quarantine": True, "filter": False}, "filter"),
        ({"quarantine": False, "filter": True}, "filter"),
        ({"quarantine": "yes"}, "quarantine"),
        ({"filter": 1}, "filter"),
    ],
)
def test_a_switch_that_contradicts_itself_or_is_no_flag_is_refused(
    switch: dict[str, Any], argument: str
) -> None:
    with pytest.raises(dd.errors.InvalidArgumentError) as caught:
        dd.asset(Orders, **switch)
    assert caught.value.argument == argument


class Shop(dy.Collection):
    """Two tables."""

    orders: dy.LazyFrame[Orders]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (Shop, dd.errors.CollectionNotSupportedError),
        (dy.Schema, dd.errors.InvalidSchemaError),
        (int, dd.errors.InvalidSchemaError),
        (FRAME, dd.errors.InvalidSchemaError),
        (None, dd.errors.InvalidSchemaError),
    ],
    ids=["collection", "base class", "other class", "frame", "none"],
)
def test_only_a_schema_class_is_a_schema(schema: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        dd.asset(schema)


def test_the_two_names_are_one_decorator() -> None:
    assert dd.dy_asset is dd.asset


def test_a_deprecated_argument_of_dagster_is_passed_on() -> None:
    arguments: Any = {"compute_kind": "duckdb"}
    plain = dg.asset(name="orders", **arguments)(lambda: None)
    assert plain.op.tags["dagster/compute_kind"] == "duckdb"
    ours = dd.asset(Orders, name="orders", **arguments)(lambda: None)
    assert ours.op.tags["dagster/compute_kind"] == "duckdb"
