"""Reach Dataframely's private names."""

import functools
from collections.abc import Callable
from typing import Any

import dataframely as dy
import polars as pl
from dataframely._rule import RuleFactory

__all__ = ["RuleFactory", "collection_filters", "rule_factories", "schema_rule_expressions"]


def rule_factories(schema: type) -> dict[str, RuleFactory]:
    """The `@dy.rule()` functions of a schema by name, in the order Dataframely merges them (3.1)."""
    merged: dict[str, RuleFactory] = {}
    for base in schema.__bases__:
        merged.update(rule_factories(base))
    own = {name: value for name, value in vars(schema).items() if isinstance(value, RuleFactory)}
    return {**merged, **own}


def schema_rule_expressions(schema: type[dy.Schema]) -> dict[str, Callable[[], pl.Expr]]:
    """For each `@dy.rule()` of a schema, what calls its function; there is no public list (3.1)."""
    rules = schema._schema_validation_rules()
    return {name: functools.partial(_expression, rule) for name, rule in rules.items()}


def _expression(rule: Any) -> pl.Expr:
    """A rule's expression; `group_by=` of Dataframely 2 gives one value for each group."""
    expression: pl.Expr = rule.expr
    group_columns = getattr(rule, "group_columns", None)
    return expression.over(group_columns) if group_columns else expression


def collection_filters(
    collection: type[dy.Collection],
) -> dict[str, Callable[[dy.Collection], pl.LazyFrame]]:
    """The `@dy.filter()` functions of a collection by name; there is no public list (3.1)."""
    return {name: filter_.logic for name, filter_ in collection._filters().items()}
