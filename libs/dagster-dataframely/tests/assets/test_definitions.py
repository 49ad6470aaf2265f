"""What the decorator makes of a function: what `@dg.asset` would, with the schema's parts."""

import asyncio
import datetime as dt
import importlib.util
import inspect
import pydoc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.execution import Execute
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely._assets.asset import DECIDED
from dagster_dataframely._settings import SettingArguments


class Orders(dy.Schema):
    """Orders of a shop."""

    id = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True, min=0)

    @dy.rule()
    def even(cls) -> pl.Expr:
        """Amounts are even."""
        return cls.amount.col % 2 == 0


FRAME = pl.DataFrame({"id": [2, 1], "amount": [4, None]})
"""No rule fails."""

CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__amount__min",
    "dy_rule__primary_key",
    "dy_rule__even",
]


class Undocumented(dy.Schema):
    id = dy.Int64()


# The schema's parts.


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


# Names.


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


# Arguments of `@dg.asset`.


def lambda_named_orders() -> Callable[[], pl.DataFrame]:
    def orders() -> pl.DataFrame:
        return FRAME

    return orders


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


# What a function may return.

RETURNED: list[Callable[[], object]] = [
    lambda: FRAME,
    FRAME.lazy,
    lambda: dg.MaterializeResult(value=FRAME),
    lambda: dg.MaterializeResult(value=FRAME.lazy()),
    lambda: None,
]


def unannotated(returned: object):  # type: ignore[no-untyped-def]  # noqa: ANN201
    def orders():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return returned

    return orders


def as_frame(returned: Any) -> Callable[[], pl.DataFrame]:
    def orders() -> pl.DataFrame:
        return returned  # type: ignore[no-any-return]

    return orders


def as_lazy_frame(returned: Any) -> Callable[[], pl.LazyFrame]:
    def orders() -> pl.LazyFrame:
        return returned  # type: ignore[no-any-return]

    return orders


def as_result(returned: Any) -> Callable[[], object]:
    def orders() -> dg.MaterializeResult[pl.LazyFrame]:
        return returned  # type: ignore[no-any-return]

    return orders


def as_number(returned: Any) -> Callable[[], object]:
    def orders() -> int:
        return returned  # type: ignore[no-any-return]

    return orders


def as_optional_union(returned: Any) -> Callable[[], object]:
    def orders() -> "pl.DataFrame | pl.LazyFrame | None":
        return returned  # type: ignore[no-any-return]

    return orders


def as_coroutine(returned: Any) -> Callable[[], object]:
    async def orders() -> pl.DataFrame:
        await asyncio.sleep(0)
        return returned  # type: ignore[no-any-return]

    return orders


@pytest.mark.parametrize(
    "annotated",
    [unannotated, as_frame, as_lazy_frame, as_result, as_number, as_optional_union, as_coroutine],
)
@pytest.mark.parametrize("build", RETURNED, ids=["eager", "lazy", "result", "lazy result", "none"])
def test_what_is_returned_decides_and_not_the_annotation(
    call: Execute, build: Callable[[], object], annotated: Callable[[object], Any]
) -> None:
    outcome = call(dd.asset(Orders)(annotated(build())))
    assert outcome.success
    outcome.assert_stored(table=None if build() is None else FRAME, quarantine=None)


@pytest.mark.parametrize(
    ("build", "annotated"),
    [*zip(RETURNED, [as_number, as_frame, as_lazy_frame, unannotated, as_frame], strict=True)]
    + [(build, as_coroutine) for build in RETURNED[::2]],
)
def test_what_is_returned_decides_in_a_run_too(
    run: Execute, build: Callable[[], object], annotated: Callable[[object], Any]
) -> None:
    outcome = run(dd.asset(Orders, quarantine=True)(annotated(build())))
    assert outcome.success
    outcome.assert_stored(table=None if build() is None else FRAME, quarantine=None)


def test_an_asynchronous_function_sets_error_rows_aside(execute: Execute) -> None:
    frame = pl.DataFrame({"id": [1, 2], "amount": [2, -2]})
    outcome = execute(dd.asset(Orders, quarantine=True)(as_coroutine(frame.lazy())))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.quarantine is not None
    assert outcome.quarantine["id"].to_list() == [2]


def pandas_like() -> object:
    """An object that says it is a pandas frame."""
    return type("DataFrame", (), {"__module__": "pandas.core.frame"})()


def generated() -> Iterator[pl.DataFrame]:
    yield FRAME


REFUSED_VALUES = [
    pytest.param(lambda: [FRAME], "`list`", "", id="list"),
    pytest.param(lambda: FRAME["id"], "`polars.Series`", "", id="series"),
    pytest.param(pandas_like, "`pandas.DataFrame`", "pl.from_pandas(frame)", id="pandas"),
    pytest.param(lambda: dg.Output(FRAME), "`dagster.Output`", "Return its value.", id="output"),
    pytest.param(generated, "`generator`", "do not yield it", id="generator"),
    pytest.param(
        lambda: dg.MaterializeResult(value=None),
        "`NoneType`",
        "return `None` itself",
        id="value none",
    ),
    pytest.param(dg.MaterializeResult, "`value`", "", id="without value"),
    pytest.param(lambda: dg.MaterializeResult(value=[1]), "`list`", "", id="value list"),
    pytest.param(
        lambda: dg.MaterializeResult(value=FRAME, asset_key="orders"),
        "`asset_key`",
        "",
        id="asset key",
    ),
    pytest.param(
        lambda: dg.MaterializeResult(
            value=FRAME, check_results=[dg.AssetCheckResult(passed=True, check_name="a")]
        ),
        "`check_results`",
        "",
        id="check results",
    ),
]


@pytest.mark.parametrize(("build", "found", "fix"), REFUSED_VALUES)
def test_anything_else_is_refused_with_what_was_found_and_what_to_write(
    execute: Execute, build: Callable[[], object], found: str, fix: str
) -> None:
    outcome = execute(dd.asset(Orders, quarantine=True)(as_number(build())))
    assert (outcome.success, outcome.error) == (False, "ReturnValueError")
    assert found in outcome.message
    assert fix in outcome.message
    assert "`None` to skip" in outcome.message
    assert outcome.checks == {}
    outcome.assert_stored(table=None, quarantine=None)


@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()], ids=["eager", "lazy"])
def test_metadata_tags_and_data_version_of_a_result_land_on_the_materialization(
    run: Execute, instance: dg.DagsterInstance, frame: pl.DataFrame | pl.LazyFrame
) -> None:
    @dd.asset(Orders)
    def orders() -> object:
        return dg.MaterializeResult(
            value=frame,
            metadata={"mine": 7, "dagster/row_count": 99, "dataframely/rows_in": 99},
            tags={"mine": "yes"},
            data_version=dg.DataVersion("v7"),
        )

    outcome = run(orders)
    assert outcome.metadata is not None
    keys = ("mine", "dagster/row_count", "dataframely/rows_in")
    assert [outcome.metadata[key] for key in keys] == [7, 2, 2]
    event = instance.get_latest_materialization_event(orders.key)
    assert event is not None
    assert event.asset_materialization is not None
    tags = event.asset_materialization.tags or {}
    assert (tags["mine"], tags["dagster/data_version"]) == ("yes", "v7")


def test_a_direct_invocation_passes_metadata_tags_and_data_version_on() -> None:
    result = dg.MaterializeResult(
        value=FRAME, metadata={"mine": 7}, tags={"a": "b"}, data_version=dg.DataVersion("v7")
    )
    events = cast("Iterator[Any]", dd.asset(Orders)(as_result(result))())
    materialization = next(events)
    assert materialization.metadata["mine"] == 7
    assert (materialization.tags, materialization.data_version) == (
        result.tags,
        result.data_version,
    )


# The function's parameters.


def test_without_a_quarantine_a_function_keeps_exactly_its_parameters() -> None:
    def orders(raw: pl.DataFrame, *, other: pl.LazyFrame) -> None: ...

    compute = dd.asset(Orders)(orders).op.compute_fn.decorated_fn  # type: ignore[union-attr]
    parameters = inspect.signature(orders).parameters
    assert inspect.signature(compute).parameters == parameters


@pytest.mark.parametrize("name", ["context", "_", "_context"])
def test_a_quarantine_adds_a_context_only_where_there_is_none(name: str) -> None:
    def orders(raw: pl.DataFrame) -> None: ...

    def names(function: Callable[..., Any]) -> list[str]:
        compute = dd.asset(Orders, quarantine=True)(function).op.compute_fn.decorated_fn  # type: ignore[union-attr]
        return [*inspect.signature(compute).parameters]

    assert names(orders) == ["context", "raw"]
    declared: dict[str, Any] = {}
    exec(f"def orders({name}, raw): ...", declared)
    assert names(declared["orders"]) == [name, "raw"]


MODULE = """
{future}

import dagster as dg
import dataframely as dy
import polars as plx
from dagster import AssetExecutionContext as Context

import dagster_dataframely as dd


class Out(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Int64(min=0)


class Limit(dg.Config):
    rows: int = 2


class Unit(dg.ConfigurableResource):
    factor: int


@dg.asset
def raw() -> plx.DataFrame:
    return plx.DataFrame({{"id": [1, 2, 3], "amount": [4, 5, 6]}})


{body}
"""

AT_MODULE_LEVEL = """
{decorator}
def out({context}raw: plx.DataFrame) -> plx.DataFrame:
    return raw.head(2).with_columns(plx.col("amount") * 10)
"""

IN_A_FACTORY = """
def build(rows):
    {decorator}
    def out({context}raw: plx.DataFrame) -> plx.DataFrame:
        return raw.head(rows).with_columns(plx.col("amount") * 10)
    return out

out = build(2)
"""

WITH_A_LOCAL_TYPE = """
def build():
    Local = plx.DataFrame

    {decorator}
    def out({context}raw: Local) -> Local:
        return raw.head(2).with_columns(plx.col("amount") * 10)
    return out

out = build()
"""

WITH_CONFIG = """
{decorator}
def out({context}raw: plx.DataFrame, config: Limit, unit: Unit) -> plx.DataFrame:
    return raw.head(config.rows).with_columns(plx.col("amount") * unit.factor)
"""

TYPED = """
{decorator}
def out({context}raw: dy.LazyFrame[Out]) -> dy.LazyFrame[Out]:
    return raw.head(2).with_columns(plx.col("amount") * 10)
"""

Import = Callable[..., ModuleType]


@pytest.fixture
def import_source(tmp_path: Path) -> Import:
    """Import a module from its text."""

    def import_source(**parts: str) -> ModuleType:
        body = parts.pop("body").format(**parts)
        path = tmp_path / f"module_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(MODULE.format(body=body, **parts))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return import_source


STRINGS = pytest.mark.parametrize(
    "future", ["", "from __future__ import annotations"], ids=["plain", "strings"]
)


@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize(
    "context", ["", "context, ", "context: Context, ", "context: dg.AssetExecutionContext, "]
)
@pytest.mark.parametrize(
    "body", [AT_MODULE_LEVEL, IN_A_FACTORY, WITH_A_LOCAL_TYPE], ids=["module", "factory", "local"]
)
@STRINGS
def test_annotations_work_or_fail_as_on_a_plain_asset(
    import_source: Import,
    instance: dg.DagsterInstance,
    future: str,
    body: str,
    context: str,
    *,
    quarantine: bool,
) -> None:
    parts = {"future": future, "body": body, "context": context}
    decorator = f"@dd.asset(Out, quarantine={quarantine})"
    works = not future or ("Context" not in context and body != WITH_A_LOCAL_TYPE)
    if not works:
        with pytest.raises(dg.DagsterInvalidDefinitionError) as plain:
            import_source(**parts, decorator="@dg.asset")
        with pytest.raises(dg.DagsterInvalidDefinitionError) as ours:
            import_source(**parts, decorator=decorator)
        assert str(ours.value) == str(plain.value)
        return
    import_source(**parts, decorator="@dg.asset")
    module = import_source(**parts, decorator=decorator)
    called_in = dg.build_asset_context(instance=instance)
    materialization, *_ = module.out(called_in, module.raw())
    assert materialization.value.to_dicts() == [{"id": 1, "amount": 40}, {"id": 2, "amount": 50}]


@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize("context", ["", "context, ", "context: Context, "])
def test_config_under_string_annotations_fails_as_on_a_plain_asset(
    import_source: Import, context: str, *, quarantine: bool
) -> None:
    future = "from __future__ import annotations"
    parts = {"future": future, "body": WITH_CONFIG, "context": context}
    with pytest.raises(dg.DagsterError) as plain:
        import_source(**parts, decorator="@dg.asset")
    with pytest.raises(type(plain.value)) as ours:
        import_source(**parts, decorator=f"@dd.asset(Out, quarantine={quarantine})")
    assert str(ours.value) == str(plain.value)


@pytest.mark.parametrize(
    "body", [AT_MODULE_LEVEL, IN_A_FACTORY, TYPED], ids=["module", "factory", "typed"]
)
@pytest.mark.parametrize("context", ["", "context, "])
@STRINGS
def test_inputs_reach_the_function_in_a_run(
    import_source: Import,
    instance: dg.DagsterInstance,
    files: FileIOManager,
    future: str,
    context: str,
    body: str,
) -> None:
    decorator = "@dd.asset(Out, quarantine=True)"
    module = import_source(future=future, body=body, context=context, decorator=decorator)
    result = dg.materialize(
        [module.raw, module.out], instance=instance, resources={"io_manager": files}
    )
    assert result.success
    table = files.read(["out"])
    assert table is not None
    assert table.to_dicts() == [{"id": 1, "amount": 40}, {"id": 2, "amount": 50}]


@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize("context", ["", "context, ", "context: Context, "])
def test_config_and_resources_reach_the_function_in_a_run(
    import_source: Import,
    instance: dg.DagsterInstance,
    files: FileIOManager,
    context: str,
    *,
    quarantine: bool,
) -> None:
    decorator = f"@dd.asset(Out, quarantine={quarantine})"
    module = import_source(future="", body=WITH_CONFIG, context=context, decorator=decorator)
    result = dg.materialize(
        [module.raw, module.out],
        instance=instance,
        resources={"io_manager": files, "unit": module.Unit(factor=3)},
        run_config={"ops": {"out": {"config": {"rows": 1}}}},
    )
    assert result.success
    table = files.read(["out"])
    assert table is not None
    assert table.to_dicts() == [{"id": 1, "amount": 12}]
