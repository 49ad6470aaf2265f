"""The function that Dagster runs in place of the user's, in a step or in a direct invocation."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import dagster as dg

from dagster_dataframely._declaration import AssetYield, Surroundings
from dagster_dataframely._handover import refuse_declared
from dagster_dataframely._rules import SchemaRules
from dagster_dataframely._upstream import (
    current_step,
    get_type_hints,
    has_context,
    is_partitioned,
    keys_by_output,
)
from dagster_dataframely._writers import delegating_writer, direct_call

Function = Callable[..., Any]
TurnIntoEvents = Callable[[object], Iterator[AssetYield]]
Prepare = Callable[[dg.AssetExecutionContext | None, Any], TurnIntoEvents]
"""Takes the step, or `None` and the context of a direct invocation, before the user's function runs."""


def build_compute(function: Function, prepare: Prepare, *, needs_context: bool) -> Function:
    """The user's function, then the events that follow from what it returns.

    Where it is needed and the function does not take it, a leading `context` is added.
    """
    adds_context = needs_context and not has_context(function)
    takes_context = adds_context or has_context(function)

    def begin(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], TurnIntoEvents]:
        events = prepare(current_step(compute), args[0] if takes_context else None)
        return args[1:] if adds_context else args, events

    compute: Function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def compute_async(*args: Any, **kwargs: Any) -> AsyncIterator[AssetYield]:
            args, events = begin(args)
            for event in events(await function(*args, **kwargs)):
                yield event

        compute = compute_async
    else:

        @functools.wraps(function)
        def compute_sync(*args: Any, **kwargs: Any) -> Iterator[AssetYield]:
            args, events = begin(args)
            yield from events(function(*args, **kwargs))

        compute = compute_sync
    # What is returned decides, not the annotation, and Dagster would read it on a coroutine.
    compute.__annotations__ = {k: v for k, v in compute.__annotations__.items() if k != "return"}
    if adds_context:
        setattr(compute, "__signature__", _with_context(function))  # noqa: B010 - `Callable` has none.
    return compute


def _with_context(function: Function) -> inspect.Signature:
    """The function's signature with a leading `context`.

    Dagster resolves the strings in an explicit signature in this module's namespace (1.13), so the
    annotations are resolved here, in the function's.
    """
    hints = get_type_hints(function)
    signature = inspect.signature(function)
    config = signature.parameters.get("config")
    if config is not None and isinstance(config.annotation, str):
        # Dagster does not resolve the one of `config` (1.13). Resolved here it would work for this
        # asset and for no other, so Dagster gets to refuse the function as it is.
        dg.op(function)
    parameters = [
        parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature.replace(
        parameters=[context, *parameters], return_annotation=inspect.Signature.empty
    )


def current_keys_by_output(step: dg.AssetExecutionContext | None) -> Mapping[str, dg.AssetKey]:
    """The keys now of a definition's assets, as far as a step or a direct invocation tells.

    Dagster can give assets other keys after they are made (`load_assets_from_modules`).
    """
    if step is not None:
        return keys_by_output(step)
    call = direct_call.get()
    return {} if call is None else call.keys


def surroundings_of_step(
    step: dg.AssetExecutionContext, asset_key: dg.AssetKey, rules: SchemaRules, *, quarantine: bool
) -> Surroundings:
    """What a run brings for one of the assets of its step; what cannot work raises here."""
    refuse_declared(step, asset_key, rules)
    writer = delegating_writer(step, asset_key) if quarantine else None
    partition_key = None
    if step.has_partition_key and is_partitioned(step, asset_key):
        partition_key = step.partition_key
    return Surroundings.of_step(step, asset_key, writer, partition_key)


def partition_of_call(
    context: Any, partitions_def: dg.PartitionsDefinition[Any] | None
) -> str | None:
    """The partition of a direct invocation: a plain function call, with or without a context."""
    call = direct_call.get()
    partition_key = None if call is None else call.partition_key
    if context is not None and context.has_partition_key:
        partition_key = context.partition_key
    if isinstance(partitions_def, dg.MultiPartitionsDefinition) and partition_key is not None:
        partition_key = partitions_def.get_partition_key_from_str(partition_key)
    return partition_key
