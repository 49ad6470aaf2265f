"""Read a schema once into frozen, checked `SchemaRules`."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import dataframely as dy
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._schema.rules import PRIMARY_KEY, Rule, SchemaRules, reject_non_boolean
from dagster_dataframely._schema.severity import Severity, declared_on_column, declared_on_rule
from dagster_dataframely._schema.words import (
    describe_constraint,
    describe_expression,
    describe_function,
)
from dagster_dataframely._settings import Settings
from dagster_dataframely._text import list_within, printable
from dagster_dataframely._upstream.dataframely import rule_factories, schema_rule_expressions
from dagster_dataframely.errors import (
    CheckNameCollisionError,
    CollectionNotSupportedError,
    InvalidColumnError,
    InvalidRuleError,
    InvalidSchemaError,
    InvalidSettingError,
    InvalidSeverityError,
    ReservedColumnError,
)

_MAX_ALLOWED = 160
"""Characters of a list of columns in an error."""


def read_schema(
    schema: object,
    severities: Mapping[str, Severity] | None = None,
    redact: Collection[str] = (),
) -> SchemaRules:
    """Read a schema; anything about it that cannot work on an asset raises here, at definition.

    Columns that the schema marks as personal are redacted, and those of `redact` that it has.
    """
    schema, columns = _checked_schema(schema)
    if reserved := [name for name in columns if name.startswith(_names.COLUMN_PREFIX)]:
        raise ReservedColumnError(schema.__name__, reserved)
    if unusable := [name for name in columns if not _names.is_nameable(name)]:
        raise InvalidColumnError(schema.__name__, unusable)
    declared: dict[str, Any] = {}
    rules = [
        *_column_rules(columns, declared),
        *_primary_key_rule(columns),
        *_schema_rules(schema, declared),
    ]
    _reject_patterns(schema, rules)
    checked = _checked_severities(schema, [rule.name for rule in rules], declared, severities or {})
    verdicts = _verdicts_on_no_rows(columns, rules)
    if not any(map(_takes_any_dtype, columns.values())):
        reject_non_boolean(schema, {name: found.dtypes[0] for name, found in verdicts.items()})
    rules = [_completed(rule, checked[rule.name], verdicts.get(rule.name)) for rule in rules]
    reject_collisions(schema, ((rule.check_name, rule.name) for rule in rules))
    redacted = frozenset(
        name for name, column in columns.items() if name in redact or _is_personal(column)
    )
    return SchemaRules(schema=schema, columns=columns, rules=tuple(rules), redacted=redacted)


def read_declared(
    schema: object, severities: Mapping[str, Severity] | None, arguments: Mapping[str, Any]
) -> tuple[SchemaRules, Settings]:
    """Read a schema and the settings that come with it."""
    settings = Settings.resolve(arguments)
    rules = read_schema(schema, severities, settings.redact)
    reject_unknown_columns(arguments, rules.name, rules.columns)
    return rules, settings


def reject_unknown_columns(
    arguments: Mapping[str, Any], declared: str, columns: Collection[str]
) -> None:
    """Raise where the argument `redact` names what is no column; its variable may."""
    if unknown := sorted(set(arguments.get("redact") or ()) - set(columns)):
        allowed = list_within(_MAX_ALLOWED, f"columns of {declared}: ", list(columns))
        raise InvalidSettingError("redact", unknown, "the argument", allowed)


def _is_personal(column: dy.Column) -> bool:
    """Whether a column is marked `pii`, or one inside of it is."""
    if (column.metadata or {}).get("pii"):
        return True
    return any(map(_is_personal, _inner_columns(column)))


def reject_collisions(schema: type[dy.Schema], names: Iterable[tuple[str, str]]) -> None:
    """Raise where two originals share a check name; takes pairs of check name and original."""
    seen: dict[str, str] = {}
    for check_name, original in names:
        if check_name in seen:
            raise CheckNameCollisionError(schema.__name__, check_name, [seen[check_name], original])
        seen[check_name] = original


def _reject_patterns(schema: type[dy.Schema], rules: Iterable[Rule]) -> None:
    for rule in rules:
        if not _names.is_nameable(rule.name):
            reason, fix = (
                "has a name that Polars cannot use",
                "Name the entry of `check` otherwise.",
            )
            raise InvalidRuleError(schema.__name__, rule.name, reason, fix)


def _checked_schema(schema: object) -> tuple[type[dy.Schema], Mapping[str, dy.Column]]:
    if isinstance(schema, type) and issubclass(schema, dy.Collection):
        raise CollectionNotSupportedError(schema)
    if isinstance(schema, type) and issubclass(schema, dy.Schema) and (columns := schema.columns()):
        return schema, columns
    raise InvalidSchemaError(schema)


def _column_rules(columns: Mapping[str, dy.Column], declared: dict[str, Any]) -> list[Rule]:
    """The rules of every column; adds what the columns say of severities to `declared`."""
    rules = []
    for name, column in columns.items():
        expressions = column.validation_rules(pl.col(name))
        has_own_rules = _has_own_rules(column)
        for word, severity in declared_on_column(column.metadata, list(expressions)).items():
            declared[f"{name}|{word}"] = severity
        rules += [
            Rule(
                name=f"{name}|{rule}",
                column=name,
                severity="error",
                constraint=describe_constraint(column, rule, expression),
                expression=expression,
                written_by_hand="check" in rule
                or (has_own_rules and not _is_uniqueness(expression, name)),
            )
            for rule, expression in expressions.items()
        ]
    return rules


def _has_own_rules(column: dy.Column) -> bool:
    """Whether a class that is not Dataframely's makes rules of a column, or of one inside of it."""
    makers = (kind for kind in type(column).__mro__ if "validation_rules" in vars(kind))
    if any(maker.__module__.partition(".")[0] != "dataframely" for maker in makers):
        return True
    return any(map(_has_own_rules, _inner_columns(column)))


def _is_uniqueness(expression: pl.Expr, column: str) -> bool:
    """Whether it is what Dataframely writes for `unique=True`; a list is wrapped in a struct."""
    keys = (pl.col(column), pl.struct(column))
    return any(expression.meta.eq(key.is_unique()) for key in keys)


def _inner_columns(column: dy.Column) -> Iterable[dy.Column]:
    inner = getattr(column, "inner", None) or {}
    return inner.values() if isinstance(inner, Mapping) else [inner]


def _primary_key_rule(columns: Mapping[str, dy.Column]) -> list[Rule]:
    key = [name for name, column in columns.items() if column.primary_key]
    if not key:
        return []
    return [
        Rule(
            name=PRIMARY_KEY,
            column=None,
            severity="error",
            constraint=f"primary key: {printable(', '.join(key))}",
            expression=pl.struct(key).is_unique(),
        )
    ]


def _schema_rules(schema: type[dy.Schema], declared: dict[str, Any]) -> list[Rule]:
    factories = rule_factories(schema)
    rules = []
    for name, build in schema_rule_expressions(schema).items():
        reject_reserved_name(schema, name)
        expression = _rule_expression(schema, name, build, factories[name].validation_fn)
        declared[name] = declared_on_rule(factories[name])
        words = describe_function(factories[name].validation_fn) or describe_expression(expression)
        rules.append(Rule(name, None, "error", words, expression, written_by_hand=True))
    return rules


def reject_reserved_name(owner: type, rule: str) -> None:
    """Raise where a rule of a schema, or a filter of a collection, is called as this library's own."""
    if rule.startswith(_names.COLUMN_PREFIX):
        raise InvalidRuleError(
            owner.__name__,
            rule,
            f"has a name that begins with `{_names.COLUMN_PREFIX}`",
            "Such names are kept for this library's columns: rename it.",
        )


def _rule_expression(
    schema: type[dy.Schema],
    name: str,
    build: Callable[[], pl.Expr],
    function: Callable[..., object],
) -> pl.Expr:
    if not inspect.signature(function).parameters:
        raise InvalidRuleError(
            schema.__name__, name, "takes no parameter", f"Write `def {name}(cls) -> pl.Expr:`."
        )
    expression = build()
    if not isinstance(expression, pl.Expr):
        raise InvalidRuleError(
            schema.__name__,
            name,
            f"returns a `{type(expression).__name__}`",
            "Return a Polars expression that is true for a valid row.",
        )
    return expression


def _verdicts_on_no_rows(
    columns: Mapping[str, dy.Column], rules: Iterable[Rule]
) -> dict[str, pl.DataFrame]:
    """What the rules written by hand give without rows; one over the whole table gives a row."""
    empty = pl.DataFrame(schema={name: column.dtype for name, column in columns.items()})
    verdicts = {}
    for rule in rules:
        # A function of the author's may raise anything where there are no rows.
        with suppress(Exception):
            if rule.written_by_hand:
                verdicts[rule.name] = empty.select(rule.expression)
    return verdicts


def _completed(rule: Rule, severity: Severity, on_no_rows: pl.DataFrame | None) -> Rule:
    whole_table = on_no_rows is not None and on_no_rows.height == 1
    if severity == rule.severity and not whole_table:
        return rule
    return replace(rule, severity=severity, whole_table=whole_table)


def _takes_any_dtype(column: dy.Column) -> bool:
    """Whether the dtype of a column, or of one inside of it, shows only in a frame."""
    return isinstance(column, dy.Any) or any(map(_takes_any_dtype, _inner_columns(column)))


def _checked_severities(
    schema: type[dy.Schema],
    rules: list[str],
    declared: Mapping[str, object],
    overrides: Mapping[str, object],
) -> dict[str, Severity]:
    severities = {**dict.fromkeys(rules, "error"), **declared, **overrides}
    known = set(rules)
    for rule, severity in severities.items():
        if rule not in known or severity not in ("error", "warn"):
            raise InvalidSeverityError(schema.__name__, rule, severity, rules)
    return cast("dict[str, Severity]", severities)
