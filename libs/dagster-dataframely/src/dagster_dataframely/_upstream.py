"""The only module that touches a private Dagster or Dataframely name; tests pin each of them."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import cast

import dagster as dg
import dataframely as dy
import polars as pl
from dagster._core.decorator_utils import get_type_hints
from dagster._core.definitions.decorators.op_decorator import is_context_provided
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._utils.warnings import disable_dagster_warnings
from dataframely._rule import RuleFactory

__all__ = [
    "RuleFactory",
    "current_run_context",
    "disable_dagster_warnings",
    "get_type_hints",
    "has_context",
    "materializable_keys",
    "rule_factories",
    "schema_rule_expressions",
    "write_through_bound_manager",
]


def rule_factories(schema: type) -> dict[str, RuleFactory]:
    """The `@dy.rule()` functions of a schema by name, in the order Dataframely merges them (3.1)."""
    merged: dict[str, RuleFactory] = {}
    for base in schema.__bases__:
        merged.update(rule_factories(base))
    own = {name: value for name, value in vars(schema).items() if isinstance(value, RuleFactory)}
    return {**merged, **own}


def schema_rule_expressions(schema: type[dy.Schema]) -> dict[str, Callable[[], pl.Expr]]:
    """For each `@dy.rule()` of a schema, what calls its function; there is no public list (3.1)."""
    return {
        name: functools.partial(lambda rule: cast("pl.Expr", rule.expr), rule)
        for name, rule in schema._schema_validation_rules().items()
    }


def has_context(function: Callable[..., object]) -> bool:
    """Whether Dagster would pass its context to the function, going by the first parameter's name."""
    return bool(is_context_provided(list(inspect.signature(function).parameters.values())))


def current_run_context(asset_key: dg.AssetKey) -> dg.AssetExecutionContext | None:
    """The context of the step that computes the asset, or `None` in a direct invocation."""
    try:
        context = dg.AssetExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None
    op_context = context.op_execution_context
    in_step = op_context.has_assets_def and asset_key in set(op_context.assets_def.keys)
    return context if in_step else None


def materializable_keys(context: dg.AssetExecutionContext) -> frozenset[dg.AssetKey]:
    """The keys of all assets the running code location can materialize, in this job or not."""
    graph = context.get_step_execution_context().job_def.asset_layer.asset_graph
    return frozenset(getattr(graph, "source_asset_graph", graph).materializable_asset_keys)


def write_through_bound_manager(
    context: dg.AssetExecutionContext, key: dg.AssetKey, frame: pl.DataFrame
) -> Mapping[str, dg.MetadataValue]:
    """Store a frame under another key through the IO manager the running asset is bound to.

    The manager gets the output context it is going to get for the asset itself, with the key changed:
    same partition, definition metadata, resource config and Dagster type. Events it logs are dropped,
    so no materialization is recorded. What it says about the output comes back.
    """
    step = context.get_step_execution_context()
    asset_key = context.asset_key
    output_name = step.job_def.asset_layer.get_assets_def_for_node(
        step.node_handle
    ).get_output_name_for_asset_key(asset_key)
    handle = StepOutputHandle(step_key=step.step.key, output_name=output_name)
    output_context = copy.copy(step.get_output_context(handle))
    output_context._asset_key = key
    spec = getattr(output_context, "_asset_spec", None)
    if spec is not None:
        output_context._asset_spec = spec.replace_attributes(key=key)
    handled = step.get_io_manager(handle).handle_output(output_context, frame)
    if inspect.isgenerator(handled):
        for _event in handled:
            pass
    return cast("Mapping[str, dg.MetadataValue]", output_context.consume_logged_metadata())
