"""A schema is read once, at definition, and everything about it that cannot work raises there."""

from typing import Any

import dataframely as dy
import polars as pl
import pytest
from support.inherited import Base, Child

import dagster_dataframely as dd
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely.data import OrdersSchema
from dagster_dataframely.errors import (
    CheckNameCollisionError,
    CollectionNotSupportedError,
    InvalidColumnError,
    InvalidRuleError,
    InvalidSchemaError,
    ReservedColumnError,
)


def test_reads_rules_in_the_order_of_the_columns_then_the_key_then_the_schema() -> None:
    rules = read_schema(Child).rules
    assert [(rule.name, rule.column, rule.severity, rule.description) for rule in rules] == [
        ("id|nullability", "id", "error", "`id`: not null"),
        ("amount|min", "amount", "warn", "`amount`: at least 0.0"),
        ("amount|inf", "amount", "error", "`amount`: not infinite"),
        ("amount|nan", "amount", "error", "`amount`: not NaN"),
        ("name|nullability", "name", "error", "`name`: not null"),
        ("name|check", "name", "error", '`name`: [(col("name")) != ("x")]'),
        ("name|max_length", "name", "error", "`name`: at most 3 bytes"),
        ("primary_key", None, "error", "primary key: id"),
        ("inherited", None, "error", "An inherited rule."),
        ("own", None, "warn", '[(col("id")) > (dyn int: 0)]'),
    ]


@pytest.mark.parametrize("schema", [Base, Child, OrdersSchema])
def test_reads_the_rules_that_dataframely_evaluates(schema: type[dy.Schema]) -> None:
    expected = schema._validation_rules(with_cast=False)
    found = {rule.name: str(rule.expression) for rule in read_schema(schema).rules}
    assert found == {name: str(rule.expr) for name, rule in expected.items()}


def test_a_rule_of_a_child_replaces_its_parents() -> None:
    class Stricter(Base):
        @dd.rule(severity="warn")
        def inherited(cls) -> pl.Expr:
            """Another rule."""
            return cls.amount.col < 5

    (rule,) = [rule for rule in read_schema(Stricter).rules if rule.name == "inherited"]
    assert (rule.severity, rule.constraint) == ("warn", "Another rule.")


@pytest.mark.parametrize(
    "wrong", [None, 1, "Orders", int, dy.Schema, pl.DataFrame, Base.create_empty()]
)
def test_anything_else_is_no_schema(wrong: object) -> None:
    with pytest.raises(InvalidSchemaError, match="must be a `dataframely") as raised:
        dd.asset(wrong)  # type: ignore[arg-type]
    assert raised.value.found is wrong


def test_a_schema_without_columns_is_refused() -> None:
    class Empty(dy.Schema):
        """Nothing in it."""

    with pytest.raises(InvalidSchemaError, match="declares no column"):
        read_schema(Empty)


def test_a_collection_is_refused() -> None:
    class Shop(dy.Collection):
        orders: dy.LazyFrame[Base]

    with pytest.raises(
        CollectionNotSupportedError, match=r"@dd\.collection_asset\(Shop\)"
    ) as raised:
        dd.asset(Shop)  # type: ignore[arg-type]
    assert raised.value.collection is Shop


def test_a_reserved_column_is_refused() -> None:
    class Reserved(dy.Schema):
        dy_rule = dy.Int64()
        other = dy.Int64(alias="dy_x")
        fine = dy.Int64()

    with pytest.raises(ReservedColumnError) as raised:
        read_schema(Reserved)
    assert raised.value.columns == ("dy_rule", "dy_x")


def test_a_rule_or_filter_with_a_reserved_name_is_refused() -> None:
    class Reserved(dy.Schema):
        id = dy.Int64(primary_key=True)

        @dy.rule()
        def dy_survives(cls) -> pl.Expr:
            return cls.id.col > 0

    class Kept(dy.Schema):
        id = dy.Int64(primary_key=True)

    class Reserving(dy.Collection):
        kept: dy.LazyFrame[Kept]

        @dy.filter()
        def dy_index(self) -> pl.LazyFrame:
            return self.kept

    with pytest.raises(InvalidRuleError, match="begins with `dy_`") as raised:
        dd.asset(Reserved)
    assert (raised.value.schema, raised.value.rule) == ("Reserved", "dy_survives")
    with pytest.raises(InvalidRuleError, match="`dy_index` of `Reserving` has a name"):
        dd.build_collection_checks(Reserving, members={"kept": "kept"})


@pytest.mark.parametrize(
    ("first", "second", "check_name"),
    [("a b", "a_b", "dy_rule__a_b__nullability"), ("é", "ü", "dy_rule_____nullability")],
)
def test_two_rules_with_one_check_name_are_refused(
    first: str, second: str, check_name: str
) -> None:
    class Clash(dy.Schema):
        one = dy.Int64(alias=first)
        two = dy.Int64(alias=second)

    with pytest.raises(CheckNameCollisionError) as raised:
        read_schema(Clash)
    assert raised.value.names == (f"{first}|nullability", f"{second}|nullability")
    assert raised.value.check_name == check_name


def test_columns_that_polars_cannot_name_are_refused() -> None:
    class Patterns(dy.Schema):
        one = dy.Int64(alias="^a.*$")
        every = dy.Int64(alias="*")
        nul = dy.Int64(alias="a\0b")
        fine = dy.Int64(alias="^a")

    with pytest.raises(InvalidColumnError, match=r"`'\^a\.\*\$'`, `'\*'`, `'a\\x00b'`\.") as raised:
        read_schema(Patterns)
    assert raised.value.schema == "Patterns"
    assert raised.value.columns == ("^a.*$", "*", "a\0b")


@pytest.mark.parametrize(("column", "check"), [("^a", "x$"), ("a", "x\0")])
def test_a_rule_that_polars_cannot_name_is_refused(column: str, check: str) -> None:
    class Named(dy.Schema):
        one = dy.Int64(alias=column, check={check: lambda one: one > 0})

    with pytest.raises(InvalidRuleError, match="Polars cannot use") as raised:
        read_schema(Named)
    assert raised.value.rule == f"{column}|check__{check}"


def test_a_rule_without_cls_is_refused_with_its_fix() -> None:
    class Forgot(dy.Schema):
        id = dy.Int64()

        @dy.rule()  # type: ignore[arg-type]
        def positive() -> pl.Expr:
            return pl.col("id") > 0

    with pytest.raises(
        InvalidRuleError, match=r"Write `def positive\(cls\) -> pl.Expr:`"
    ) as raised:
        read_schema(Forgot)
    assert (raised.value.schema, raised.value.rule) == ("Forgot", "positive")


def test_a_rule_that_gives_no_expression_is_refused() -> None:
    class Wrong(dy.Schema):
        id = dy.Int64()

        @dy.rule()
        def positive(cls) -> Any:
            return True

    with pytest.raises(InvalidRuleError, match="returns a `bool`"):
        read_schema(Wrong)


def schema_with_check(expression: pl.Expr) -> type[dy.Schema]:
    columns = {"a": dy.Int64(check={"own": lambda _: expression}), "b": dy.Int64()}
    return type("Checked", (dy.Schema,), columns)


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (pl.col("a"), "Int64"),
        (pl.col("a").count(), "UInt32"),
        (pl.col("a").cast(pl.String), "String"),
        (pl.concat_list("a", "b"), "List"),
    ],
)
def test_a_rule_that_is_neither_true_nor_false_is_refused(expression: pl.Expr, dtype: str) -> None:
    schema = schema_with_check(expression)
    with pytest.raises(InvalidRuleError, match=f"gives `{dtype}` and not true or") as raised:
        read_schema(schema)
    assert raised.value.rule == "a|check__own"
    # Dataframely refuses the same on every frame.
    with pytest.raises(pl.exceptions.PolarsError):
        schema.is_valid(pl.DataFrame({"a": [1], "b": [1]}))


@pytest.mark.parametrize("expression", [pl.lit(None), pl.col("a").cast(pl.Boolean)])
def test_a_rule_that_is_null_is_no_mistake(expression: pl.Expr) -> None:
    assert read_schema(schema_with_check(expression)).rules
