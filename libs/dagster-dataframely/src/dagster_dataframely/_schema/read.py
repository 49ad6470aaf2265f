"""Read a schema once into frozen, checked `SchemaRules`."""

import functools
import inspect
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import dataframely as dy
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._schema.rules import (
    PRIMARY_KEY,
    Rule,
    SchemaRules,
    dtype_rule_name,
    reject_non_boolean,
)
from dagster_dataframely._schema.severity import Severity, declared_on_column, declared_on_rule
from dagster_dataframely._schema.text_format import inner_columns, reject_text_formats
from dagster_dataframely._schema.words import (
    check_function,
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

_LOGGER = logging.getLogger("dagster_dataframely")
_MAX_ALLOWED = 160
"""Characters of a list of columns in an error."""


def read_schema(
    schema: object,
    severities: Mapping[str, Severity] | None = None,
    redact: Collection[str] = (),
) -> SchemaRules:
    """Read a schema; anything about it that cannot work on an asset raises here, at definition.

    Columns that the schema marks as personal are redacted, and those of `redact` that it has. Two
    assets with one schema and the same overrides share what was read.
    """
    schema = _schema_class(schema)
    if not severities and not redact:
        return _read_class(schema)
    _reject_unknown_severities(_read_class(schema), severities or {})
    return _override(schema, frozenset((severities or {}).items()), frozenset(redact))


@functools.lru_cache(maxsize=1024)
def _read_class(schema: type[dy.Schema]) -> SchemaRules:
    columns = schema.columns()
    if reserved := [name for name in columns if name.startswith(_names.COLUMN_PREFIX)]:
        raise ReservedColumnError(schema.__name__, reserved)
    if unusable := [name for name in columns if not _names.is_nameable(name)]:
        raise InvalidColumnError(schema.__name__, unusable)
    reject_text_formats(schema.__name__, columns)
    declared: dict[str, Any] = {}
    rules = [
        *_column_rules(columns, declared),
        *_primary_key_rule(columns),
        *_schema_rules(schema, declared),
    ]
    by_hand = [rule for rule in rules if rule.written_by_hand]
    _reject_patterns(schema, by_hand)
    _reject_regexes(schema, columns)
    on_no_rows = _evaluate_no_rows(columns, by_hand) if by_hand else {}
    if on_no_rows and not any(map(_takes_any_dtype, columns.values())):
        reject_non_boolean(schema, {name: found.dtypes[0] for name, found in on_no_rows.items()})
    rules = [_mark_whole_table(rule, on_no_rows.get(rule.name)) for rule in rules]
    reject_collisions(schema, ((rule.check_name, rule.name) for rule in rules))
    redacted = frozenset(name for name, column in columns.items() if _is_personal(column))
    warns = frozenset(name for name in columns if declared[dtype_rule_name(name)] == "warn")
    read = SchemaRules(schema, columns, tuple(rules), redacted, warns)
    _reject_unknown_severities(read, declared)
    return read


@functools.lru_cache(maxsize=1024)
def _override(
    schema: type[dy.Schema], severities: frozenset[tuple[str, Severity]], redact: frozenset[str]
) -> SchemaRules:
    read, given = _read_class(schema), dict(severities)
    on_dtypes = dict.fromkeys(map(dtype_rule_name, read.dtype_warns), "warn") | dict(given)
    return replace(
        read,
        rules=tuple(
            replace(rule, severity=given[rule.name]) if rule.name in given else rule
            for rule in read.rules
        ),
        redacted=read.redacted | (redact & read.columns.keys()),
        dtype_warns=frozenset(
            c for c in read.columns if on_dtypes.get(dtype_rule_name(c)) == "warn"
        ),
    )


def build_expressions(rules: SchemaRules) -> SchemaRules:
    """The same rules with new expressions of those that their author's functions make.

    Each run builds its own: a function may look at the clock.
    """
    by_hand = {rule.name for rule in rules.rules if rule.written_by_hand}
    if not by_hand:
        return rules
    built = {
        f"{name}|{rule}": expression
        for name in dict.fromkeys(rule.column for rule in rules.rules if rule.name in by_hand)
        if name is not None
        for rule, expression in rules.columns[name].validation_rules(pl.col(name)).items()
    }
    built |= {
        name: build()
        for name, build in schema_rule_expressions(rules.schema).items()
        if name in by_hand
    }
    return replace(
        rules,
        rules=tuple(
            replace(rule, expression=built[rule.name]) if rule.name in by_hand else rule
            for rule in rules.rules
        ),
    )


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
    return any(map(_is_personal, inner_columns(column)))


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


def _schema_class(schema: object) -> type[dy.Schema]:
    if isinstance(schema, type) and issubclass(schema, dy.Schema) and schema.column_names():
        return schema
    if isinstance(schema, type) and issubclass(schema, dy.Collection):
        raise CollectionNotSupportedError(schema)
    raise InvalidSchemaError(schema)


def _reject_regexes(schema: type[dy.Schema], columns: Mapping[str, dy.Column]) -> None:
    """Reject a `regex` that Rust cannot compile, such as one that looks ahead."""
    for name, column in columns.items():
        regex = getattr(column, "regex", None)
        if regex is not None:
            try:
                pl.Series([""]).str.contains(regex)
            except pl.exceptions.PolarsError:
                raise InvalidRuleError(
                    schema.__name__,
                    f"{name}|regex",
                    f"has a pattern that Rust cannot compile: {regex}",
                    "Look-around and back-references do not exist there: write a `check`.",
                ) from None
        for inner in inner_columns(column):
            _reject_regexes(schema, {f"{name}|inner": inner})


def _column_rules(columns: Mapping[str, dy.Column], declared: dict[str, Any]) -> list[Rule]:
    """The rules of every column; adds what the columns say of severities to `declared`."""
    rules = []
    for name, column in columns.items():
        expressions = column.validation_rules(pl.col(name))
        has_own_rules = _has_own_rules(column)
        severities = declared_on_column(column.metadata, [*expressions, "dtype"])
        declared.setdefault(dtype_rule_name(name), "error")
        declared |= {f"{name}|{word}": severity for word, severity in severities.items()}
        rules += [
            Rule(
                name=f"{name}|{rule}",
                column=name,
                severity=severities.get(rule, "error"),
                constraint=describe_constraint(column, rule, expression),
                expression=expression,
                function=check_function(column, rule),
                written_by_hand="check" in rule
                or (has_own_rules and not _is_uniqueness(expression, name)),
            )
            for rule, expression in expressions.items()
        ]
    return rules


def _has_own_rules(column: dy.Column) -> bool:
    """Whether a class that is not Dataframely's makes rules of a column, or of one inside of it."""
    return _makes_own_rules(type(column)) or any(map(_has_own_rules, inner_columns(column)))


@functools.cache
def _makes_own_rules(kind: type[dy.Column]) -> bool:
    makers = (base for base in kind.__mro__ if "validation_rules" in vars(base))
    return any(maker.__module__.partition(".")[0] != "dataframely" for maker in makers)


def _is_uniqueness(expression: pl.Expr, column: str) -> bool:
    """Whether it is what Dataframely writes for `unique=True`; a list is wrapped in a struct."""
    keys = (pl.col(column), pl.struct(column))
    return any(expression.meta.eq(key.is_unique()) for key in keys)


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
    expressions = schema_rule_expressions(schema)
    factories = rule_factories(schema) if expressions else {}
    rules = []
    for name, build in expressions.items():
        reject_reserved_name(schema, name)
        expression = _rule_expression(schema, name, build, factories[name].validation_fn)
        declared[name] = severity = declared_on_rule(factories[name])
        function = factories[name].validation_fn
        words = describe_function(function) or describe_expression(expression)
        rules.append(Rule(name, None, severity, words, expression, function, written_by_hand=True))
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


def _evaluate_no_rows(
    columns: Mapping[str, dy.Column], by_hand: Iterable[Rule]
) -> dict[str, pl.DataFrame]:
    """What the rules written by hand give without rows; one over the whole table gives a row."""
    empty = pl.DataFrame(schema={name: column.dtype for name, column in columns.items()})
    on_no_rows = {}
    for rule in by_hand:
        try:
            on_no_rows[rule.name] = empty.select(rule.expression)
        except Exception as error:
            # A function of the author's may raise anything where there are no rows.
            _LOGGER.info(
                "Rule `%s` cannot be evaluated without rows, so it counts as one about each row: %s",
                rule.name,
                error,
            )
    return on_no_rows


def _mark_whole_table(rule: Rule, on_no_rows: pl.DataFrame | None) -> Rule:
    whole_table = on_no_rows is not None and on_no_rows.height == 1
    return replace(rule, whole_table=True) if whole_table else rule


def _takes_any_dtype(column: dy.Column) -> bool:
    """Whether the dtype of a column, or of one inside of it, shows only in a frame."""
    return isinstance(column, dy.Any) or any(map(_takes_any_dtype, inner_columns(column)))


def _reject_unknown_severities(read: SchemaRules, severities: Mapping[str, object]) -> None:
    known = [rule.name for rule in read.rules] if severities else []
    known_or_dtype = {*known, *map(dtype_rule_name, read.columns)}
    for rule, severity in severities.items():
        if rule not in known_or_dtype or severity not in ("error", "warn"):
            raise InvalidSeverityError(read.name, rule, severity, known)
