"""Reach what Dagster keeps private about code locations and about loading the values of assets."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg
from dagster._core.definitions.job_definition import (
    default_job_io_manager_with_fs_io_manager_schema,
)
from dagster._core.definitions.reconstruct import repository_def_from_target_def
from dagster._core.errors import DagsterImportError, DagsterInvariantViolationError
from dagster._core.execution.build_resources import get_mapped_resource_config
from dagster._core.execution.resources_init import get_transitive_required_resource_keys
from dagster._core.instance.config import is_dagster_home_set
from dagster._core.log_manager import DagsterLogManager
from dagster._core.storage.db_io_manager import DbIOManager
from dagster._core.workspace.autodiscovery import (
    LOAD_ALL_ASSETS,
    loadable_targets_from_python_file,
    loadable_targets_from_python_module,
)

from dagster_dataframely._upstream.io_managers import written_to
from dagster_dataframely._upstream.loading import build_loading_context, frame_type_of

NOT_LOADABLE = (FileNotFoundError, DagsterImportError, DagsterInvariantViolationError)
"""What `load_code_location` raises where it finds no definitions."""


def load_code_location(*, module: str | None, file: str | None) -> dg.RepositoryDefinition:
    """Load what Dagster's own commands load for the same `-m` or `-f`."""
    here = os.getcwd()
    if module is not None:
        (target, *_) = loadable_targets_from_python_module(module, here)
    else:
        (target, *_) = loadable_targets_from_python_file(file or "", here)
    found: Any = target.target_definition
    if target.attribute == LOAD_ALL_ASSETS:
        found = dg.Definitions(assets=found)
    return cast("dg.RepositoryDefinition", repository_def_from_target_def(found))


@contextmanager
def find_instance() -> Iterator[dg.DagsterInstance]:
    """The instance of `DAGSTER_HOME`, else one that is empty and forgotten afterwards."""
    found = dg.DagsterInstance.get() if is_dagster_home_set() else dg.DagsterInstance.ephemeral()
    with found as instance:
        yield instance


def compute_function(definition: dg.AssetsDefinition) -> Callable[..., Any] | None:
    """The function that Dagster runs for the assets of a definition; none where it is not one op."""
    node = definition.node_def if definition.is_executable else None
    return getattr(getattr(node, "compute_fn", None), "decorated_fn", None)


@dataclass(frozen=True)
class _Bound:
    """An IO manager with what its contexts have."""

    manager: Any
    config: Any
    resources: Any


class QuarantineLoader:
    """Loads quarantines through the IO managers of their tables, lazily where these can."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self._stack = ExitStack()
        self._bound: dict[dg.AssetKey, _Bound] = {}

    def close(self) -> None:
        """Give the resources back."""
        self._stack.close()

    def prepare(
        self, spec: dg.AssetSpec, definition: dg.AssetsDefinition, partition_key: str | None
    ) -> tuple[object, Callable[[], object]]:
        """The IO manager of a quarantine, with a definition's resources, and what loads a partition."""
        if spec.key not in self._bound:
            self._bound[spec.key] = self._bind(spec, definition)
        bound = self._bound[spec.key]
        context = self._input_context(spec, bound, partition_key)
        return bound.manager, lambda: bound.manager.load_input(context)

    def _bind(self, spec: dg.AssetSpec, definition: dg.AssetsDefinition) -> _Bound:
        known = {
            "io_manager": default_job_io_manager_with_fs_io_manager_schema,
            **definition.resource_defs,
        }
        key = spec.metadata.get("dagster/io_manager_key", "io_manager")
        needed = get_transitive_required_resource_keys(known[key].required_resource_keys, known)
        wanted = {name: known[name] for name in {key, *needed}}
        resources = self._stack.enter_context(dg.build_resources(wanted, self.instance))
        config = get_mapped_resource_config({key: known[key]}, {})[key].config
        return _Bound(getattr(resources, key), config, resources)

    def _input_context(
        self, spec: dg.AssetSpec, bound: _Bound, partition_key: str | None
    ) -> dg.InputContext:
        partitions_def = spec.partitions_def
        if isinstance(partitions_def, dg.MultiPartitionsDefinition) and partition_key is not None:
            partition_key = partitions_def.get_partition_key_from_str(partition_key)
        is_database = isinstance(written_to(bound.manager), DbIOManager)
        return build_loading_context(
            spec.key,
            partitions_def,
            partition_key,
            metadata=spec.metadata,
            output={"step_key": "none", "name": spec.key.path[-1]},
            dagster_type=frame_type_of(is_database=is_database),
            log_manager=DagsterLogManager.create(loggers=[]),
            resource_config=bound.config,
            resources=bound.resources,
            instance=self.instance,
        )
