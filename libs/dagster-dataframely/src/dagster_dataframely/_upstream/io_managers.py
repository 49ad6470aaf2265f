"""Reach what Dagster keeps private about IO managers, and ask them to write and load."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dagster as dg
import polars as pl
from dagster._core.execution.context.system import StepExecutionContext
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._core.execution.plan.utils import build_resources_for_manager
from dagster._core.storage.branching.branching_io_manager import BranchingIOManager
from dagster._core.storage.db_io_manager import DbIOManager

from dagster_dataframely._upstream.loading import build_loading_context, frame_type_of

_SUFFIX = "_quarantine"
_OF_PARTITIONS = (
    *("has_partition_key", "partition_key", "has_asset_partitions", "asset_partitions_def"),
    *("asset_partition_key", "asset_partition_keys", "asset_partition_key_range"),
    "asset_partitions_time_window",
)


class _Identified:
    """Notes whether anything was asked that tells one output from another."""

    def __init__(self) -> None:
        self.asked = False


class _QuarantineOutput(dg.OutputContext):
    """The output context of a table, as that of another output with another key.

    Key, step, output and op have other names. Partitions, metadata and type are the table's.
    """

    def __init__(
        self,
        original: dg.OutputContext,
        key: dg.AssetKey,
        config: Mapping[str, object] | None,
        resources: Any,
    ) -> None:
        vars(self).update(vars(original))
        vars(self).update(_resource_config=config, _resources=resources)
        self._original = original
        self._key = key
        self._user_generated_metadata = {}
        self.identified = _Identified()

    @property
    def asset_key(self) -> dg.AssetKey:
        self.identified.asked = True
        return self._key

    @property
    def step_key(self) -> str:
        self.identified.asked = True
        return f"{self._original.step_key}{_SUFFIX}"

    @property
    def name(self) -> str:
        self.identified.asked = True
        return f"{self._original.name}{_SUFFIX}"

    @property
    def op_def(self) -> Any:
        self.identified.asked = True
        op = copy.copy(self._original.op_def)
        vars(op)["_name"] = f"{op.name}{_SUFFIX}"
        return op

    @property
    def asset_spec(self) -> dg.AssetSpec:
        return self._original.asset_spec.replace_attributes(key=self._key)

    def log_event(self, event: dg.AssetMaterialization | dg.AssetObservation) -> None:
        """Drop what the IO manager logs: Dagster would store it for the other key at once (1.13)."""


def _of_the_original(name: str) -> property:
    return property(lambda self: getattr(self._original, name))


# Before 1.13 these look the output up by its name among the step's, where it is not.
for _name in _OF_PARTITIONS:
    setattr(_QuarantineOutput, _name, _of_the_original(_name))


class _QuarantineInput(dg.InputContext):
    """An input context of a quarantine, which notes whether its key is asked for."""

    identified = _Identified()

    @property
    def asset_key(self) -> dg.AssetKey:
        self.identified.asked = True
        return super().asset_key


@dataclass(frozen=True)
class BoundManager:
    """An IO manager that a step uses for one of its assets, and what it is told."""

    step: StepExecutionContext
    manager: Any
    output: dg.OutputContext
    """Of the table, or of its quarantine."""

    @property
    def name(self) -> str:
        """The manager's class."""
        return type(self.manager).__name__

    @property
    def is_lazy(self) -> bool:
        """Whether the Dagster type of the output stands for a `pl.LazyFrame`."""
        return bool(self.output.dagster_type.typing_type is pl.LazyFrame)

    def write(self, frame: pl.DataFrame | pl.LazyFrame) -> Mapping[str, dg.MetadataValue]:
        """Store a frame, without an event; what the manager says about it comes back."""
        # Dagster annotates it as returning nothing, but a manager may be a generator.
        handled: Any = self.manager.handle_output(self.output, frame)
        if inspect.isgenerator(handled):
            for _event in handled:
                pass
        return self.output.consume_logged_metadata()

    def load(self) -> tuple[object, bool]:
        """Load what a write would replace, lazily where that can be; and whether the key was asked for.

        Raises what the manager raises, with the answer to the second as an attribute `identified`.
        """
        identified = _Identified()
        if isinstance(self.output, _QuarantineOutput):
            self.output.identified = identified
        context = self._input_context()
        context.identified = identified
        try:
            return written_to(self.manager).load_input(context), identified.asked
        except Exception as error:
            error.__dict__["identified"] = identified.asked
            raise

    def _input_context(self) -> _QuarantineInput:
        output = self.output
        partitions_def = subset = None
        if output.has_asset_partitions:
            partitions_def = output.asset_partitions_def
            subset = partitions_def.empty_subset().with_partition_keys(output.asset_partition_keys)
        is_database = isinstance(written_to(self.manager), DbIOManager)
        frame_type = pl.DataFrame if is_database else pl.LazyFrame
        key = output._key if isinstance(output, _QuarantineOutput) else output.asset_key
        # The constructor, and not `dg.build_input_context`, which makes an instance of its own (1.13).
        return _QuarantineInput(
            name="stored",
            job_name=self.step.job_name,
            op_def=self.step.op_def,
            upstream_output=output,
            dagster_type=dg.DagsterType(lambda _, _value: True, "stored", typing_type=frame_type),
            log_manager=self.step.log,
            resource_config=output.resource_config,
            resources=output.resources,
            step_context=self.step,
            asset_key=key,
            partition_key=output.partition_key if output.has_partition_key else None,
            asset_partitions_subset=subset,
            asset_partitions_def=partitions_def,
            definition_metadata={"allow_missing_partitions": True},
            instance=self.step.instance,
        )


def written_to(manager: object) -> Any:
    """The manager behind one that branches: it always writes to the branch (1.13)."""
    while isinstance(manager, BranchingIOManager):
        manager = manager.branch_io_manager
    return manager


def bound_manager(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> BoundManager:
    """The IO manager that stores an asset of the running step."""
    step, handle = _output(context, asset_key)
    return BoundManager(step, step.get_io_manager(handle), step.get_output_context(handle))


def quarantine_manager(
    context: dg.AssetExecutionContext,
    asset_key: dg.AssetKey,
    key: dg.AssetKey,
    io_manager_key: str | None,
) -> BoundManager:
    """The IO manager that stores error rows of an asset of the running step, under another key.

    Without `io_manager_key` it is the asset's own. It is told what it is going to be told of the asset,
    but for the names: partition, definition metadata and Dagster type are the same.
    """
    step, handle = _output(context, asset_key)
    original = step.get_output_context(handle)
    config, resources = original.resource_config, original.resources
    manager: Any = step.get_io_manager(handle)
    if io_manager_key is not None:
        manager = getattr(step.resources, io_manager_key)
        config = step.resolved_run_config.resources[io_manager_key].config
        resources = build_resources_for_manager(io_manager_key, step)
    return BoundManager(step, manager, _QuarantineOutput(original, key, config, resources))


def _output(
    context: dg.AssetExecutionContext, asset_key: dg.AssetKey
) -> tuple[StepExecutionContext, StepOutputHandle]:
    step = context.get_step_execution_context()
    assets_def = context.op_execution_context.assets_def
    output_name = assets_def.get_output_name_for_asset_key(asset_key)
    return step, StepOutputHandle(step_key=step.step.key, output_name=output_name)


@contextmanager
def rewriting_manager_metadata(
    context: dg.AssetExecutionContext,
    asset_key: dg.AssetKey,
    rewrite: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Iterator[None]:
    """Pass what the IO manager says about the asset's output through a function, until this ends.

    Dagster asks the step for the output's context, and stores what the manager tells it in the
    materialization and in the event that the output was handled (1.13). In the latter, nothing that the
    asset's own context is told would replace it.
    """
    step, handle = _output(context, asset_key)
    original = step.get_output_context

    def get_output_context(*args: Any, **kwargs: Any) -> dg.OutputContext:
        output_context = original(*args, **kwargs)
        if handle in (*args, *kwargs.values()):
            add = output_context.add_output_metadata
            vars(output_context)["add_output_metadata"] = lambda metadata: add(rewrite(metadata))
        return output_context

    vars(step)["get_output_context"] = get_output_context
    try:
        yield
    finally:
        del vars(step)["get_output_context"]


def load_through_bound_manager(
    context: dg.AssetCheckExecutionContext, key: dg.AssetKey, partition_key: str | None
) -> object:
    """Load an asset that the running check depends on, or one partition of it.

    A step has the IO managers of the assets it depends on among its resources, so this is the one
    that the asset is bound to. It is asked for a lazy frame; a database manager, which has no handler
    for one (0.29.27), for a frame in memory.
    """
    step = context.get_step_execution_context()
    layer = step.job_def.asset_layer
    # A check may depend on an asset that the code location does not know.
    asset = layer.get(key) if layer.has(key) else None
    manager_key = "io_manager" if asset is None else asset.io_manager_key
    manager = getattr(step.resources, manager_key)
    source_step, source_output = _source(step, key)
    input_context = build_loading_context(
        key,
        None if asset is None else asset.partitions_def,
        partition_key,
        metadata={} if asset is None else asset.metadata,
        output={"step_key": source_step, "name": source_output, "run_id": step.run_id},
        job_name=step.job_name,
        op_def=step.op_def,
        dagster_type=frame_type_of(is_database=isinstance(manager, DbIOManager)),
        log_manager=step.log,
        resource_config=step.resolved_run_config.resources[manager_key].config,
        resources=build_resources_for_manager(manager_key, step),
        instance=context.instance,
    )
    loaded: object = manager.load_input(input_context)
    return loaded


def _source(step: StepExecutionContext, key: dg.AssetKey) -> tuple[str, str]:
    """The step and the output that an asset comes from, where this run makes it.

    Dagster's in-memory manager asks for them.
    """
    layer = step.job_def.asset_layer
    handles = [
        handle
        for step_input in step.step.step_inputs
        if layer.get_asset_key_for_node_input(step.node_handle, step_input.name) == key
        for handle in step_input.get_step_output_handle_dependencies()
    ]
    return (handles[0].step_key, handles[0].output_name) if handles else ("none", key.path[-1])
