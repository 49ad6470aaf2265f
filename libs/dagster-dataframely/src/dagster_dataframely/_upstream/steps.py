"""Reach Dagster's private names around steps, keys and partitions."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
from dagster._core.decorator_utils import get_type_hints
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as TargetMaterialization,
)
from dagster._core.definitions.decorators.op_decorator import is_context_provided
from dagster._utils.warnings import disable_dagster_warnings

__all__ = [
    "current_keys",
    "current_run_context",
    "current_step",
    "disable_dagster_warnings",
    "evaluation_of_partition",
    "get_type_hints",
    "has_context",
    "is_partitioned",
    "keys_by_output",
    "latest_materialization",
    "materializable_keys",
    "on_step_failure",
    "partitions_of_asset",
]


def has_context(function: Callable[..., object]) -> bool:
    """Whether Dagster would pass its context to the function, going by the first parameter's name."""
    return bool(is_context_provided(list(inspect.signature(function).parameters.values())))


def current_step(function: Callable[..., Any]) -> dg.AssetExecutionContext | None:
    """The context of the step that runs this function, or `None` in a direct invocation.

    The function tells and not the asset's key, which Dagster can change after the asset is made.
    """
    context = _current_context()
    if context is None:
        return None
    compute = context.op_execution_context.op_def.compute_fn
    return context if getattr(compute, "decorated_fn", None) is function else None


def current_run_context(asset_key: dg.AssetKey) -> dg.AssetExecutionContext | None:
    """The context of the step that computes the asset, or `None` outside one."""
    context = _current_context()
    if context is None or not context.op_execution_context.has_assets_def:
        return None
    return context if asset_key in set(context.op_execution_context.assets_def.keys) else None


def _current_context() -> dg.AssetExecutionContext | None:
    try:
        return dg.AssetExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None


def on_step_failure(clean_up: Callable[[], object]) -> None:
    """Clean up when the running step fails or is to be retried; nothing outside a step.

    Where an IO manager fails, Dagster does not close the generator that waits for it, and the traceback
    keeps it for as long as someone keeps the error. All ends go through the step's log (1.12 to 1.13);
    `capture_step_exception` is not called for a retry.
    """
    context = _current_context()
    if context is None:
        return
    log = context.get_step_execution_context().log
    record = log.log_dagster_event

    def log_dagster_event(
        level: str | int, msg: str, dagster_event: dg.DagsterEvent, *args: Any, **kwargs: Any
    ) -> None:
        if dagster_event.is_step_failure or dagster_event.is_step_up_for_retry:
            clean_up()
        record(level, msg, dagster_event, *args, **kwargs)

    vars(log)["log_dagster_event"] = log_dagster_event


def keys_by_output(context: dg.AssetExecutionContext) -> Mapping[str, dg.AssetKey]:
    """The keys of the assets that the running step computes, by the names of their outputs."""
    return context.op_execution_context.assets_def.keys_by_output_name


def is_partitioned(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> bool:
    """Whether an asset of the running step has partitions; a run that has some tells nothing of it.

    The run may be about other assets' partitions.
    """
    return context.assets_def.specs_by_key[asset_key].partitions_def is not None


def materializable_keys(context: dg.AssetExecutionContext) -> frozenset[dg.AssetKey]:
    """The keys of all assets the running code location can materialize, in this job or not."""
    graph = context.get_step_execution_context().job_def.asset_layer.asset_graph
    return frozenset(getattr(graph, "source_asset_graph", graph).materializable_asset_keys)


def current_keys(
    checks: dg.AssetChecksDefinition, context: dg.AssetCheckExecutionContext
) -> dict[dg.AssetKey, dg.AssetKey]:
    """The keys now of the assets that checks were made for (`load_asset_checks_from_modules`)."""
    now = context.op_execution_context.assets_def.node_keys_by_input_name
    return {key: now[name] for name, key in checks.node_keys_by_input_name.items()}


def partitions_of_asset(
    context: dg.AssetCheckExecutionContext, key: dg.AssetKey
) -> dg.PartitionsDefinition[Any] | None:
    """How an asset is partitioned, as its definition in the running code location says."""
    layer = context.job_def.asset_layer
    return layer.get(key).partitions_def if layer.has(key) else None


def evaluation_of_partition(
    context: dg.AssetCheckExecutionContext,
    result: dg.AssetCheckResult,
    partition_key: str | None,
    about: dg.EventLogRecord | None = None,
) -> dg.AssetCheckEvaluation:
    """A result as the event it becomes, for any partition; `None` stands for the whole asset.

    A step may yield it in place of the result, which Dagster takes to be about the partition of the
    run, and refuses in a run without one where the check is partitioned (1.13). `about` is the
    materialization that was looked at; without it that of a partition counts as out of date (1.13).
    """
    of = (result.asset_key, result.check_name)
    (spec,) = (spec for spec in context.check_specs if (spec.asset_key, spec.name) == of)
    return dg.AssetCheckEvaluation(
        asset_key=spec.asset_key,
        check_name=spec.name,
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
        blocking=spec.blocking,
        partition=partition_key,
        target_materialization_data=None
        if about is None
        else TargetMaterialization(
            storage_id=about.storage_id, run_id=about.run_id, timestamp=about.timestamp
        ),
    )


def latest_materialization(
    instance: dg.DagsterInstance, key: dg.AssetKey, partition_key: str | None
) -> dg.EventLogRecord | None:
    """The last materialization of an asset, or of one partition of it."""
    partitions = None if partition_key is None else [partition_key]
    wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=partitions)
    records = instance.fetch_materializations(wanted, limit=1).records
    return records[0] if records else None
