"""A frame and the rules give a verdict, without Dagster."""

from typing import Any, Literal

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.payments import verdict_of

import dagster_dataframely as dd
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._validation.verdict import rule_combinations
from dagster_dataframely.data import OrdersSchema, invalid_orders, valid_orders


class Payments(dy.Schema):
    """A key, an error rule, a warn rule, and a rule over a group of rows."""

    id = dy.Int64(primary_key=True)
    group = dy.String()
    amount = dy.Int64(min=0)

    @dy.rule()
    def group_has_two_rows(cls) -> pl.Expr:
        """A group has two rows or more."""
        return pl.len().over("group") >= 2

    @dy.rule()
    def total_is_small(cls) -> pl.Expr:
        """All amounts together are below 1,000."""
        return cls.amount.col.sum() < 1000


CHAIN = pl.DataFrame(
    {"id": [1, 2, 3, 4, 5], "group": ["a", "a", "b", "b", "b"], "amount": [1, -1, 2, 3, 4]}
)
"""Row 2 fails on its own; without it row 1 is alone in its group."""


def test_a_valid_frame_survives_whole() -> None:
    verdict = verdict_of(OrdersSchema, valid_orders())
    assert_frame_equal(verdict.survivors, valid_orders())
    assert verdict.error_count == 0
    assert set(verdict.counts.values()) == {0}
    assert verdict.samples == {}
    assert verdict.rows_in == 3


def test_agrees_with_dataframely_on_rules_that_look_at_one_row() -> None:
    severities: dict[str, Any] = {rule.name: "error" for rule in read_schema(OrdersSchema).rules}
    verdict = verdict_of(OrdersSchema, invalid_orders(), **severities)
    result, failure = OrdersSchema.filter(invalid_orders())
    assert_frame_equal(verdict.survivors, result)
    assert {name: count for name, count in verdict.counts.items() if count} == failure.counts()
    assert_frame_equal(verdict.error_rows.select(result.columns), failure.invalid())


def test_a_row_that_fails_only_once_others_are_gone_is_an_error_row() -> None:
    verdict = verdict_of(Payments, CHAIN)
    assert verdict.survivors["id"].to_list() == [3, 4, 5]
    assert_frame_equal(
        verdict.error_rows.select("id", "amount|min", "group_has_two_rows"),
        pl.DataFrame(
            {"id": [1, 2], "amount|min": [True, False], "group_has_two_rows": [False, True]}
        ),
    )
    assert verdict.failed(read_schema(Payments).rules) == {"amount|min": 1, "group_has_two_rows": 1}
    assert verdict.samples["group_has_two_rows"]["id"].to_list() == [1]


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        pytest.param([2000, -1500, 3], 1, id="without the error row it is too much"),
        pytest.param([2000, 5, 3], 1, id="no error row"),
        pytest.param([900, 5, -3], 0, id="valid"),
    ],
)
def test_a_rule_over_the_whole_table_judges_what_survives_and_no_row(
    amounts: list[int], expected: int
) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "group": ["a"] * 3, "amount": amounts})
    verdict = verdict_of(Payments, frame)
    assert verdict.counts["total_is_small"] == expected
    assert_frame_equal(verdict.survivors, frame.filter(pl.col("amount") >= 0))
    assert "total_is_small" not in [*verdict.samples, *verdict.error_rows.columns]


def test_rules_over_the_whole_table_are_told_from_rules_over_rows() -> None:
    def fails_without_rows(series: pl.Series) -> pl.Series:
        raise KeyError(series.name)

    class Mixed(dy.Schema):
        a = dy.Int64(check={"mean": lambda c: c.mean() < 5, "top": lambda c: c <= c.max()})
        g = dy.String(nullable=True, unique=True)

        @dy.rule()
        def rows(cls) -> pl.Expr:
            return pl.len() > 0

        @dy.rule()
        def keys(cls) -> pl.Expr:
            return cls.a.col.n_unique() == pl.len()

        @dy.rule()
        def group(cls) -> pl.Expr:
            return cls.a.col.sum().over("g") > 0

        @dy.rule()
        def mapped(cls) -> pl.Expr:
            return cls.a.col.map_batches(fails_without_rows, return_dtype=pl.Boolean)

    assert [rule.name for rule in read_schema(Mixed).table_rules] == [
        "a|check__mean",
        "rows",
        "keys",
    ]


def test_a_rule_over_the_whole_table_is_evaluated_without_rows_too() -> None:
    class Filled(dy.Schema):
        a = dy.Int64()

        @dy.rule()
        def has_rows(cls) -> pl.Expr:
            return pl.len() > 0

        @dy.rule()
        def mean_is_low(cls) -> pl.Expr:
            """Null, which passes, without rows."""
            return cls.a.col.mean() < 1

    empty = pl.DataFrame({"a": []}, schema={"a": pl.Int64})
    assert verdict_of(Filled, empty).counts == {
        "a|nullability": 0,
        "has_rows": 1,
        "mean_is_low": 0,
    }


def test_a_warn_rule_keeps_its_rows_and_counts_them() -> None:
    verdict = verdict_of(Payments, CHAIN, **{"amount|min": "warn"})  # type: ignore[arg-type]
    assert_frame_equal(verdict.survivors, CHAIN)
    assert verdict.counts["amount|min"] == 1
    assert verdict.samples["amount|min"]["id"].to_list() == [2]


def test_a_null_passes_a_rule() -> None:
    class Nullable(dy.Schema):
        a = dy.Int64(nullable=True, min=1)

    verdict = verdict_of(Nullable, pl.DataFrame({"a": [None, 0, 1]}))
    assert verdict.survivors["a"].to_list() == [None, 1]


def test_a_schema_without_rules_keeps_every_row() -> None:
    class Free(dy.Schema):
        a = dy.Int64(nullable=True)

    frame = pl.DataFrame({"a": [1, None]})
    verdict = verdict_of(Free, frame)
    assert_frame_equal(verdict.survivors, frame)
    assert (verdict.counts, verdict.error_rows.height) == ({}, 0)


@pytest.mark.parametrize("schema", [OrdersSchema, Payments])
def test_an_empty_frame_is_valid(schema: type[dy.Schema]) -> None:
    verdict = verdict_of(schema, schema.create_empty())
    assert (verdict.rows_in, verdict.survivors.height, verdict.error_rows.height) == (0, 0, 0)


def test_undeclared_columns_go_and_the_schemas_order_comes() -> None:
    frame = CHAIN.select("amount", pl.lit(1).alias("extra"), "group", "id")
    assert verdict_of(Payments, frame).survivors.columns == ["id", "group", "amount"]


def test_samples_hold_the_first_rows_up_to_their_number() -> None:
    frame = pl.DataFrame({"id": range(9), "group": ["a"] * 9, "amount": range(-9, 0)})
    verdict = verdict_of(Payments, frame, sample=3)
    assert verdict.samples["amount|min"]["amount"].to_list() == [-9, -8, -7]
    assert verdict_of(Payments, frame, sample=0).samples["amount|min"].is_empty()


def test_duplicates_are_sampled_by_key() -> None:
    frame = pl.DataFrame(
        {"id": [7, 1, 2, 1, 3, 2, 1, 9, 9], "group": ["a"] * 9, "amount": range(9)}
    )
    verdict = verdict_of(Payments, frame, sample=2)
    duplicates = verdict.duplicates["primary_key"]
    assert verdict.counts["primary_key"] == 7
    assert duplicates.keys == 3
    assert duplicates.sample.rows(named=True) == [
        {"id": 1, "dy_rows": 3},
        {"id": 2, "dy_rows": 2},
    ]
    # One row for each of those keys, the first.
    assert verdict.samples["primary_key"]["amount"].to_list() == [1, 2]
    assert verdict_of(Payments, frame, sample=0).duplicates["primary_key"].keys == 3
    assert verdict_of(Payments, frame[:2]).duplicates == {}


def test_samples_of_thousands_of_rules_are_gathered_one_at_a_time() -> None:
    names = [f"c{i}" for i in range(300)]
    schema = type("Wide", (dy.Schema,), {name: dy.Int64(min=0) for name in names})
    frame = pl.DataFrame({name: [0, -1] for name in names})
    samples = verdict_of(schema, frame).samples
    assert len(samples) == 300
    assert list(samples) == [f"{name}|min" for name in names]
    assert "c7|min" in samples
    assert samples["c7|min"] is not samples["c7|min"]
    assert_frame_equal(samples["c7|min"], frame[1:])


def test_rule_combinations_biggest_first() -> None:
    frame = pl.DataFrame({"id": [1, 1, 2, 3, 4], "group": ["a"] * 5, "amount": [-1, -2, -3, 1, -4]})
    error_rows = verdict_of(Payments, frame).error_rows
    assert rule_combinations(error_rows, read_schema(Payments)) == [
        (["amount|min", "primary_key"], 2),
        (["amount|min"], 2),
        (["group_has_two_rows"], 1),
    ]


def test_a_rule_may_be_named_rows() -> None:
    class Named(dy.Schema):
        a = dy.Int64()

        @dy.rule()
        def rows(cls) -> pl.Expr:
            return cls.a.col > 0

    verdict = verdict_of(Named, pl.DataFrame({"a": [1, -1, 0]}))
    assert rule_combinations(verdict.error_rows, read_schema(Named)) == [(["rows"], 2)]


class Nested(dy.Schema):
    """Two rules on a field of a struct, which Polars 1.44 evaluates together, and an array."""

    struct = dy.Struct({"a": dy.Bool(check=lambda value: value.is_not_null())})
    array = dy.Array(dy.Int64(), 2)


IN_TWO_CHUNKS = pl.concat(
    [
        pl.DataFrame(row, schema=Nested.create_empty().schema)
        for row in ({"struct": [None], "array": [None]}, {"struct": [{"a": None}], "array": [None]})
    ],
    rechunk=False,
)
"""As two partitions or files lie one behind the other."""


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("sample", [0, 1])
def test_nested_columns_may_lie_in_several_chunks(
    sample: int, engine: Literal["in-memory", "streaming"]
) -> None:
    assert IN_TWO_CHUNKS["struct"].n_chunks() == 2
    _, *checks = dd.wiring.evaluate(
        Nested, IN_TWO_CHUNKS, asset="any", engine=engine, max_failure_samples=sample
    )
    found: list[Any] = [check.metadata for check in checks]
    counts = {check["dy_rule"].value: check["dy_failed_count"].value for check in found}
    assert counts == {
        "struct|nullability": 1,
        "struct|inner_a_nullability": 1,
        "struct|inner_a_check": 1,
        "array|nullability": 2,
        "array|inner_nullability": 0,
    }
