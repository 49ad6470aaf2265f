"""Stored tables, read back through the IO managers that their assets are bound to."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypedDict, cast

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._rules import SchemaRules
from dagster_dataframely._upstream import (
    evaluation_of_partition,
    latest_materialization,
    load_through_bound_manager,
    partitions_of_asset,
)
from dagster_dataframely.errors import (
    AssetReadError,
    ColumnSchemaError,
    InvalidArgumentError,
    type_name,
)

Frame = pl.DataFrame | pl.LazyFrame
CheckYield = dg.AssetCheckResult | dg.AssetCheckEvaluation

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


def cast_stored(frame: Frame, rules: SchemaRules) -> Frame:
    """A stored table with the dtypes of its schema, where Polars casts the ones it has.

    What Polars says of a value that it cannot cast shows it, so redacted columns are cast before.
    """
    found = frame.collect_schema()
    if not rules.is_castable(found):
        return frame
    hidden = [m.column for m in rules.mismatches(found) if m.column in rules.redacted]
    frame = frame.with_columns(_cast_unseen(rules.columns[name].dtype, name) for name in hidden)
    return rules.schema.cast(frame)


def _cast_unseen(dtype: pl.DataType, name: str) -> pl.Expr:
    def cast(batch: pl.Series) -> pl.Series:
        with suppress(pl.exceptions.PolarsError):
            return batch.cast(dtype)
        # Not within the `except` of the other error, which would be stored with this one.
        message = f"conversion to {dtype.base_type()} failed in column {name!r}, which is redacted"
        raise pl.exceptions.InvalidOperationError(message)

    return pl.col(name).map_batches(cast, return_dtype=dtype, is_elementwise=True)


def report(
    context: dg.AssetCheckExecutionContext,
    checks: Sequence[dg.AssetCheckKey],
    evaluate: Callable[[str | None, int], Iterator[dg.AssetCheckResult]],
) -> Iterator[CheckYield]:
    """What a run says of assets that are partitioned alike.

    `evaluate` gives the results of these checks for a partition, or for the whole tables, and takes the
    number of partitions that share the byte budget. A run with a partition is about that one. Any other
    is about every materialized partition, or those in its range, and sums each check up; a partition
    with other columns does not hide the next.
    """
    keys = list(dict.fromkeys(check.asset_key for check in checks))
    if not keys:
        return
    if partitions_of_asset(context, keys[0]) is None:
        yield from evaluate(None, 1)
        return
    if context.has_partition_key:
        yield from evaluate(context.partition_key, 1)
        return
    found: dict[dg.AssetCheckKey, list[dg.AssetCheckResult]] = {check: [] for check in checks}
    latest = functools.cache(functools.partial(latest_materialization, context.instance))
    error: ColumnSchemaError | None = None
    key_range = context.partition_key_range if context.has_partition_key_range else None
    partitions = materialized_partitions(context, keys, key_range)
    for partition_key in partitions:
        try:
            for result in evaluate(partition_key, len(partitions)):
                check = key_of(result)
                found[check].append(_without_rows(result))
                about = latest(check.asset_key, partition_key)
                yield evaluation_of_partition(context, result, partition_key, about)
        except ColumnSchemaError as another:
            error = error or another
    if error is not None:
        raise error
    if key_range is None:
        # Dagster plans one evaluation of the whole in a run without partitions (1.13).
        for check, results in found.items():
            yield evaluation_of_partition(context, _sum_up(check, results), None)


def materialized_partitions(
    context: dg.AssetCheckExecutionContext,
    keys: Sequence[dg.AssetKey],
    key_range: dg.PartitionKeyRange | None = None,
) -> list[str]:
    """The partitions, of a range or of all, in which any of these assets is materialized.

    The assets are partitioned alike; the order is that of their partitions' definition.
    """
    partitions_def = cast("dg.PartitionsDefinition[Any]", partitions_of_asset(context, keys[0]))
    with dg.partition_loading_context(dynamic_partitions_store=context.instance):
        if key_range is not None:
            partitions = partitions_def.get_partition_keys_in_range(key_range)
        else:
            partitions = partitions_def.get_partition_keys()
    there = set().union(*map(context.instance.get_materialized_partitions, keys))
    return [partition for partition in partitions if partition in there]


def selected_checks(context: dg.AssetCheckExecutionContext) -> list[dg.AssetCheckKey]:
    """The checks of the running definition that the run asks for, in the order of their specs."""
    selected = context.selected_asset_check_keys
    return [spec.key for spec in context.check_specs if spec.key in selected]


def key_of(result: dg.AssetCheckResult) -> dg.AssetCheckKey:
    """The key of the check that a complete result is of."""
    return dg.AssetCheckKey(cast("dg.AssetKey", result.asset_key), result.check_name or "")


def _without_rows(result: dg.AssetCheckResult) -> dg.AssetCheckResult:
    """What is added up, without the samples, which belong to a partition."""
    count = result.metadata.get(_names.FAILED_COUNT)
    return result._replace(metadata={} if count is None else {_names.FAILED_COUNT: count})


def _sum_up(check: dg.AssetCheckKey, results: Sequence[dg.AssetCheckResult]) -> dg.AssetCheckResult:
    """One check over all partitions: it passes where it passes in each."""
    failed = [result for result in results if not result.passed]
    metadata: dict[str, int] = {
        _names.PARTITIONS: len(results),
        _names.FAILED_PARTITIONS: len(failed),
    }
    counts = [result.metadata.get(_names.FAILED_COUNT) for result in results]
    if all(isinstance(count, dg.IntMetadataValue) for count in counts):
        metadata[_names.FAILED_COUNT] = sum(
            count.value or 0 for count in counts if isinstance(count, dg.IntMetadataValue)
        )
    warn, error = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
    severities = {result.severity for result in failed or results}
    return dg.AssetCheckResult(
        passed=not failed,
        asset_key=check.asset_key,
        check_name=check.name,
        severity=warn if severities == {warn} else error,
        metadata=metadata,
    )
