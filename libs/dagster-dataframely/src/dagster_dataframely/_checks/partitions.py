"""Report the checks of stored tables for one partition, or for each."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import dagster as dg

from dagster_dataframely import _names
from dagster_dataframely._checks.results import copy_result
from dagster_dataframely._text import count
from dagster_dataframely._upstream.steps import (
    evaluation_of_partition,
    latest_materialization,
    partitions_of_asset,
)
from dagster_dataframely.errors import ColumnSchemaError

CheckYield = dg.AssetCheckResult | dg.AssetCheckEvaluation


def report_partitions(
    context: dg.AssetCheckExecutionContext,
    checks: Sequence[dg.AssetCheckKey],
    evaluate: Callable[[str | None, int], Iterator[dg.AssetCheckResult]],
) -> Iterator[CheckYield]:
    """Report the checks of assets that are partitioned alike.

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
    """The result without its samples, which belong to one partition."""
    kept = (_names.FAILED_COUNT, _names.SEVERITY)
    metadata = {key: result.metadata[key] for key in kept if key in result.metadata}
    return copy_result(result, metadata=metadata)


def _sum_up(check: dg.AssetCheckKey, results: Sequence[dg.AssetCheckResult]) -> dg.AssetCheckResult:
    """One check over all partitions: it passes where it passes in each."""
    failed = [result for result in results if not result.passed]
    metadata: dict[str, Any] = {
        _names.PARTITIONS: len(results),
        _names.FAILED_PARTITIONS: len(failed),
    }
    counts = [result.metadata.get(_names.FAILED_COUNT) for result in results]
    numbers = [value.value or 0 for value in counts if isinstance(value, dg.IntMetadataValue)]
    if len(numbers) == len(counts):
        metadata[_names.FAILED_COUNT] = sum(numbers)
    warn, error = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
    severities = {result.severity for result in failed or results}
    said = [result.metadata.get(_names.SEVERITY) for result in failed or results]
    if worst := [value for value in said if isinstance(value, dg.TextMetadataValue)]:
        metadata[_names.SEVERITY] = min(value.text or "" for value in worst)
    found = f"Fails in {len(failed):,} of " if failed else "Passes in "
    return dg.AssetCheckResult(
        passed=not failed,
        asset_key=check.asset_key,
        check_name=check.name,
        severity=warn if severities == {warn} else error,
        description=f"{found}{count(len(results), 'partition')}",
        metadata=metadata,
    )
