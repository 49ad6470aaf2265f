"""A run of every schema and every frame ends as Dataframely predicts, on random ones."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from dagster._serdes import serialize_value
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.predictions import ROW, Prediction, check_name, predict, read
from support.strategies import OVER_TABLES, TALLY, schemas_and_frames

import dagster_dataframely as dd
from dagster_dataframely._run.direct_invocation import DirectCall, direct_call

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
