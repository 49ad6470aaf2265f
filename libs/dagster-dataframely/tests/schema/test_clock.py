"""A rule that asks for the time: its expression is of the run, its code version is not of the clock."""

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely._schema.clock import describe_logic
from dagster_dataframely._schema.code_version import derive_code_version
from dagster_dataframely._schema.read import build_expressions, read_schema
from dagster_dataframely._schema.rules import Rule


def now() -> dt.datetime:
    return dt.datetime.now()


LATEST = dt.timedelta(hours=1)


class Events(dy.Schema):
    id = dy.Int64(primary_key=True)
    seen = dy.Datetime(check={"past": lambda seen: seen <= now()})

    @dy.rule()
    def recent(cls) -> pl.Expr:
        return cls.seen.col >= now() - dt.timedelta(days=30)


def test_expressions_are_built_anew_for_each_run() -> None:
    rules = read_schema(Events)
    time.sleep(0.01)
    built = build_expressions(rules)
    changed = [
        new.name
        for old, new in zip(rules.rules, built.rules, strict=True)
        if str(old.expression) != str(new.expression)
    ]
    assert changed == ["seen|check__past", "recent"]
    assert [rule.name for rule in built.rules] == [rule.name for rule in rules.rules]


def test_rules_without_functions_are_not_built_again() -> None:
    rules = read_schema(type("Plain", (dy.Schema,), {"a": dy.Int64(min=0)}))
    assert build_expressions(rules) is rules


def test_the_code_version_does_not_depend_on_the_clock() -> None:
    rules = read_schema(Events)
    time.sleep(0.01)
    assert derive_code_version(build_expressions(rules)) == derive_code_version(rules)


def logic(function: Callable[..., pl.Expr]) -> str:
    return describe_logic(Rule("any", None, "error", "", function(), function=function))


def in_days(days: int) -> Callable[[], pl.Expr]:
    return lambda: pl.col("a") <= dt.datetime.now() - dt.timedelta(days)


def today() -> pl.Expr:
    return pl.col("a") <= dt.date.today()


def by_a_helper() -> pl.Expr:
    return pl.col("a") <= now()


def with_a_set() -> pl.Expr:
    return pl.lit(dt.datetime.now().year in {2026, 2027})


@pytest.mark.parametrize("function", [today, by_a_helper, with_a_set, in_days(1)])
def test_what_the_clock_says_is_no_part_of_the_logic(function: Callable[..., pl.Expr]) -> None:
    assert str(dt.datetime.now().date()) not in logic(function)


def test_constants_of_a_function_that_asks_for_the_time_count() -> None:
    def within(days: str) -> Any:
        scope: dict[str, Any] = {"dt": dt, "pl": pl}
        source = f"def within(): return pl.col('a') > dt.datetime.now() - dt.timedelta({days})"
        exec(source, scope)
        return scope["within"]

    assert logic(within("30")) != logic(within("31"))
    assert logic(within("30")) == logic(within("30"))


def test_a_rule_without_a_clock_is_described_by_its_expression() -> None:
    def above() -> pl.Expr:
        return pl.col("a") > LATEST

    assert logic(above) == str(above())


def test_a_row_is_compared_with_the_time_of_its_run() -> None:
    @dd.asset(Events)
    def events() -> pl.DataFrame:
        return pl.DataFrame({"id": [1], "seen": [dt.datetime.now()]})

    time.sleep(0.01)
    assert dd.testing.invoke(events).failed == []


def test_a_pattern_that_rust_cannot_compile_is_rejected_at_definition() -> None:
    fields: dict[str, dy.Column] = {"x": dy.String(regex="(?=a)b"), "y": dy.String(regex="a")}
    for column in (fields["x"], dy.List(dy.String(regex="(a)\\1")), dy.Struct(fields)):
        with pytest.raises(dd.errors.InvalidRuleError, match="Rust cannot compile"):
            dd.asset(type("Look", (dy.Schema,), {"a": column}))


def test_a_schema_is_read_once_for_each_set_of_overrides() -> None:
    assert read_schema(Events) is read_schema(Events)
    other = read_schema(Events, {"recent": "warn"}, ["seen"])
    assert read_schema(Events, {"recent": "warn"}, ["seen"]) is other
    assert other.redacted == {"seen"}
    assert read_schema(Events).redacted == frozenset()
