"""Severities come from the schema, its columns and its rules; an asset overrides them."""

from typing import Any

import dataframely as dy
import polars as pl
import pytest
from support.inherited import Child

import dagster_dataframely as dd
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely.errors import (
    InvalidSeverityError,
)


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
