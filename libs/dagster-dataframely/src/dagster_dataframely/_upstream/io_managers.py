"""Reach what Dagster keeps private about IO managers."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import dagster as dg
import polars as pl
from dagster._core.execution.context.system import StepExecutionContext
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._core.execution.plan.utils import build_resources_for_manager
from dagster._core.storage.db_io_manager import DbIOManager
from dagster._core.storage.fs_io_manager import PickledObjectFilesystemIOManager
from dagster._core.storage.upath_io_manager import UPathIOManager


class _UnderAnotherKey(dg.OutputContext):
    """An output context that names another asset and is the original's in all else."""

    def __init__(self, original: dg.OutputContext, key: dg.AssetKey) -> None:
        vars(self).update(vars(original))
        self._original = original
        self._key = key

    @property
    def asset_key(self) -> dg.AssetKey:
        return self._key

    def log_event(self, event: dg.AssetMaterialization | dg.AssetObservation) -> None:
        """Drop what the IO manager logs: Dagster would store it for the other key at once (1.13)."""

    # Before 1.13 the next two look the key up among the job's assets, where it need not be.
    @property
    def asset_partitions_def(self) -> dg.PartitionsDefinition[Any]:
        return self._original.asset_partitions_def

    @property
    def asset_spec(self) -> dg.AssetSpec:
        return self._original.asset_spec.replace_attributes(key=self._key)


def _output(
    context: dg.AssetExecutionContext, asset_key: dg.AssetKey
) -> tuple[StepExecutionContext, StepOutputHandle]:
    step = context.get_step_execution_context()
    assets_def = context.op_execution_context.assets_def
    output_name = assets_def.get_output_name_for_asset_key(asset_key)
    return step, StepOutputHandle(step_key=step.step.key, output_name=output_name)


def output_is_lazy(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> bool:
    """Whether the Dagster type of the asset's output stands for a `pl.LazyFrame`."""
    step, handle = _output(context, asset_key)
    return bool(step.get_output_context(handle).dagster_type.typing_type is pl.LazyFrame)


def bound_manager_kind(
    context: dg.AssetExecutionContext, asset_key: dg.AssetKey
) -> Literal["duckdb", "database", "keeps the object", "other"]:
    """What the manager of the asset does with an object, as far as Dagster's own classes tell."""
    step, handle = _output(context, asset_key)
    return _manager_kind(step.get_io_manager(handle))


_STORAGES: Mapping[str, Literal["DuckDB", "Delta Lake", "Parquet"]] = {
    "dagster_duckdb_polars.duckdb_polars_type_handler.DuckDBPolarsTypeHandler.handle_output": "DuckDB",
    "dagster_polars.io_managers.delta.PolarsDeltaIOManager.write_df_to_path": "Delta Lake",
    "dagster_polars.io_managers.parquet.PolarsParquetIOManager.write_df_to_path": "Parquet",
}


def bound_storage(
    context: dg.AssetExecutionContext, asset_key: dg.AssetKey
) -> Literal["DuckDB", "Delta Lake", "Parquet"] | None:
    """What the manager of the asset writes to, where a released one's own code does the writing.

    The method tells and not the class: a subclass that writes in another way knows what it does.
    """
    step, handle = _output(context, asset_key)
    manager: Any = step.get_io_manager(handle)
    if isinstance(manager, DbIOManager):
        handler = manager._handlers_by_type.get(pl.DataFrame)
        write = getattr(type(handler), "handle_output", None)
    else:
        write = getattr(type(manager), "write_df_to_path", None)
    if write is None:
        return None
    return _STORAGES.get(f"{write.__module__}.{write.__qualname__}")


def _manager_kind(manager: object) -> Literal["duckdb", "database", "keeps the object", "other"]:
    if isinstance(manager, DbIOManager):
        clients = type(manager._db_client).__mro__
        return "duckdb" if "DuckDbClient" in {kind.__name__ for kind in clients} else "database"
    keeps = isinstance(manager, (dg.InMemoryIOManager, PickledObjectFilesystemIOManager))
    return "keeps the object" if keeps else "other"


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


def write_through_bound_manager(
    context: dg.AssetExecutionContext,
    asset_key: dg.AssetKey,
    key: dg.AssetKey,
    frame: pl.DataFrame | pl.LazyFrame,
) -> Mapping[str, dg.MetadataValue]:
    """Store a frame under another key through the IO manager an asset of the step is bound to.

    The manager gets the output context it is going to get for the asset itself, with another key:
    same partition, definition metadata, resource config and Dagster type. No event is recorded for
    the other key. What the manager says about the output comes back.
    """
    step, handle = _output(context, asset_key)
    output_context = _UnderAnotherKey(step.get_output_context(handle), key)
    # Dagster annotates it as returning nothing, but a manager may be a generator.
    handled: Any = step.get_io_manager(handle).handle_output(output_context, frame)
    if inspect.isgenerator(handled):
        for _event in handled:
            pass
    return output_context.consume_logged_metadata()


class StoredOutput(NamedTuple):
    """What an IO manager holds under a key, as far as it can be told without loading it all."""

    has_rows: bool = True
    columns: Sequence[str] = ()
    """In the order they are stored, where the storage keeps them when rows are replaced."""


def stored_output(
    context: dg.AssetExecutionContext, asset_key: dg.AssetKey, key: dg.AssetKey
) -> StoredOutput | None:
    """What the IO manager of an asset of the step holds under another key, or `None` for nothing.

    There is no public question for it: a database is asked for one row, a file manager for its path,
    and any other manager to load what is there; one that cannot has nothing.
    """
    step, handle = _output(context, asset_key)
    output_context = _UnderAnotherKey(step.get_output_context(handle), key)
    manager: Any = step.get_io_manager(handle)
    if isinstance(manager, DbIOManager):
        return _stored_in_database(manager, output_context)
    if isinstance(manager, UPathIOManager):
        paths = (
            manager._get_paths_for_partitions(output_context).values()
            if output_context.has_asset_partitions
            else [manager._get_path(output_context)]
        )
        return StoredOutput() if any(map(manager.path_exists, paths)) else None
    try:
        loaded = manager.load_input(_input_context(step, output_context))
        rows = loaded.lazy().head(1).collect()
    except Exception:
        return None
    return StoredOutput(has_rows=rows.height > 0)


def _stored_in_database(manager: Any, context: dg.OutputContext) -> StoredOutput | None:
    client = manager._db_client
    table_slice = manager._get_table_slice(context, context)
    with client.connect(context, table_slice) as connection:
        try:
            found = connection.execute(f"{client.get_select_statement(table_slice)} LIMIT 1")
            columns = [column[0] for column in found.description]
            return StoredOutput(has_rows=found.fetchone() is not None, columns=columns)
        except Exception:
            # There is no table yet, or the connection is not one of DuckDB's kind.
            return None


def _input_context(step: StepExecutionContext, output_context: _UnderAnotherKey) -> dg.InputContext:
    partitions_def = subset = None
    if output_context.has_asset_partitions:
        partitions_def = output_context.asset_partitions_def
        keys = output_context.asset_partition_keys
        subset = partitions_def.empty_subset().with_partition_keys(keys)
    # The constructor, and not `dg.build_input_context`, which makes an instance of its own (1.13).
    return dg.InputContext(
        name="stored",
        job_name=step.job_name,
        op_def=step.op_def,
        upstream_output=output_context,
        dagster_type=output_context.dagster_type,
        log_manager=step.log,
        resource_config=output_context.resource_config,
        resources=output_context.resources,
        step_context=step,
        asset_key=output_context.asset_key,
        asset_partitions_subset=subset,
        asset_partitions_def=partitions_def,
        instance=step.instance,
    )


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
    partitions_def = None if asset is None else asset.partitions_def
    manager = getattr(step.resources, manager_key)
    is_database = isinstance(manager, DbIOManager)
    frame_type = pl.DataFrame if is_database else pl.LazyFrame
    config = step.resolved_run_config.resources[manager_key].config
    source_step, source_output = _source(step, key)
    subset = None
    if partitions_def is not None and partition_key is not None:
        subset = partitions_def.empty_subset().with_partition_keys([partition_key])
    resources = build_resources_for_manager(manager_key, step)
    # The constructors, and not `dg.build_output_context`, which makes an instance of its own (1.13).
    upstream_output = dg.OutputContext(
        step_key=source_step,
        name=source_output,
        run_id=step.run_id,
        asset_key=key,
        partition_key=partition_key,
        definition_metadata={} if asset is None else asset.metadata,
        resource_config=config,
        resources=resources,
    )
    input_context = dg.InputContext(
        name="stored",
        job_name=step.job_name,
        op_def=step.op_def,
        upstream_output=upstream_output,
        dagster_type=dg.DagsterType(lambda _, _value: True, "stored", typing_type=frame_type),
        log_manager=step.log,
        resource_config=config,
        resources=resources,
        asset_key=key,
        partition_key=partition_key,
        asset_partitions_subset=subset,
        asset_partitions_def=partitions_def,
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
