"""Hold the rules of a schema, frozen: every other module takes them as an argument."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import dataframely as dy
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._cells import MAX_CHARACTERS, render_dtype
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._schema.words import describe_dtype
from dagster_dataframely._text import printable
from dagster_dataframely.errors import ColumnMismatch, InvalidRuleError

PRIMARY_KEY = "primary_key"


def dtype_rule_name(column: str) -> str:
    """`born_on` gives `born_on|dtype`, Dataframely's own name."""
    return f"{column}|dtype"


@dataclass(slots=True)
class Rule:
    """One rule of a schema. Nothing changes it; to make a frozen one would take three times as long."""

    name: str
    """Dataframely's name: `amount|min`, `primary_key`, or the name of a `@dy.rule()` function."""
    column: str | None
    """The column that owns the rule, or `None` for a rule that no single column owns."""
    severity: Severity
    constraint: str
    """The rule in words, without the column's name."""
    expression: pl.Expr = field(compare=False)
    """True or null for a valid row, or for a valid table."""
    function: Callable[..., object] | None = field(default=None, compare=False)
    """The author's function that makes the expression, where it is known."""
    whole_table: bool = False
    """Whether the rule gives one value for all rows, so that it says nothing of a single one."""
    written_by_hand: bool = False
    """Whether code of the schema's author makes it, rather than an argument of Dataframely's columns."""
    is_filter: bool = False
    """Whether it is a filter of a collection, which looks at all members and has no expression."""
    is_dtype: bool = False
    """Whether it says that the values of a column survived `dd.parse`."""
    unknown: pl.Expr | None = field(default=None, compare=False)
    """True for a row of which the rule says nothing, since a value that it looks at was lost."""

    @property
    def check_name(self) -> str:
        """Also the name of the rule's column in the quarantine."""
        name = _names.filter_check_name if self.is_filter else _names.rule_check_name
        return name(self.name)

    @property
    def description(self) -> str:
        """The rule in words, with its column."""
        if self.column is None:
            return self.constraint
        return f"`{printable(self.column)}`: {self.constraint}"

    @property
    def wants_unique(self) -> bool:
        """Whether it is the primary key's rule or that of a `unique` column."""
        name = PRIMARY_KEY if self.column is None else f"{self.column}|unique"
        return self.name == name and not self.written_by_hand


@dataclass(frozen=True)
class SchemaRules:
    """A schema's columns and rules with their severities, read once and passed on."""

    schema: type[dy.Schema]
    columns: Mapping[str, dy.Column]
    rules: tuple[Rule, ...]
    redacted: frozenset[str] = frozenset()
    """The columns whose values must not be shown anywhere but in the stored rows."""
    dtype_warns: frozenset[str] = frozenset()
    """The columns whose rule `<column>|dtype` only warns."""
    parsed: bool = False
    """Whether the rows have `dy_original`, and the rules those on dtypes."""

    @property
    def name(self) -> str:
        """The schema's class name."""
        return self.schema.__name__

    @cached_property
    def column_names(self) -> list[str]:
        """In the schema's order, which is the written table's."""
        return list(self.columns)

    @cached_property
    def row_columns(self) -> list[str]:
        """The columns that rules look at: the schema's, and `dy_original` of parsed rows."""
        return [*self.columns, _names.ORIGINAL] if self.parsed else self.column_names

    @cached_property
    def declared(self) -> tuple[Rule, ...]:
        """The rules that are there on every run, so without those on dtypes."""
        return tuple(rule for rule in self.rules if not rule.is_dtype)

    @cached_property
    def dtype_rules(self) -> tuple[Rule, ...]:
        """The rules that say of each row whether a column's value survived `dd.parse`."""
        return tuple(rule for rule in self.rules if rule.is_dtype)

    @cached_property
    def primary_key(self) -> list[str]:
        """The columns of the primary key; empty without one."""
        return [name for name, column in self.columns.items() if column.primary_key]

    @cached_property
    def row_rules(self) -> tuple[Rule, ...]:
        """The rules that say of each row whether it is valid."""
        return tuple(rule for rule in self.rules if not rule.whole_table)

    @cached_property
    def error_rules(self) -> tuple[Rule, ...]:
        """The rules that keep a failing row out of the table."""
        return tuple(rule for rule in self.row_rules if rule.severity == "error")

    @cached_property
    def table_rules(self) -> tuple[Rule, ...]:
        """The rules that say of all rows together whether they are a valid table."""
        return tuple(rule for rule in self.rules if rule.whole_table)

    @cached_property
    def table_error_rules(self) -> tuple[Rule, ...]:
        """The rules that keep a failing table from being written."""
        return tuple(rule for rule in self.table_rules if rule.severity == "error")

    def unique_key(self, rule: Rule) -> list[str]:
        """The columns whose values a uniqueness rule wants once; empty for any other rule."""
        if not rule.wants_unique:
            return []
        return self.primary_key if rule.column is None else [rule.column]

    def narrowed(self, rules: Iterable[Rule]) -> "SchemaRules":
        """These rules with the columns that they name, and those of the primary key.

        Polars cannot say which columns a selector in a rule stands for (1.35 to 2.1): then all stay.
        """
        rules = tuple(rules)
        if any(rule.expression.meta.has_multiple_outputs() for rule in rules):
            return replace(self, rules=rules)
        named = {name for rule in rules for name in rule.expression.meta.root_names()}
        named |= {rule.column for rule in rules if rule.column is not None}
        named |= set(self.primary_key)
        # A frame without columns has no rows.
        columns = {name: column for name, column in self.columns.items() if name in named}
        return replace(self, rules=rules, columns=columns or self.columns)

    @property
    def without_filters(self) -> "SchemaRules":
        """The rules of the schema alone, without the filters of a collection."""
        rules = tuple(rule for rule in self.rules if not rule.is_filter)
        return self if len(rules) == len(self.rules) else replace(self, rules=rules)

    def warning(self) -> "SchemaRules":
        """The same rules, none of which takes a row away."""
        return replace(self, rules=tuple(replace(rule, severity="warn") for rule in self.rules))

    def in_declared_order(self, found: pl.Schema) -> list[pl.Expr]:
        """The declared columns, and the fields of their structs, in the schema's order."""
        return [
            pl.col(name).cast(column.dtype)
            if name in found
            and found[name].is_nested()
            and found[name] != column.dtype
            and _sort_fields(found[name]) == _sort_fields(column.dtype)
            else pl.col(name)
            for name, column in self.columns.items()
        ]

    def mismatches(self, found: Mapping[str, pl.DataType]) -> list[ColumnMismatch]:
        """Every declared column that is missing or has another dtype, in the schema's order."""
        return [
            _mismatch(name, column, found.get(name), redacted=name in self.redacted)
            for name, column in self.columns.items()
            if name not in found or not column.validate_dtype(found[name])
        ]

    def reject_non_boolean(self, found: pl.Schema) -> None:
        """Raise where a rule is neither true nor false for the dtypes of a frame."""
        by_hand = [rule for rule in self.rules if rule.written_by_hand]
        rows = pl.LazyFrame(schema=found)
        try:
            dtypes = rows.select(r.expression.alias(r.name) for r in by_hand).collect_schema()
        except pl.exceptions.PolarsError:
            # The rule that Polars refuses says why when it is evaluated.
            return
        reject_non_boolean(self.schema, dtypes)


def _sort_fields(dtype: Any) -> Any:
    """The dtype with the fields of its structs sorted by their names."""
    if isinstance(dtype, pl.Struct):
        fields = sorted(dtype.fields, key=lambda field: field.name)
        return pl.Struct({field.name: _sort_fields(field.dtype) for field in fields})
    if isinstance(dtype, pl.List):
        return pl.List(_sort_fields(dtype.inner))
    return dtype


def reject_non_boolean(schema: type[dy.Schema], dtypes: Mapping[str, pl.DataType]) -> None:
    """Raise where a rule is neither true nor false; Dataframely refuses it on every frame."""
    for name, dtype in dtypes.items():
        if dtype not in (pl.Boolean, pl.Null):
            raise InvalidRuleError(
                schema.__name__,
                name,
                f"gives `{dtype.base_type()}` and not true or false",
                "Compare it with a value, as in `> 0`.",
            )


def _mismatch(
    name: str, column: dy.Column, found: pl.DataType | None, *, redacted: bool
) -> ColumnMismatch:
    expected = describe_dtype(column, MAX_CHARACTERS)
    if found is None:
        return ColumnMismatch(name, expected, None)
    # What is inside a dtype can be values: an Enum's are its categories.
    shown = render_dtype(found, redacted=redacted)
    return ColumnMismatch(name, expected, f"another {shown}" if shown == expected else shown)
