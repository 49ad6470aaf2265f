"""The constraints of a Dataframely column in words."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dataframely as dy
import polars as pl

_MAX_VALUES = 10
_MAX_EXPRESSION_LENGTH = 200

_BOUNDS = {
    "min": "at least",
    "min_exclusive": "more than",
    "max": "at most",
    "max_exclusive": "less than",
}
_WORDS = {
    "nullability": "not null",
    "unique": "unique",
    "inf": "not infinite",
    "nan": "not NaN",
    "primary_key": "no element twice",
}
_ANY_WIDTH = {dy.Integer: "any integer", dy.Float: "any float", dy.Any: "any dtype"}


def describe_dtype(column: dy.Column) -> str:
    """The dtype as Polars prints it, or words where the column allows several dtypes."""
    if (words := _ANY_WIDTH.get(type(column))) is not None:
        return words
    if isinstance(column, dy.Decimal) and column.precision is None:
        return f"Decimal(any precision, scale={column.scale})"
    return str(column.dtype)


def describe_constraint(column: dy.Column, rule: str, expression: pl.Expr) -> str:
    """One rule of a column in words, without the column's name."""
    if rule in _WORDS:
        return _WORDS[rule]
    if rule in _BOUNDS:
        return f"{_BOUNDS[rule]} {getattr(column, rule)}"
    if rule in {"min_length", "max_length"}:
        length = getattr(column, rule)
        unit = "byte" if isinstance(column, dy.String) else "element"
        plural = "" if length == 1 else "s"
        return f"{_BOUNDS[rule.removesuffix('_length')]} {length} {unit}{plural}"
    if rule == "regex" and isinstance(column, dy.String):
        return f"matches `{column.regex}`"
    if rule == "is_in":
        return f"one of {_values(getattr(column, rule))}"
    if rule == "resolution":
        return f"a multiple of {getattr(column, rule)}"
    if rule.startswith("inner_"):
        return _describe_inner(column, rule.removeprefix("inner_"), expression)
    return describe_function(_check_function(column, rule)) or describe_expression(expression)


def describe_function(function: Callable[..., object] | None) -> str | None:
    """The first paragraph of a rule's docstring on one line, or `None`."""
    doc = inspect.getdoc(function) if inspect.isfunction(function) else None
    return " ".join(doc.split("\n\n")[0].split()) or None if doc else None


def describe_expression(expression: pl.Expr) -> str:
    """An expression as Polars prints it, cut at 200 characters."""
    text = " ".join(str(expression).split())
    too_long = len(text) > _MAX_EXPRESSION_LENGTH
    return f"{text[: _MAX_EXPRESSION_LENGTH - 1]}…" if too_long else text


def _describe_inner(column: dy.Column, rule: str, expression: pl.Expr) -> str:
    inner = getattr(column, "inner", None)
    if isinstance(inner, dy.Column):
        return f"each element: {describe_constraint(inner, rule, expression)}"
    if isinstance(inner, Mapping):
        for field, field_column in inner.items():
            if rule.startswith(f"{field}_"):
                words = describe_constraint(
                    field_column, rule.removeprefix(f"{field}_"), expression
                )
                return f"field `{field}`: {words}"
    return describe_expression(expression)


def _check_function(column: dy.Column, rule: str) -> Callable[..., object] | None:
    """The function behind a `check`, found by the name Dataframely derives from it (3.1)."""
    check = column.check
    if isinstance(check, Mapping):
        return check.get(rule.removeprefix("check__"))
    functions = check if isinstance(check, Sequence) else [check]
    named = [f for f in functions if rule == f"check__{getattr(f, '__name__', None)}"]
    return named[0] if len(named) == 1 else None


def _values(values: Sequence[Any]) -> str:
    shown = ", ".join(str(value) for value in values[:_MAX_VALUES])
    hidden = len(values) - _MAX_VALUES
    return f"{shown} and {hidden} more" if hidden > 0 else shown
