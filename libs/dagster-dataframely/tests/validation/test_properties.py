"""What must hold for the verdict of every schema and every frame, on random ones."""

import datetime as dt
import tempfile
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.predictions import predict, read
from support.strategies import OVER_TABLES, TALLY, Drawn, schemas_and_frames

from dagster_dataframely._metadata.statistics import describe_families
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._validation.in_memory import evaluate
from dagster_dataframely._validation.limits import Limits
from dagster_dataframely._validation.streaming import evaluate_plan
from dagster_dataframely._validation.verdict import Verdict
from dagster_dataframely.data import OrdersSchema


def tally_rows(verdict: Verdict[Any]) -> None:
    TALLY["rows"] += verdict.rows_in
    TALLY["error rows"] += verdict.error_count


@given(schemas_and_frames())
def test_verdict_equals_schema_filter(drawn: Drawn) -> None:
    verdict = evaluate(drawn.frame, read(drawn.schema), sample=2)
    result, failure = drawn.schema.filter(drawn.frame.rechunk())
    assert_frame_equal(verdict.survivors, result)
    if verdict.counts:  # Without rules, Dataframely's failures have no columns.
        assert_frame_equal(verdict.error_rows.select(result.columns), failure.invalid())
    assert {name: count for name, count in verdict.counts.items() if count} == failure.counts()
    tally_rows(verdict)


@given(schemas_and_frames(several_rows=True))
def test_what_survives_is_valid_and_no_row_is_lost(drawn: Drawn) -> None:
    schema, frame = drawn
    rules = read(schema)
    verdict = evaluate(frame, rules, sample=2)
    prediction = predict(schema, frame, {rule.name for rule in rules.rules})
    # Without a row, Dataframely fails no rule.
    invalid = bool(prediction.failing_tables) and not prediction.survivors.is_empty()
    assert schema.is_valid(verdict.survivors) == (not invalid)
    assert {rule: count for rule, count in verdict.counts.items() if count} == prediction.counts
    assert_frame_equal(verdict.survivors, prediction.survivors)
    fails = [
        (pl.col(rule.name) if rule.name in prediction.counts else pl.lit(value=False))
        .not_()
        .alias(rule.name)
        for rule in rules.row_rules
    ]
    error_rows = prediction.error_rows.select(*frame.columns, *fails)
    assert_frame_equal(verdict.error_rows, error_rows)
    assert verdict.samples.keys() == prediction.counts.keys() - OVER_TABLES.keys()
    tally_rows(verdict)


@given(schemas_and_frames(several_rows=True), st.integers(1, 12))
def test_both_engines_give_the_same(drawn: Drawn, bucket_rows: int) -> None:
    rules = read(drawn.schema)
    expected = evaluate(drawn.frame, rules, sample=2)
    limits = Limits(bucket_rows, failed_bytes=1, merged_rows=bucket_rows)
    with tempfile.TemporaryDirectory() as folder:
        # In one chunk, since Polars panics over some rules on nested columns in several (1.44). What
        # is lazy already, the library cannot mend.
        plan = drawn.frame.rechunk().lazy()
        streamed = evaluate_plan(
            plan, rules, Path(folder), sample=2, log=lambda _line: None, limits=limits
        )
        assert streamed.counts == expected.counts
        assert_frame_equal(streamed.survivors.collect(), expected.survivors)
        assert_frame_equal(streamed.error_rows.collect(), expected.error_rows)
        assert streamed.samples.keys() == expected.samples.keys()
        for name, rows in expected.samples.items():
            assert_frame_equal(streamed.samples[name], rows)
        assert streamed.duplicates.keys() == expected.duplicates.keys()
        for name, duplicates in expected.duplicates.items():
            assert streamed.duplicates[name].keys == duplicates.keys
            assert_frame_equal(streamed.duplicates[name].sample, duplicates.sample)
        assert describe_families(streamed.survivors) == describe_families(expected.survivors)
    tally_rows(expected)


class SampledOrders(dy.Schema):
    """The columns of `OrdersSchema` that Dataframely can sample."""

    order_id = OrdersSchema.order_id
    country = OrdersSchema.country
    quantity = OrdersSchema.quantity
    discount = OrdersSchema.discount
    gift = OrdersSchema.gift
    ordered_on = OrdersSchema.ordered_on
    packing_minutes = OrdersSchema.packing_minutes
    waited = dy.Duration(nullable=True, min=dt.timedelta(0))


@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.data())
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
