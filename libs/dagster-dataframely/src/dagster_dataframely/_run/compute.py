"""Wrap the user's function into the one that Dagster runs."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import dagster as dg

from dagster_dataframely._run.events import AssetYield
from dagster_dataframely._schema.cast import redacting
from dagster_dataframely._schema.declaration import Declared, declare_in
from dagster_dataframely._upstream.steps import current_step, get_type_hints, has_context

Function = Callable[..., Any]


TurnIntoEvents = Callable[[object], Iterator[AssetYield]]


Prepare = Callable[[dg.AssetExecutionContext | None, Any], TurnIntoEvents]
"""Takes the step, or `None` and the context of a direct invocation, before the user's function runs."""


def build_compute(
    function: Function, prepare: Prepare, declared: Declared, *, redact: frozenset[str]
) -> Function:
    """The user's function, then the events that follow from what it returns.

    A quarantine needs a leading `context`, which is added where the function takes none. Casts in the
    function show no value of the columns in `redact`.
    """
    adds_context = declared.has_quarantine and not has_context(function)

    def begin(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], TurnIntoEvents]:
        takes_context = adds_context or has_context(function)
        events = prepare(current_step(compute), args[0] if takes_context else None)
        return args[1:] if adds_context else args, events

    compute: Function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def compute_async(*args: Any, **kwargs: Any) -> AsyncIterator[AssetYield]:
            args, events = begin(args)
            with redacting(redact):
                returned = await function(*args, **kwargs)
            for event in events(returned):
                yield event

        compute = compute_async
    else:

        @functools.wraps(function)
        def compute_sync(*args: Any, **kwargs: Any) -> Iterator[AssetYield]:
            args, events = begin(args)
            with redacting(redact):
                returned = function(*args, **kwargs)
            yield from events(returned)

        compute = compute_sync
    declare_in(compute, declared)
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
