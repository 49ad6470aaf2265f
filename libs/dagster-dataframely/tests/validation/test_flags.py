"""Rules are told apart by the rows they look at, and evaluated as often as it takes."""

from unittest.mock import Mock

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.payments import verdict_of

from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import Rule
from dagster_dataframely._validation.flags import row_wise_rules, volatile_rules
from dagster_dataframely._validation.in_memory import evaluate


def test_each_rule_is_evaluated_once() -> None:
    calls: list[int] = []

    def below_100(series: pl.Series) -> pl.Series:
        calls.append(len(series))
        return series < 100

    class Counting(dy.Schema):
        a = dy.Int64(min=0)

        @dy.rule()
        def counted(cls) -> pl.Expr:
            return cls.a.col.map_batches(below_100, return_dtype=pl.Boolean)

    frame = pl.DataFrame({"a": [1, 2, 200, 300]})
    verdict = verdict_of(Counting, frame)
    # Over no rows at definition, then once over all, and once over those that are left, as it may
    # look at several.
    assert calls == [0, 4, 2]
    assert verdict.counts["counted"] == 2
    verdict_of(Counting, frame.head(2))
    assert calls == [0, 4, 2, 2]  # The schema is not read again.


def test_only_hand_written_rules_over_several_rows_are_volatile() -> None:
    class Mixed(dy.Schema):
        a = dy.Int64(primary_key=True, check=lambda a: a != 7)
        b = dy.Int64(unique=True, check={"rises": lambda b: b.diff().fill_null(1) > 0})

        @dy.rule()
        def row_wise(cls) -> pl.Expr:
            return cls.a.col < cls.b.col

        @dy.rule()
        def grouped(cls) -> pl.Expr:
            return cls.b.col.max().over("a") < 5

    rules = read_schema(Mixed)
    found = volatile_rules(rules, Mixed.create_empty().schema)
    assert [rule.name for rule in found] == ["b|check__rises", "grouped"]


class Consecutive(dy.Int64):
    """A column type of a user's, whose rule looks at several rows."""

    def validation_rules(self, expr: pl.Expr) -> dict[str, pl.Expr]:
        steps = expr - expr.shift()
        return {**super().validation_rules(expr), "consecutive": steps.fill_null(1) == 1}


class Inherited(Consecutive):
    """The same, by another name."""


class ManyTypes(dy.Schema):
    """The rule of a user's column type at each depth."""

    plain = Consecutive()
    inherited = Inherited(min=0, unique=True)
    struct = dy.Struct({"a": Inherited()}, unique=True)
    list = dy.List(Consecutive(), unique=True)
    own = dy.Int64(min=0, unique=True)


def test_rules_of_a_users_column_type_are_evaluated_again() -> None:
    rules = read_schema(ManyTypes)
    assert [rule.name for rule in volatile_rules(rules, ManyTypes.create_empty().schema)] == [
        "plain|consecutive",
        "inherited|consecutive",
        "struct|inner_a_consecutive",
    ]
    frame = pl.DataFrame(
        [
            {"plain": v, "inherited": v, "struct": {"a": v}, "list": [v], "own": own}
            for v, own in [(1, 1), (2, -1), (3, 2)]
        ]
    )
    verdict = evaluate(frame, rules, sample=5)
    assert_frame_equal(verdict.survivors, frame.head(1))
    assert ManyTypes.is_valid(verdict.survivors)


class FirstOnly(dy.Int64):
    """A column type with a rule of its own under the name of Dataframely's."""

    def validation_rules(self, expr: pl.Expr) -> dict[str, pl.Expr]:
        return {"unique": expr.is_first_distinct()}


def test_a_users_rule_called_unique_is_not_taken_for_dataframelys() -> None:
    schema = type("Schema", (dy.Schema,), {"a": FirstOnly()})
    verdict = verdict_of(schema, pl.DataFrame({"a": [1, 1, 2]}))
    assert verdict.counts == {"a|unique": 1}
    assert verdict.duplicates == {}


A = pl.col("a")


@pytest.mark.parametrize(
    ("expression", "row_wise"),
    [
        (A.is_between(0, 5) & (pl.col("b") % 2 == 0), True),
        (pl.when(A > 1).then(pl.col("b") > 1).otherwise(pl.lit(value=True)), True),
        (A.is_in([1, 2]), True),
        (pl.col("s").str.contains("^a"), True),
        (pl.col("l").list.eval(pl.element() > 1).list.all(), True),
        (pl.all_horizontal(A > 1, pl.col("b") > 1), True),
        (pl.lit(value=True), True),
        (A.sum().over("b") > 1, False),
        (pl.len().over("b") > 1, False),
        (A.mean() < A, False),
        ((A > 1) & (A.sum() > 1), False),
        ((A > 1).any(), False),
        (A.is_in(pl.col("b")), False),
        (A.shift() > 1, False),
        (A.cum_sum() > 1, False),
        (A.forward_fill() > 1, False),
        (A.is_first_distinct(), False),
        (pl.struct("a", "b").is_unique(), False),
        (A.sort() > 1, False),
        (A.map_batches(lambda series: series > 1, return_dtype=pl.Boolean), False),
    ],
)
def test_row_wise_expressions_are_told_apart(expression: pl.Expr, *, row_wise: bool) -> None:
    columns = {"a": [1], "b": [1], "s": [""], "l": [[1]]}
    rule = Rule("any", None, "error", "", expression)
    rules = read_schema(type("Any", (dy.Schema,), {"a": dy.Int64()}))
    found = row_wise_rules(rules, [rule], pl.DataFrame(columns).schema)
    assert found == ([rule] if row_wise else [])


def test_many_rules_are_told_apart_on_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    concat = Mock(wraps=pl.concat)
    monkeypatch.setattr(pl, "concat", concat)
    rules = read_schema(type("Wide", (dy.Schema,), {f"c{i}": dy.Int64() for i in range(9)}))
    assert len(row_wise_rules(rules, rules.rules, rules.schema.create_empty().schema)) == 9
    assert concat.call_count == 1
