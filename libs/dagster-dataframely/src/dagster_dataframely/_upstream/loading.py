"""Build the context that an IO manager loads a stored table with, where Dagster does not."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl


class _StoredOutput(dg.OutputContext):
    """Knows its partitions without a step, which Dagster asks for them before 1.13."""

    partitions_def: dg.PartitionsDefinition[Any] | None = None

    @property
    def asset_partitions_def(self) -> dg.PartitionsDefinition[Any]:
        return self.partitions_def or super().asset_partitions_def


def build_loading_context(
    key: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    partition_key: str | None,
    *,
    metadata: Mapping[str, Any],
    output: Mapping[str, Any],
    **given: Any,
) -> dg.InputContext:
    """The context of an input that is a table, or one partition of it.

    `metadata` is that of the asset's definition, `output` what only the context of the table's output
    has, and `given` what only that of the input has; Dagster's constructors, and not its functions,
    which take 0.25 s and make an instance (1.13), take both.
    """
    subset = None
    if partitions_def is not None and partition_key is not None:
        subset = partitions_def.empty_subset().with_partition_keys([partition_key])
    shared = {name: given[name] for name in ("resource_config", "resources")}
    upstream_output = _StoredOutput(
        asset_key=key,
        partition_key=partition_key,
        definition_metadata=metadata,
        **shared,
        **output,
    )
    upstream_output.partitions_def = partitions_def
    return dg.InputContext(
        name="stored",
        upstream_output=upstream_output,
        asset_key=key,
        partition_key=partition_key,
        asset_partitions_subset=subset,
        asset_partitions_def=partitions_def,
        **given,
    )


def frame_type_of(*, is_database: bool) -> dg.DagsterType:
    """A lazy frame, which a database's manager has no handler for (dagster-duckdb-polars 0.29.27)."""
    typing_type = pl.DataFrame if is_database else pl.LazyFrame
    return dg.DagsterType(lambda _, _value: True, "stored", typing_type=typing_type)
