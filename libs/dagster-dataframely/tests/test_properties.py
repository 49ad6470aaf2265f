"""What must hold for every schema and every frame, on random ones."""

import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import dataframely as dy
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from dagster_dataframely import _streaming
from dagster_dataframely._rules import read_schema
from dagster_dataframely._statistics import describe_families
from dagster_dataframely._streaming import evaluate_plan
from dagster_dataframely._validation import evaluate
from dagster_dataframely.data import OrdersSchema

INTEGERS = st.integers(-3, 3)
FLOATS = st.sampled_from([-1.0, 0.0, 1.5, float("nan"), float("inf"), -float("inf")])
TEXTS = st.sampled_from(["", "a", "ab", "abc", "é", "b\n"])

Column = tuple[dy.Column, st.SearchStrategy[Any]]


@st.composite
def columns(draw: st.DrawFn) -> Column:
    """A column with random constraints, and what values a frame may have in it."""
    often_not = st.sampled_from([False, False, False, True])
    common = dict[str, Any](nullable=draw(st.booleans()), unique=draw(often_not))
    low = draw(st.one_of(st.none(), INTEGERS))
    kind = draw(st.sampled_from(["integer", "float", "string", "boolean", "list"]))
    if kind == "integer":
        check = draw(st.sampled_from([None, lambda c: c != 1, [lambda c: c < 3, lambda c: c > -3]]))
        return dy.Int64(min=low, check=check, **common), INTEGERS
    if kind == "float":
        flags = dict[str, Any](allow_nan=draw(st.booleans()), allow_inf=draw(st.booleans()))
        return dy.Float64(max_exclusive=low, **flags, **common), FLOATS
    if kind == "string":
        regex = draw(st.sampled_from([None, "^a", "b$"]))
        shortest = draw(st.sampled_from([None, 1, 2]))
        return dy.String(min_length=shortest, regex=regex, **common), TEXTS
    if kind == "list":
        lists = st.lists(INTEGERS, max_size=3)
        return dy.List(dy.Int64(min=low), max_length=2, nullable=True), lists
    return dy.Bool(**common), st.booleans()


@st.composite
def schemas_and_frames(
    draw: st.DrawFn, *, several_rows: bool = False
) -> tuple[type[dy.Schema], pl.DataFrame]:
    """A schema, with rules over several rows if asked for, and a frame with its columns."""
    drawn = draw(st.lists(columns(), min_size=1, max_size=4))
    members: dict[str, Any] = {f"c{index}": column for index, (column, _) in enumerate(drawn)}
    values = {f"c{index}": strategy for index, (_, strategy) in enumerate(drawn)}
    if draw(st.booleans()):
        members["key"], values["key"] = dy.Int64(primary_key=True), INTEGERS
    if several_rows:
        members["group"], values["group"] = dy.Int64(nullable=True), st.integers(0, 2)
        least, most = draw(st.integers(0, 3)), draw(st.integers(0, 12))
        members["big_groups"] = dy.rule()(lambda cls: pl.len().over("group") >= least)
        members["few_rows"] = dy.rule()(lambda cls: pl.len().over(pl.lit(1)) <= most)
    schema: type[dy.Schema] = type("Schema", (dy.Schema,), members)
    row = st.fixed_dictionaries(
        {name: st.one_of(st.none(), strategy) for name, strategy in values.items()}
    )
    rows = draw(st.lists(row, max_size=12))
    return schema, pl.DataFrame(rows, schema=schema.create_empty().schema)


@given(schemas_and_frames())
@settings(max_examples=300, deadline=None)
def test_verdict_equals_schema_filter(drawn: tuple[type[dy.Schema], pl.DataFrame]) -> None:
    schema, frame = drawn
    verdict = evaluate(frame, read_schema(schema), sample=2)
    result, failure = schema.filter(frame)
    assert_frame_equal(verdict.survivors, result)
    if verdict.counts:  # Without rules, Dataframely's failures have no columns.
        assert_frame_equal(verdict.error_rows.select(result.columns), failure.invalid())
    assert {name: count for name, count in verdict.counts.items() if count} == failure.counts()


@given(schemas_and_frames(several_rows=True))
@settings(max_examples=300, deadline=None)
def test_what_survives_is_valid_and_no_row_is_lost(
    drawn: tuple[type[dy.Schema], pl.DataFrame],
) -> None:
    schema, frame = drawn
    verdict = evaluate(frame, read_schema(schema), sample=2)
    assert schema.is_valid(verdict.survivors)
    assert verdict.rows_in == frame.height
    both = pl.concat([verdict.survivors, verdict.error_rows.select(frame.columns)])
    assert_frame_equal(both, frame, check_row_order=False)
    failures = verdict.error_rows.select(
        pl.any_horizontal(~pl.col(rule.name) for rule in read_schema(schema).error_rules)
    )
    assert failures.to_series().all()


@given(schemas_and_frames(several_rows=True), st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_both_engines_give_the_same(
    drawn: tuple[type[dy.Schema], pl.DataFrame], bucket_rows: int
) -> None:
    schema, frame = drawn
    rules = read_schema(schema)
    expected = evaluate(frame, rules, sample=2)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(_streaming, "BUCKET_ROWS", bucket_rows),
    ):
        streamed = evaluate_plan(
            frame.lazy(), rules, Path(folder), sample=2, log=lambda _line: None
        )
        assert streamed.counts == expected.counts
        assert_frame_equal(streamed.survivors.lazy().collect(), expected.survivors)
        assert_frame_equal(streamed.error_rows.lazy().collect(), expected.error_rows)
        for name, rows in expected.samples.items():
            assert_frame_equal(streamed.samples[name], rows)
        assert describe_families(streamed.survivors) == describe_families(expected.survivors)


@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.data())
@settings(max_examples=60, deadline=None)
def test_verdict_equals_schema_filter_on_sampled_and_corrupted_frames(
    seed: int, rows: int, data: st.DataObject
) -> None:
    frame: pl.DataFrame = SampledOrders.sample(rows, generator=dy.random.Generator(seed))
    for name in data.draw(st.lists(st.sampled_from(frame.columns), max_size=3)):
        every = data.draw(st.integers(1, 4))
        corrupted = pl.when(pl.int_range(pl.len()) % every == 0).then(pl.col(name).first())
        frame = frame.with_columns(corrupted.alias(name))
    verdict = evaluate(frame, read_schema(SampledOrders), sample=2)
    result, failure = SampledOrders.filter(frame)
    assert_frame_equal(verdict.survivors, result)
    assert {name: count for name, count in verdict.counts.items() if count} == failure.counts()


class SampledOrders(dy.Schema):
    """The columns of `OrdersSchema` that Dataframely can sample."""

    order_id = OrdersSchema.order_id
    country = OrdersSchema.country
    quantity = OrdersSchema.quantity
    discount = OrdersSchema.discount
    gift = OrdersSchema.gift
    ordered_on = OrdersSchema.ordered_on
    packing_time = OrdersSchema.packing_time
