"""Describe constraints of a Dataframely column in words."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dataframely as dy
import polars as pl

from dagster_dataframely._cells import MAX_CHARACTERS, render_dtype
from dagster_dataframely._text import count, cut, printable

_MAX_VALUES = 10


_MAX_DTYPE, _MAX_DOCSTRING = 1_000, 1_000
"""Characters that go into the event log with each materialization."""


_BOUNDS = {
    "min": "at least",
    "min_exclusive": "more than",
    "max": "at most",
    "max_exclusive": "less than",
}


_LENGTHS = {"min_length": "at least", "max_length": "at most"}


_WORDS = {
    "nullability": "not null",
    "unique": "unique",
    "inf": "not infinite",
    "nan": "not NaN",
    "primary_key": "no element twice",
}


_ARGUMENTS: Mapping[str, Callable[[Any], str]] = {
    "regex": lambda regex: f"matches `{cut(printable(regex), MAX_CHARACTERS)}`",
    "is_in": lambda values: f"one of {_values(values)}",
    "resolution": lambda resolution: f"a multiple of {resolution}",
}


_ANY_WIDTH = {dy.Integer: "any integer", dy.Float: "any float", dy.Any: "any dtype"}


def describe_dtype(column: dy.Column, max_characters: int | None = _MAX_DTYPE) -> str:
    """Print the dtype as Polars does, or words where the column allows several dtypes.

    `max_characters=None` prints every category and field.
    """
    if (words := _ANY_WIDTH.get(type(column))) is not None:
        return words
    if isinstance(column, dy.Decimal) and column.precision is None:
        return f"Decimal(any precision, scale={column.scale})"
    if max_characters is None:
        return str(column.dtype)
    return render_dtype(column.dtype, max_characters=max_characters)


def describe_constraint(column: dy.Column, rule: str, expression: pl.Expr) -> str:
    """One rule of a column in words, without the column's name."""
    if rule in _WORDS:
        return _WORDS[rule]
    argument = getattr(column, rule, None)
    if argument is not None and rule in _BOUNDS:
        return f"{_BOUNDS[rule]} {argument}"
    if argument is not None and rule in _LENGTHS:
        unit = "byte" if isinstance(column, dy.String) else "element"
        return f"{_LENGTHS[rule]} {count(argument, unit)}"
    if argument is not None and rule in _ARGUMENTS:
        return _ARGUMENTS[rule](argument)
    if rule.startswith("inner_") and isinstance(column, (dy.List, dy.Array, dy.Struct)):
        return _describe_inner(column, rule.removeprefix("inner_"), expression)
    words = describe_function(check_function(column, rule)) or describe_expression(expression)
    if rule.startswith("check__") and isinstance(column.check, Mapping):
        return f"{printable(rule.removeprefix('check__'))}: {words}"
    return words


def describe_function(function: Callable[..., object] | None) -> str | None:
    """The first paragraph of a rule's docstring on one line, or `None`."""
    doc = inspect.getdoc(function) if inspect.isfunction(function) else None
    return cut(" ".join(doc.split("\n\n")[0].split()), _MAX_DOCSTRING) or None if doc else None


def describe_expression(expression: pl.Expr) -> str:
    """Print an expression as Polars does, cut at 200 characters."""
    return cut(printable(" ".join(str(expression).split())), MAX_CHARACTERS)


def _describe_inner(column: dy.List | dy.Array | dy.Struct, rule: str, expression: pl.Expr) -> str:
    if not isinstance(column, dy.Struct):
        return f"each element: {describe_constraint(column.inner, rule, expression)}"
    # The longest name first: a field may be called as another one with `_` and more behind it.
    names = sorted(column.inner, key=len, reverse=True)
    name = next(name for name in names if rule.startswith(f"{name}_"))
    words = describe_constraint(column.inner[name], rule.removeprefix(f"{name}_"), expression)
    return f"field `{printable(name)}`: {words}"


def check_function(column: dy.Column, rule: str) -> Callable[..., object] | None:
    """The function behind a `check`, found by the name Dataframely derives from it (3.1)."""
    check = column.check
    if check is None:
        return None
    if isinstance(check, Mapping):
        return check.get(rule.removeprefix("check__"))
    functions = check if isinstance(check, Sequence) else [check]
    named = [f for f in functions if rule == f"check__{getattr(f, '__name__', None)}"]
    return named[0] if len(named) == 1 else None


def _values(values: Sequence[Any]) -> str:
    shown = ", ".join(printable(str(value)) for value in values[:_MAX_VALUES])
    hidden = len(values) - _MAX_VALUES
    return f"{shown} and {hidden} more" if hidden > 0 else shown
