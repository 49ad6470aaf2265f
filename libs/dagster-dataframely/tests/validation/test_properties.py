"""What must hold for every schema and every frame, on random ones."""

import datetime as dt
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster._serdes import serialize_value
from hypothesis import given, reject
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.strategies import OVER_TABLES, TALLY, Drawn, schemas_and_frames

import dagster_dataframely as dd
from dagster_dataframely._metadata.statistics import describe_families
from dagster_dataframely._run.direct_invocation import DirectCall, direct_call
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._validation import streaming as _streaming
from dagster_dataframely._validation.in_memory import evaluate
from dagster_dataframely._validation.streaming import evaluate_plan
from dagster_dataframely._validation.verdict import Verdict
from dagster_dataframely.data import OrdersSchema

ROW = "dy_row"
"""Numbers the rows; no schema that is taken has a column of this name."""


# What has to become of a schema and a frame, as Dataframely says.


def check_name(rule: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", rule.replace("|", "__"))


def refusal(schema: type[dy.Schema]) -> type[Exception] | None:
    """The error that a declaration with this schema raises."""
    if any(name.startswith("dy_") for name in schema.column_names()):
        return dd.errors.ReservedColumnError
    rules = [check_name(rule) for rule in schema._validation_rules(with_cast=False)]
    return dd.errors.CheckNameCollisionError if len(set(rules)) < len(rules) else None


@dataclass(frozen=True)
class Prediction:
    survivors: pl.DataFrame
    error_rows: pl.DataFrame
    """With a column for each rule that any row of the frame fails: whether this row does."""
    counts: Mapping[str, int]
    """For each rule that fails, how many rows fail it; 1 for a rule over the whole table."""

    @property
    def failing_tables(self) -> set[str]:
        return self.counts.keys() & OVER_TABLES.keys()


def failing_rows(numbered: type[dy.Schema], frame: pl.DataFrame) -> dict[str, set[int]]:
    # In one chunk: Polars panics over the fields of a struct in several (1.44).
    _, failure = numbered.filter(frame.rechunk())
    counts = failure.counts()
    details = failure.details() if counts else frame
    return {
        rule: set(details.filter(pl.col(rule) == "invalid")[ROW])
        for rule in counts
        if rule not in OVER_TABLES
    }


def predict(schema: type[dy.Schema], frame: pl.DataFrame, error_rules: set[str]) -> Prediction:
    """Filter with Dataframely until no error rule takes another row away, then look at the table."""
    numbered: Any = type("Numbered", (schema,), {ROW: dy.UInt32(nullable=True)})
    rows = frame.with_columns(pl.int_range(frame.height, dtype=pl.UInt32).alias(ROW))
    left, newly = rows, failing_rows(numbered, rows)
    failing = dict(newly)
    while gone := set[int]().union(*(newly[rule] for rule in error_rules & newly.keys())):
        left = left.filter(~pl.col(ROW).is_in(list(gone)))
        newly = failing_rows(numbered, left)
        for rule in error_rules & newly.keys():
            failing[rule] = failing.get(rule, set()) | newly[rule]
    lost = rows.filter(~pl.col(ROW).is_in(list(left[ROW])))
    flags = [pl.col(ROW).is_in(list(failed)).alias(rule) for rule, failed in failing.items()]
    tables = {
        name: left.select(rule.expr).item()
        for name, rule in schema._schema_validation_rules().items()
        if name in OVER_TABLES
    }
    return Prediction(
        survivors=left.drop(ROW),
        error_rows=lost.with_columns(flags).drop(ROW),
        counts={rule: len(failed) for rule, failed in failing.items()}
        | {rule: 1 for rule, holds in tables.items() if holds is False},
    )


# The rules alone.


def read(schema: type[dy.Schema]) -> SchemaRules:
    """Read a schema that can be read; one that cannot has to be refused with its error."""
    TALLY["schemas"] += 1
    if (error := refusal(schema)) is not None:
        with pytest.raises(error) as raised:
            read_schema(schema)
        assert len(str(raised.value)) <= 300
        TALLY[error.__name__] += 1
        reject()
    rules = read_schema(schema)
    TALLY["rules"] += len(rules.rules)
    return rules


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
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(_streaming, "BUCKET_ROWS", bucket_rows),
    ):
        # In one chunk, since Polars panics over some rules on nested columns in several (1.44). What
        # is lazy already, the library cannot mend.
        plan = drawn.frame.rechunk().lazy()
        streamed = evaluate_plan(plan, rules, Path(folder), sample=2, log=lambda _line: None)
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


# Whole runs.

CHANGES = ["nothing", "nothing", "nothing", "adds a column", "drops a column", "drifts"]


@st.composite
def changed(draw: st.DrawFn, frame: pl.DataFrame) -> tuple[pl.DataFrame, set[str]]:
    """The frame as a function might return it, and the columns that are not as declared."""
    change = draw(st.sampled_from(CHANGES))
    column = draw(st.sampled_from(frame.columns))
    if change == "adds a column":
        return frame.select(pl.lit(1).alias(ROW), pl.all()), set()
    if change == "drops a column":
        return frame.drop(column), {column}
    if change == "drifts":
        # No class of column stands for it but `dy.Any`, which stands for every dtype.
        return frame.with_columns(pl.lit(None, dtype=pl.Array(pl.UInt16, 7)).alias(column)), {
            column
        }
    return frame, set()


@dataclass
class Call:
    """What one direct invocation yielded, up to what it raised."""

    error: Exception | None = None
    table: pl.DataFrame | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    checks: list[dg.AssetCheckResult] = field(default_factory=list)
    quarantine: pl.DataFrame | None = None


def call(asset: dg.AssetsDefinition, instance: dg.DagsterInstance) -> Call:
    found = Call()

    def capture(_key: dg.AssetKey, frame: pl.DataFrame) -> None:
        found.quarantine = frame

    token = direct_call.set(DirectCall({}, None, capture))
    try:
        events: Any = asset(dg.build_asset_context(instance=instance))
        for event in events:
            if isinstance(event, dg.AssetCheckResult):
                found.checks.append(event)
            else:
                found.table, found.metadata = event.value, event.metadata
    except dd.errors.DagsterDataframelyError as error:
        found.error = error
    finally:
        direct_call.reset(token)
    return found


def refuse(constant: str) -> None:
    raise AssertionError(constant)


def assert_is_strict_json(metadata: Mapping[str, Any]) -> None:
    text = serialize_value(dg.AssetMaterialization("any", metadata=metadata))
    json.loads(text, parse_constant=refuse)


def reported(check: dg.AssetCheckResult) -> dict[str, int]:
    """For each rule the check reports on, how many rows fail it."""
    metadata: Any = dg.AssetMaterialization("any", metadata=check.metadata).metadata
    if "dy_rule" in metadata:
        return {metadata["dy_rule"].value: metadata["dy_failed_count"].value}
    records = metadata["dy_rules"].records
    return {record.data["rule"]: record.data["failures"] for record in records}


EXIT_ERRORS = {
    "written": type(None),
    "set aside": type(None),
    "aborted": dd.errors.ValidationAbortError,
    "set aside, then aborted": dd.errors.ValidationAbortError,
    "nothing survived": dd.errors.NothingSurvivedError,
}


def expected_exit(prediction: Prediction, warns: set[str], *, quarantine: bool) -> str:
    rejected = prediction.failing_tables - warns
    if not prediction.error_rows.height:
        return "aborted" if rejected else "written"
    if not quarantine:
        return "aborted"
    if not prediction.survivors.height:
        return "nothing survived"
    return "set aside, then aborted" if rejected else "set aside"


def expected_quarantine(prediction: Prediction, rules: list[str]) -> pl.DataFrame:
    words = [
        pl.when(pl.lit(rule in OVER_TABLES))
        .then(pl.lit("unknown"))
        .when(pl.col(rule) if rule in prediction.error_rows.columns else False)
        .then(pl.lit("invalid"))
        .otherwise(pl.lit("valid"))
        .alias(f"dy_rule__{check_name(rule)}")
        for rule in rules
    ]
    return prediction.error_rows.select(*prediction.survivors.columns, *words)


def assert_call(
    found: Call, prediction: Prediction, rules: list[str], warns: set[str], exit_: str
) -> None:
    assert type(found.error) is EXIT_ERRORS[exit_]
    if found.error is None:
        assert found.table is not None
        assert_frame_equal(found.table, prediction.survivors)
    else:
        assert len(str(found.error)) <= 300
        assert (found.table, found.metadata) == (None, {})
    if exit_ in ("written", "aborted"):
        assert found.quarantine is None
    else:
        assert found.quarantine is not None
        assert_frame_equal(found.quarantine, expected_quarantine(prediction, rules))
    columns_check, *rule_checks = found.checks
    assert columns_check.passed
    counts: dict[str, int] = {}
    for check in rule_checks:
        counts |= (own := reported(check))
        failing = [rule for rule, count in own.items() if count]
        assert check.passed == (not failing)
        warned = exit_ == "set aside" or warns.issuperset(failing or own)
        assert check.severity.name == ("WARN" if warned else "ERROR")
    assert counts == {rule: prediction.counts.get(rule, 0) for rule in rules}
    for metadata in (found.metadata, *(check.metadata for check in found.checks)):
        assert_is_strict_json(metadata)


@given(st.data())
def test_a_run_ends_as_dataframely_predicts(
    one_instance: dg.DagsterInstance, data: st.DataObject
) -> None:
    schema, frame = data.draw(schemas_and_frames(several_rows=True))
    names = [rule.name for rule in read(schema).rules]
    warns = data.draw(st.sets(st.sampled_from(names))) if names else set()
    quarantine, lazy = data.draw(st.booleans()), data.draw(st.booleans())
    returned, mismatches = data.draw(changed(frame))
    decorate = dd.asset(
        schema,
        name="drawn",
        quarantine=quarantine,
        severities=dict.fromkeys(warns, "warn"),
        check_granularity=data.draw(st.sampled_from(["rule", "schema"])),
        engine=data.draw(st.sampled_from(["auto", "streaming"])),
        row_sample=data.draw(st.sampled_from([0, 3])),
        max_failure_samples=data.draw(st.sampled_from([0, 3])),
    )
    found = call(decorate(lambda: returned.rechunk().lazy() if lazy else returned), one_instance)
    unlike = {name for name in mismatches if not isinstance(schema.columns()[name], dy.Any)}
    if unlike or mismatches - set(returned.columns):
        assert isinstance(found.error, dd.errors.ColumnSchemaError)
        TALLY["runs that ended: ColumnSchemaError"] += 1
        return
    prediction = predict(schema, returned.select(schema.column_names()), set(names) - warns)
    exit_ = expected_exit(prediction, warns, quarantine=quarantine)
    assert_call(found, prediction, names, warns, exit_)
    TALLY[f"runs that ended: {exit_}"] += 1


# Dataframely's own samples.


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
