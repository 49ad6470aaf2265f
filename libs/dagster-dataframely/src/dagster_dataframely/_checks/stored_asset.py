"""Read stored tables back through the IO managers their assets are bound to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import dagster as dg
import polars as pl

from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._text import type_name
from dagster_dataframely._typing import Frame
from dagster_dataframely._upstream.io_managers import load_through_bound_manager
from dagster_dataframely._upstream.steps import partitions_of_asset
from dagster_dataframely.errors import AssetReadError, InvalidArgumentError

CheckableAsset = dg.AssetsDefinition | dg.AssetSpec | CoercibleToAssetKey
"""An asset whose table is stored somewhere, whoever makes it."""


class CheckArguments(TypedDict, total=False):
    """What checks of stored assets pass on to Dagster."""

    name: str | None
    """Of the op that runs them."""
    automation_condition: dg.AutomationCondition[Any] | None
    op_tags: Mapping[str, Any] | None
    pool: str | None
    retry_policy: dg.RetryPolicy | None


@dataclass(frozen=True)
class StoredAsset:
    """What the checks of an asset need to know of it when they are defined."""

    key: dg.AssetKey
    partitions_def: dg.PartitionsDefinition[Any] | None
    check_names: frozenset[str] = frozenset()
    """The checks that the definition itself has."""


def describe_stored(
    asset: CheckableAsset, partitions_def: dg.PartitionsDefinition[Any] | None = None
) -> StoredAsset:
    """A definition or a spec brings its partitions; a key does not."""
    if not isinstance(asset, (dg.AssetsDefinition, dg.AssetSpec)):
        return StoredAsset(dg.AssetKey.from_coercible(asset), partitions_def)
    if partitions_def is not None:
        reason = "it goes with a key; a definition or a spec brings its own."
        raise InvalidArgumentError("partitions_def", reason)
    if isinstance(asset, dg.AssetSpec):
        return StoredAsset(asset.key, asset.partitions_def)
    keys = list(asset.keys)
    if len(keys) != 1:
        reason = f"it defines {len(keys)} assets. Give the key of one of them."
        raise InvalidArgumentError("asset", reason)
    names = frozenset(spec.name for spec in asset.check_specs)
    return StoredAsset(asset.key, asset.partitions_def, names)


def read_stored(
    context: dg.AssetCheckExecutionContext, key: dg.AssetKey, partition_key: str | None
) -> Frame:
    """A table, or one partition of it: lazy wherever its IO manager can.

    Raises:
        AssetReadError: The IO manager gives something other than a Polars frame.
    """
    partitions_def = partitions_of_asset(context, key)
    if isinstance(partitions_def, dg.MultiPartitionsDefinition) and partition_key is not None:
        partition_key = partitions_def.get_partition_key_from_str(partition_key)
    loaded = load_through_bound_manager(context, key, partition_key)
    if not isinstance(loaded, (pl.DataFrame, pl.LazyFrame)):
        raise AssetReadError(key.to_user_string(), type_name(loaded))
    return loaded
