"""A schema is read once, at definition, and everything about it that cannot work raises there."""

from typing import Any

import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely.data import OrdersSchema
from dagster_dataframely.errors import (
    CheckNameCollisionError,
    CollectionNotSupportedError,
    InvalidColumnError,
    InvalidRuleError,
    InvalidSchemaError,
    InvalidSeverityError,
    ReservedColumnError,
)


class Base(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0, nullable=True, metadata=dd.severity(min="warn"))

    @dy.rule()
    def inherited(cls) -> pl.Expr:
        """An inherited rule.

        Only the first paragraph describes the check.
        """
        return cls.amount.col < 10


class Child(Base):
    name = dy.String(max_length=3, check=lambda name: name != "x")

    @dd.rule(severity="warn")
    def own(cls) -> pl.Expr:
        return cls.id.col > 0


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


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ({}, {"amount|min": "warn", "own": "warn"}),
        ({"amount|min": "error"}, {"own": "warn"}),
        ({"primary_key": "warn"}, {"amount|min": "warn", "own": "warn", "primary_key": "warn"}),
    ],
)
def test_the_assets_severities_override_the_schemas(
    severities: dict[str, Any], expected: dict[str, str]
) -> None:
    rules = read_schema(Child, severities).rules
    assert {rule.name: "warn" for rule in rules if rule.severity == "warn"} == expected


@pytest.mark.parametrize(
    ("severities", "problem"),
    [
        ({"amount|mim": "warn"}, "there is no such rule; there are `id|nullability`, `amount|min`"),
        ({"amount|min": "fatal"}, "'fatal' is no severity; use `error` or `warn`"),
        ({"amount|min": None}, "None is no severity"),
    ],
)
def test_a_severity_for_nothing_or_of_no_kind_is_refused(
    severities: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidSeverityError, match=problem.replace("|", r"\|")) as raised:
        dd.asset(Child, severities=severities)
    assert raised.value.rules == tuple(rule.name for rule in read_schema(Child).rules)


@pytest.mark.parametrize(
    ("column", "warns"),
    [
        (dy.Float64(min=0, metadata=dd.severity("warn")), {"nullability", "min", "inf", "nan"}),
        (dy.Float64(min=0, metadata=dd.severity(nullable="warn")), {"nullability"}),
        (dy.Float64(min=0, metadata=dd.severity("warn", nullable="error")), {"min", "inf", "nan"}),
        (
            dy.Int64(check=[lambda c: c > 0, lambda c: c > 1], metadata=dd.severity(check="warn")),
            {"check__0", "check__1"},
        ),
        (
            dy.Int64(check={"odd": lambda c: c % 2 == 1}, metadata=dd.severity(check="warn")),
            {"check__odd"},
        ),
        (dy.Int64(metadata={"owner": "ops"}), set()),
    ],
)
def test_a_columns_metadata_gives_its_rules_a_severity(column: dy.Column, warns: set[str]) -> None:
    schema = type("Schema", (dy.Schema,), {"a": column})
    found = {rule.name for rule in read_schema(schema).rules if rule.severity == "warn"}
    assert found == {f"a|{rule}" for rule in warns}


@pytest.mark.parametrize(
    "metadata",
    [
        dd.severity(max="warn"),
        dd.severity(check="warn"),
        dd.severity(nullable="warn"),
        dd.severity("fatal"),  # type: ignore[arg-type]
    ],
    ids=["no such rule", "no check", "nullable already", "no severity"],
)
def test_a_wrong_severity_on_a_column_is_refused_when_an_asset_is_declared(
    metadata: dict[str, Any],
) -> None:
    schema = type("Schema", (dy.Schema,), {"a": dy.Int64(nullable=True, min=1, metadata=metadata)})
    with pytest.raises(InvalidSeverityError):
        dd.asset(schema)


def test_a_wrong_severity_on_a_rule_is_refused_when_an_asset_is_declared() -> None:
    class Schema(dy.Schema):
        id = dy.Int64()

        @dd.rule(severity="fatal")  # type: ignore[arg-type]
        def positive(cls) -> pl.Expr:
            return cls.id.col > 0

    with pytest.raises(InvalidSeverityError, match="'fatal' is no severity"):
        dd.asset(Schema)


def test_severity_is_a_plain_mapping_that_merges() -> None:
    assert {"unit": "EUR", **dd.severity(min="warn")} == {
        "unit": "EUR",
        "dagster_dataframely": {"severity": {"min": "warn"}},
    }
    assert dd.severity("warn") == {"dagster_dataframely": {"severity": "warn"}}
