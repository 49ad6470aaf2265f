"""Call an asset in a unit test: no run, no IO manager, no instance, no directory."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import dagster as dg
import polars as pl

from dagster_dataframely._run.direct_invocation import DirectCall, direct_call
from dagster_dataframely._run.events import AssetYield
from dagster_dataframely.errors import InvalidArgumentError

__all__ = ["Invocation", "invoke", "invoke_collection"]


@dataclass
class Invocation:
    """What one direct invocation of an asset gave."""

    table: pl.DataFrame | None = None
    """The rows that would be written, or `None` where the asset skipped."""
    quarantine: pl.DataFrame | None = None
    """The error rows with their rule columns, or `None` where there are none."""
    checks: dict[str, dg.AssetCheckResult] = field(default_factory=dict)
    """The check results by name."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The metadata of the materialization."""

    @property
    def failed(self) -> list[str]:
        """The names of the checks that did not pass."""
        return [name for name, check in self.checks.items() if not check.passed]


def invoke(
    asset: dg.AssetsDefinition,
    *args: Any,
    partition_key: str | None = None,
    partition_keys: Sequence[str] | None = None,
    resources: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Invocation:
    """Call an asset that `dd.asset` made, and collect what comes of it.

    A direct invocation: the function runs with the inputs given and the rules are evaluated, but
    nothing is stored. The context is built here; error rows come back instead of being written. An
    `async def` is awaited, in a thread of its own where an event loop runs already, as in a notebook.

    Args:
        asset: The asset's definition.
        *args: The function's inputs, by position.
        partition_key: The partition the call is for; on a grid a `dg.MultiPartitionKey` or its text
            (`2026-01|EWR`). `None` for an unpartitioned asset.
        partition_keys: The partitions of a range, in order, as of one run over a range. The rows of
            all are evaluated together.
        resources: Resources the function asks for, by name.
        **kwargs: The function's inputs, and `config`, by name.

    Returns:
        The table, the quarantine, the checks and the metadata.

    Raises:
        ColumnSchemaError: The frame lacks a declared column or has another dtype.
        ValidationAbortError: Rows fail error rules and the asset has no quarantine.
        NothingSurvivedError: Every row failed an error rule.
        InvalidArgumentError: `partition_keys` are not partitions that follow each other, or are given
            beside `partition_key`.

    Example:
        ```python
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)
            amount = dy.Float64(min=0.0)


        @dd.asset(Orders, quarantine=True)
        def orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
            return raw_orders


        result = dd.testing.invoke(orders, pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]}))
        print(result.table["id"].to_list(), result.failed)
        #> [1] ['dy_rule__amount__min']
        ```
    """
    context = _build_context(asset, partition_key, partition_keys, resources)
    (result,) = _invoke(asset, args, kwargs, context).values()
    return result


def invoke_collection(
    asset: dg.AssetsDefinition,
    *args: Any,
    partition_key: str | None = None,
    partition_keys: Sequence[str] | None = None,
    resources: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Invocation]:
    """Call an asset that `dd.collection_asset` made, and collect what comes of each member.

    A direct invocation, as by `invoke`.

    Args:
        asset: The definition of the members' assets.
        *args: The function's inputs, by position.
        partition_key: The partition the call is for. `None` for unpartitioned assets.
        partition_keys: The partitions of a range, in order.
        resources: Resources the function asks for, by name.
        **kwargs: The function's inputs, and `config`, by name.

    Returns:
        The table, the quarantine, the checks and the metadata, by member.

    Raises:
        ColumnSchemaError: A frame lacks a declared column or has another dtype.
        ValidationAbortError: Rows are error rows and there is no quarantine.
        NothingSurvivedError: Every row of a member is an error row.

    Example:
        ```python
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Order(dy.Schema):
            order_id = dy.Int64(primary_key=True)


        class Shop(dy.Collection):
            paid: dy.LazyFrame[Order]
            sent: dy.LazyFrame[Order]

            @dy.filter()
            def both(self) -> pl.LazyFrame:
                return self.paid.join(self.sent, on="order_id", how="semi")


        @dd.collection_asset(Shop, quarantine=True)
        def shop():
            return {
                "paid": pl.DataFrame({"order_id": [1, 2]}),
                "sent": pl.DataFrame({"order_id": [2]}),
            }


        result = dd.testing.invoke_collection(shop)
        print(result["paid"].table["order_id"].to_list(), result["paid"].failed)
        #> [2] ['dy_filter__both']
        ```
    """
    context = _build_context(asset, partition_key, partition_keys, resources)
    by_key = _invoke(asset, args, kwargs, context)
    return {name: by_key[key] for name, key in asset.keys_by_output_name.items()}


def _build_context(
    asset: dg.AssetsDefinition,
    partition_key: str | None,
    partition_keys: Sequence[str] | None,
    resources: Mapping[str, Any] | None,
) -> dg.AssetExecutionContext:
    partitions_def = asset.partitions_def
    if isinstance(partitions_def, dg.MultiPartitionsDefinition) and partition_key is not None:
        partition_key = partitions_def.get_partition_key_from_str(partition_key)
    key_range = None
    if partition_keys is not None:
        key_range = _find_range(partitions_def, partition_keys, given=partition_key is not None)
    return dg.build_asset_context(
        partition_key=partition_key,
        partition_key_range=key_range,
        resources=dict(resources) if resources else None,
    )


def _find_range(
    partitions_def: dg.PartitionsDefinition[Any] | None, keys: Sequence[str], *, given: bool
) -> dg.PartitionKeyRange:
    if given:
        raise InvalidArgumentError("partition_keys", "`partition_key` is given, too.")
    known = [] if partitions_def is None else partitions_def.get_partition_keys()
    first = known.index(keys[0]) if keys and keys[0] in known else len(known)
    if not keys or [*keys] != [*known[first : first + len(keys)]]:
        reason = "they are not partitions of the asset that follow each other."
        raise InvalidArgumentError("partition_keys", reason)
    return dg.PartitionKeyRange(keys[0], keys[-1])


def _invoke(
    asset: dg.AssetsDefinition,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    context: dg.AssetExecutionContext,
) -> dict[dg.AssetKey, Invocation]:
    results = {key: Invocation() for key in asset.keys}

    def capture(key: dg.AssetKey, frame: pl.DataFrame) -> None:
        results[key].quarantine = frame

    partition_key = context.partition_key if context.has_partition_key else None
    token = direct_call.set(DirectCall(asset.keys_by_output_name, partition_key, capture))
    try:
        for event in _events(asset(context, *args, **kwargs)):
            result = results[cast("dg.AssetKey", event.asset_key)]
            if isinstance(event, dg.AssetCheckResult):
                result.checks[event.check_name or ""] = event
            else:
                result.table = event.value
                result.metadata = event.metadata or {}
    finally:
        direct_call.reset(token)
    return results


def _events(yielded: Any) -> Iterable[AssetYield]:
    """The events of a call; those of an `async def` are awaited in a loop of their own."""
    if not isinstance(yielded, AsyncIterator):
        events: Iterable[AssetYield] = yielded
        return events

    async def collect() -> list[AssetYield]:
        return [event async for event in yielded]

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(collect())
    # A thread has one running loop only, which may be that of a notebook.
    with ThreadPoolExecutor(max_workers=1) as thread:
        context = contextvars.copy_context()
        return thread.submit(context.run, asyncio.run, collect()).result()
