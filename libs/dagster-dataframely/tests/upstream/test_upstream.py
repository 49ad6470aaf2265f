"""Facts of Dataframely and Polars that the library is built on.

A failure here says which of them changed, and what rests on it.
"""

from typing import Any

import dataframely as dy
import polars as pl
from dataframely._rule import RuleFactory

from dagster_dataframely._upstream import dataframely


def test_a_schemas_own_rules_have_no_public_list() -> None:
    """`schema_rule_expressions` and `rule_factories` read these two private places."""

    class Schema(dy.Schema):
        a = dy.Int64()

        @dy.rule()
        def positive(cls) -> pl.Expr:
            return cls.a.col > 0

    assert isinstance(Schema.__dict__["positive"], RuleFactory)
    assert list(Schema._schema_validation_rules()) == ["positive"]
    assert list(dataframely.rule_factories(Schema)) == ["positive"]
    assert str(dataframely.schema_rule_expressions(Schema)["positive"]()) == str(pl.col("a") > 0)


def test_rules_of_several_bases_merge_as_dataframely_merges_them() -> None:
    def schema(name: str, *bases: type, limit: int | None = None) -> Any:
        rule = {} if limit is None else {"r": dy.rule()(lambda cls: pl.col("a") > limit)}
        return type(name, bases or (dy.Schema,), rule)

    root = type("Root", (dy.Schema,), {"a": dy.Int64()})
    left, right = schema("Left", root, limit=1), schema("Right", root, limit=2)
    both = schema("Both", left, right)
    merged = dataframely.rule_factories(both)["r"].validation_fn(both)
    assert str(merged) == str(both._schema_validation_rules()["r"].expr)


def test_a_rule_of_dataframely_2_for_a_group_is_evaluated_over_the_group() -> None:
    """Dataframely 3 has no `group_by=`; 2 makes such a rule an object with `group_columns`."""

    class Grouped:
        expr = pl.col("a").sum() > 1
        group_columns = ("g", "h")

    class Schema(dy.Schema):
        @classmethod
        def _schema_validation_rules(cls) -> dict[str, Any]:
            return {"grouped": Grouped()}

    expression = dataframely.schema_rule_expressions(Schema)["grouped"]()
    frame = pl.DataFrame({"a": [1, 1, 1], "g": [1, 1, None], "h": [2, 2, 2]})
    assert frame.select(expression).to_series().to_list() == [True, True, False]


def test_a_null_rule_value_is_valid() -> None:
    class Schema(dy.Schema):
        a = dy.Int64(nullable=True, min=1)

    assert Schema.is_valid(pl.DataFrame({"a": [None]}, schema={"a": pl.Int64}))


def test_filters_of_a_collection_have_no_public_list() -> None:
    """`collection_filters` reads them, and `Collection.cast` makes an instance without validation."""

    class Schema(dy.Schema):
        a = dy.Int64(primary_key=True, min=0)

    class Collection(dy.Collection):
        member: dy.LazyFrame[Schema]

        @dy.filter()
        def positive(self) -> pl.LazyFrame:
            return self.member.filter(pl.col("a") > 0)

    (logic,) = dataframely.collection_filters(Collection).values()
    instance = Collection.cast({"member": pl.LazyFrame({"a": [-1, 1, 1]})})
    assert logic(instance).collect()["a"].to_list() == [1, 1]
    assert list(dataframely.collection_filters(Collection)) == ["positive"]


def test_an_expression_for_the_whole_table_fills_every_row_only_with_columns() -> None:
    """Why the rules are evaluated with `with_columns`."""
    frame = pl.DataFrame({"a": [1, 2]})
    total = (pl.col("a").sum() < 5).alias("r")
    assert frame.select(total).height == 1
    assert frame.with_columns(total)["r"].to_list() == [True, True]
