"""Turn `dy.DataFrame[S]` and `dy.LazyFrame[S]` annotations into Dagster types."""

import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import dagster as dg
import dataframely as dy
import polars as pl

from dagster_dataframely._schema.cast import cast_advice
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._settings import Settings
from dagster_dataframely._text import printable
from dagster_dataframely._upstream.steps import get_type_hints
from dagster_dataframely.errors import ColumnMismatch, InvalidArgumentError

_FRAMES: Mapping[object, type[pl.DataFrame | pl.LazyFrame]] = {
    dy.DataFrame: pl.DataFrame,
    dy.LazyFrame: pl.LazyFrame,
}


def dagster_type(
    schema: type[dy.Schema], *, lazy: bool = False, partitions: Literal["one", "any"] = "one"
) -> dg.DagsterType:
    """The Dagster type of an input that must have a schema's columns and dtypes.

    Runs at definition, for `dg.AssetIn(dagster_type=...)` on any asset; a parameter of a `dd.asset`
    annotated `dy.DataFrame[S]` or `dy.LazyFrame[S]` gets it by itself. In a run the input is loaded as
    a Polars frame and its columns and dtypes are compared with the schema before the body starts. No
    row is looked at and a lazy frame is not collected; columns that the schema does not declare stay.

    Args:
        schema: The schema the input must have.
        lazy: Load a `pl.LazyFrame` rather than a `pl.DataFrame`, where the IO manager can.
        partitions: `"one"` is a frame. `"any"` is what managers of files give for any number of
            partitions: a frame for one, a dictionary of frames by partition for several, as in one run
            over a range, and `None` for one that was skipped, where the input's metadata has
            `allow_missing_partitions`. A database's manager gives one frame, and has no handler for
            `"any"` (dagster-duckdb-polars 0.29.27).

    Returns:
        A type whose check fails the step, with `DagsterTypeCheckDidNotPass`, on a missing column or
        another dtype.

    Raises:
        InvalidArgumentError: `partitions` is neither `"one"` nor `"any"`.

    Example:
        ```python
        import dagster as dg
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)


        @dg.asset(ins={"orders": dg.AssetIn(dagster_type=dd.dagster_type(Orders))})
        def order_count(orders) -> int:
            return orders.height
        ```
    """
    frame_type = pl.LazyFrame if lazy else pl.DataFrame
    rules = read_schema(schema, redact=Settings.resolve({}).redact)
    if partitions not in ("one", "any"):
        raise InvalidArgumentError("partitions", f'it is {partitions!r}, not `"one"` or `"any"`.')
    if partitions == "any":
        return _build_type(rules, frame_type, _dict_of(frame_type), any_partitions=True)
    return _build_type(rules, frame_type, frame_type)


def typed_ins(
    function: Callable[..., Any], ins: Mapping[str, dg.AssetIn] | None, redact: Collection[str]
) -> dict[str, dg.AssetIn]:
    """The function's inputs, with a Dagster type for each parameter that names a schema.

    Columns to redact are redacted in every input. Annotations are resolved as Dagster resolves them,
    with its own error where that fails.
    """
    typed = dict(ins or {})
    for name, hint in get_type_hints(function).items():
        input_type = _input_type(hint, redact) if name != "return" else None
        given = typed.get(name, dg.AssetIn())
        if input_type is not None and not isinstance(given.dagster_type, dg.DagsterType):
            typed[name] = dg.AssetIn(
                key=given.key,
                metadata=given.metadata,
                key_prefix=given.key_prefix,
                input_manager_key=given.input_manager_key,
                partition_mapping=given.partition_mapping,
                dagster_type=input_type,
            )
    return typed


def output_type(function: Callable[..., Any]) -> dg.DagsterType | None:
    """The output's type for a function annotated to return a lazy frame; `None` for any other.

    dagster-polars reads it to choose how it writes (0.27.12). What is returned still decides: the type
    takes either kind of frame.
    """
    hint = _without_none(get_type_hints(function).get("return"))
    if typing.get_origin(hint) is dg.MaterializeResult:
        (hint,) = typing.get_args(hint)
    if hint is not pl.LazyFrame and typing.get_origin(hint) is not dy.LazyFrame:
        return None
    return lazy_output_type()


def lazy_output_type() -> dg.DagsterType:
    """The type of an output that its IO manager is handed as a lazy frame, where it takes one."""
    return dg.DagsterType(
        lambda _context, value: isinstance(value, (pl.DataFrame, pl.LazyFrame)),
        key="LazyFrame",
        typing_type=pl.LazyFrame,
        description="Rows that the IO manager is handed as a lazy frame, where it takes one.",
    )


def _without_none(hint: Any) -> Any:
    """The one type that stands beside `None`, for a function that may skip."""
    others = [argument for argument in typing.get_args(hint) if argument is not type(None)]
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return others[0] if is_union and len(others) == 1 else hint


def _input_type(hint: Any, redact: Collection[str]) -> dg.DagsterType | None:
    """The type for an annotation that is a typed frame, a dictionary of them or either, else `None`.

    Each may be optional: then an input that is `None` passes.
    """
    if (any_partitions := _any_partitions(hint, redact)) is not None:
        return any_partitions
    given, hint = hint, _without_none(hint)
    optional = given is not hint
    arguments = typing.get_args(hint)
    if (frame_type := _FRAMES.get(typing.get_origin(hint))) is not None:
        rules = read_schema(arguments[0], redact=redact)
        return _build_type(rules, frame_type, frame_type, optional=optional)
    if typing.get_origin(hint) is dict:
        key_type, value_hint = arguments
        if (frame_type := _FRAMES.get(typing.get_origin(value_hint))) is not None:
            (schema,) = typing.get_args(value_hint)
            python_type = _dict_of(frame_type, key_type)
            rules = read_schema(schema, redact=redact)
            return _build_type(rules, frame_type, python_type, optional=optional)
    return None


def _any_partitions(hint: Any, redact: Collection[str]) -> dg.DagsterType | None:
    """The type for `dict[str, dy.LazyFrame[S]] | dy.LazyFrame[S] | None`, else `None`."""
    parts = [argument for argument in typing.get_args(hint) if argument is not type(None)]
    frames = [part for part in parts if typing.get_origin(part) in _FRAMES]
    if len(parts) != 2 or len(frames) != 1 or _dict_of(frames[0]) not in parts:
        return None
    frame_type = _FRAMES[typing.get_origin(frames[0])]
    rules = read_schema(typing.get_args(frames[0])[0], redact=redact)
    return _build_type(rules, frame_type, _dict_of(frame_type), any_partitions=True)


def _dict_of(value_type: Any, key_type: Any = str) -> Any:
    return dict.__class_getitem__((key_type, value_type))


def _build_type(
    rules: SchemaRules,
    frame_type: type[pl.DataFrame | pl.LazyFrame],
    python_type: Any,
    *,
    optional: bool = False,
    any_partitions: bool = False,
) -> dg.DagsterType:
    is_dict = python_type is not frame_type
    optional = optional or any_partitions

    def check(_context: dg.TypeCheckContext, value: Any) -> dg.TypeCheck:
        if value is None and optional:
            problem = None
        elif not is_dict or (any_partitions and not isinstance(value, dict)):
            problem = _problem(rules, frame_type, value)
        elif not isinstance(value, dict):
            problem = f"found a `{type(value).__name__}`, expected a dictionary by partition"
        else:
            problems = {key: _problem(rules, frame_type, frame) for key, frame in value.items()}
            problem = next(
                (f"partition `{k}`: {text}" for k, text in problems.items() if text), None
            )
        description = None if problem is None else printable(problem)
        return dg.TypeCheck(success=problem is None, description=description)

    prefix = "AnyNumberOf" if any_partitions else "Optional" if optional else ""
    kind = "Lazy" if frame_type is pl.LazyFrame else ""
    # A key and no name: names have to be unique in a code location (1.13), and each asset that reads
    # the schema makes a type of its own.
    return dg.DagsterType(
        check,
        key=f"{prefix}{rules.name}{kind}Frame{'s' if is_dict else ''}",
        typing_type=python_type,
        description=f"Polars frames with the columns and dtypes of schema `{rules.name}`.",
    )


def _problem(
    rules: SchemaRules, frame_type: type[pl.DataFrame | pl.LazyFrame], frame: object
) -> str | None:
    """What is wrong with one frame, or `None`."""
    if not isinstance(frame, frame_type):
        return f"found a `{type(frame).__name__}`, expected a `pl.{frame_type.__name__}`"
    found = frame.collect_schema()
    mismatches = rules.mismatches(found)
    if not mismatches:
        return None
    fix = ""
    if cast_advice(rules, found) is None:
        fix = (
            f". Annotate `pl.{frame_type.__name__}` and write `dd.strict_cast({rules.name}, frame)`"
        )
    return f"{_describe(rules, mismatches)}{fix}"


def _describe(rules: SchemaRules, mismatches: list[ColumnMismatch]) -> str:
    found = "; ".join(
        f"`{m.column}` is {m.found or 'missing'}, declared {m.expected}" for m in mismatches
    )
    return f"the frame does not have the columns of schema `{rules.name}`: {found}"
