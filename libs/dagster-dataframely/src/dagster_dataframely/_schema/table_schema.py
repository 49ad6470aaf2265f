"""Describe a schema for Dagster's Columns tab."""

import json
from collections.abc import Mapping
from typing import Any

import dagster as dg

from dagster_dataframely._names import SCHEMA_METADATA_KEY, TEXT_FORMAT_METADATA_KEY
from dagster_dataframely._schema.rules import PRIMARY_KEY, Rule, SchemaRules
from dagster_dataframely._schema.words import describe_dtype

_OWN_FIELD = {"nullability", "unique"}
"""Rules that `TableColumnConstraints` has a field for."""

_OF_FLOATS = {"inf", "nan"}
"""Rules that Dataframely gives every float column unless it is told otherwise."""


def table_schema(rules: SchemaRules) -> dg.TableSchema:
    """Columns with every constraint beside its column; the others once, for the table."""
    others: dict[str | None, list[str]] = {}
    everywhere = _of_every_float(rules)
    for rule in sorted(rules.declared, key=lambda rule: rule.name != PRIMARY_KEY):
        if not _has_own_field(rule) and _kind(rule) not in everywhere:
            others.setdefault(rule.column, []).append(_with_severity(rule))
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=name,
                type=describe_dtype(column),
                description=column.description,
                constraints=dg.TableColumnConstraints(
                    nullable=column.nullable,
                    unique=column.unique or rules.primary_key == [name],
                    other=others.get(name, []),
                ),
                tags=column_tags(column.metadata),
            )
            for name, column in rules.columns.items()
        ],
        constraints=dg.TableConstraints(other=[*others.get(None, []), *_in_words(everywhere)]),
    )


def column_tags(metadata: Mapping[str, Any] | None) -> dict[str, str]:
    """A column's Dataframely metadata as tags: text as it is, anything else as JSON where it can be."""
    return {
        str(key): value if isinstance(value, str) else json.dumps(value, default=str)
        for key, value in (metadata or {}).items()
        if key not in (SCHEMA_METADATA_KEY, TEXT_FORMAT_METADATA_KEY)
    }


def _of_every_float(rules: SchemaRules) -> dict[str, str]:
    """The rules that all of several float columns have, with their constraints; said once."""
    floats = {name for name, column in rules.columns.items() if column.dtype.is_float()}
    found: dict[str, dict[str | None, str]] = {}
    for rule in rules.declared:
        if _kind(rule) in _OF_FLOATS and rule.severity == "error":
            found.setdefault(_kind(rule), {})[rule.column] = rule.constraint
    return {
        kind: constraints.popitem()[1]
        for kind, constraints in found.items()
        if len(floats) > 1 and constraints.keys() >= floats
    }


def _in_words(everywhere: Mapping[str, str]) -> list[str]:
    return [f"every float: {', '.join(everywhere.values())}"] if everywhere else []


def _has_own_field(rule: Rule) -> bool:
    return _kind(rule) in _OWN_FIELD


def _kind(rule: Rule) -> str:
    """A column's rule without the column's name."""
    return "" if rule.column is None else rule.name.removeprefix(f"{rule.column}|")


def _with_severity(rule: Rule) -> str:
    return f"{rule.constraint} (warn)" if rule.severity == "warn" else rule.constraint
