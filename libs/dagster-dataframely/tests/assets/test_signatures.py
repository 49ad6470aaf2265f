"""A function keeps its parameters and annotations."""

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import polars as pl
import pytest
from support.described_orders import Orders
from support.storage import FileIOManager

import dagster_dataframely as dd


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
