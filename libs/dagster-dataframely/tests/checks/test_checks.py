"""Rules become checks at three granularities; specs and results come from the same groups."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely._schema.words import describe_expression
from dagster_dataframely.errors import CheckNameCollisionError

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


class Orders(dy.Schema):
    """Two columns with rules, one without, a key, and two schema rules."""

    id = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True, min=0, max=10, metadata=dd.severity(max="warn"))
    note = dy.String(nullable=True)

    @dy.rule()
    def small(cls) -> pl.Expr:
        """Amounts are below 100."""
        return cls.amount.col < 100

    @dd.rule(severity="warn")
    def odd(cls) -> pl.Expr:
        """Amounts are odd."""
        return cls.amount.col % 2 == 1


FRAME = pl.DataFrame({"id": [1, 2, 3, 3], "amount": [1, 11, -1, 5], "note": [None, "a", None, "b"]})
"""A valid row, a warn row, an error row that fails `min` and the key, and one that fails the key."""


RULE = {
    "dy_schema__columns": (True, ERROR),
    "dy_rule__id__nullability": (True, ERROR),
    "dy_rule__amount__min": (False, ERROR),
    "dy_rule__amount__max": (False, WARN),
    "dy_rule__primary_key": (False, ERROR),
    "dy_rule__small": (True, ERROR),
    "dy_rule__odd": (True, WARN),
}


COLUMNS = {
    "dy_schema__columns": (True, ERROR),
    "dy_col__id": (True, ERROR),
    "dy_col__amount": (False, ERROR),
}


SHARED = {"dy_schema__rules": (False, ERROR)}


GRANULARITIES: list[tuple[dict[str, Any], dict[str, tuple[bool, dg.AssetCheckSeverity]]]] = [
    ({}, RULE),
    ({"multi_column_rules": "per_rule"}, RULE),
    ({"check_granularity": "column"}, COLUMNS | SHARED),
    (
        {"check_granularity": "column", "multi_column_rules": "per_rule"},
        COLUMNS | {name: RULE[name] for name in list(RULE)[-3:]},
    ),
    ({"check_granularity": dd.Granularity.SCHEMA}, {"dy_schema__columns": (True, ERROR)} | SHARED),
]


@pytest.mark.parametrize(("settings", "expected"), GRANULARITIES)
def test_checks_and_their_results(
    settings: dict[str, Any], expected: dict[str, tuple[bool, dg.AssetCheckSeverity]]
) -> None:
    specs = dd.wiring.check_specs(Orders, asset="orders", **settings)
    results = list(dd.wiring.evaluate(Orders, FRAME, asset="orders", **settings))
    assert {r.check_name: (r.passed, r.severity) for r in results} == expected
    assert [spec.name for spec in specs] == [result.check_name for result in results]
    assert [spec.blocking for spec in specs] == [True] + [False] * (len(specs) - 1)
    assert all(spec.description for spec in specs)


def metadata_of(check: str, frame: pl.DataFrame = FRAME, **settings: Any) -> dict[str, Any]:
    """A check's metadata as plain values, with tables as lists of rows."""
    results = dd.wiring.evaluate(Orders, frame, asset="orders", **settings)
    (result,) = [result for result in results if result.check_name == check]
    return {
        key: [dict(record.data) for record in value.records]
        if isinstance(value, dg.TableMetadataValue)
        else value.value
        for key, value in result.metadata.items()
    }


def test_metadata_of_a_check_for_one_rule() -> None:
    assert metadata_of("dy_rule__amount__min") == {
        "dy_rule": "amount|min",
        "dy_rule__expr": '[(col("amount")) >= (dyn int: 0)]',
        "dy_failed_count": 1,
        "dy_severity": "error",
        "dy_failed_sample": [{"id": 3, "amount": -1, "note": None}],
    }
    assert metadata_of("dy_rule__primary_key") == {
        "dy_rule": "primary_key",
        "dy_rule__expr": describe_expression(pl.struct("id").is_unique()),
        "dy_failed_count": 2,
        "dy_severity": "error",
        "dy_failed_sample": [{"id": 3, "amount": -1, "note": None}],
        "dy_duplicated_keys": 1,
        "dy_duplicated_sample": [{"id": 3, "dy_rows": 2}],
    }
    assert metadata_of("dy_rule__primary_key", FRAME[:3])["dy_duplicated_keys"] == 0
    assert metadata_of("dy_rule__small") == {
        "dy_rule": "small",
        "dy_rule__expr": '[(col("amount")) < (dyn int: 100)]',
        "dy_failed_count": 0,
        "dy_severity": "error",
    }


def test_metadata_of_a_check_for_several_rules() -> None:
    assert metadata_of("dy_col__amount", check_granularity="column") == {
        "dy_rules": [
            {
                "rule": "amount|min",
                "expression": '[(col("amount")) >= (dyn int: 0)]',
                "failures": 1,
                "severity": "error",
            },
            {
                "rule": "amount|max",
                "expression": '[(col("amount")) <= (dyn int: 10)]',
                "failures": 1,
                "severity": "warn",
            },
        ],
        "dy_severity": "error",
        "dy_failed_sample": [
            {"dy_rule": "amount|min", "id": 3, "amount": -1, "note": None},
            {"dy_rule": "amount|max", "id": 2, "amount": 11, "note": "a"},
        ],
    }


@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
def test_no_failed_sample_when_none_is_wanted(granularity: Any) -> None:
    settings = {"check_granularity": granularity, "max_failure_samples": 0}
    results = dd.wiring.evaluate(Orders, FRAME, asset="orders", **settings)
    assert not any("dy_failed_sample" in result.metadata for result in results)


def test_a_check_for_several_rules_that_only_warn_warns() -> None:
    results = dd.wiring.evaluate(Orders, FRAME[:2], asset="o", check_granularity="schema")
    assert [(r.passed, r.severity) for r in results] == [(True, ERROR), (False, WARN)]


def test_a_schema_without_rules_has_only_the_check_of_its_columns() -> None:
    schema = type("Schema", (dy.Schema,), {"a": dy.Int64(nullable=True)})
    for granularity in dd.Granularity:
        specs = dd.wiring.check_specs(schema, asset="a", check_granularity=granularity)
        assert [spec.name for spec in specs] == ["dy_schema__columns"]


def test_two_columns_with_one_check_name_are_refused_at_their_granularity() -> None:
    class Clash(dy.Schema):
        one = dy.Int64(alias="a b", nullable=True, min=1)
        two = dy.Int64(alias="a_b", nullable=True, max=1)

    assert len(dd.wiring.check_specs(Clash, asset="clash")) == 3
    with pytest.raises(CheckNameCollisionError) as raised:
        dd.wiring.check_specs(Clash, asset="clash", check_granularity="column")
    assert (raised.value.check_name, raised.value.names) == ("dy_col__a_b", ("a b", "a_b"))


def test_odd_names_keep_their_original_in_description_and_metadata() -> None:
    class Odd(dy.Schema):
        size = dy.Int64(alias="größe (cm)|netto", nullable=True, min=1)

    (_, spec) = dd.wiring.check_specs(Odd, asset="odd")
    assert spec.name == "dy_rule__gr__e__cm___netto__min"
    assert spec.description == "`größe (cm)|netto`: at least 1"
    frame = pl.DataFrame({"größe (cm)|netto": [0]})
    (_, result) = dd.wiring.evaluate(Odd, frame, asset="odd")
    assert result.metadata["dy_rule"].value == "größe (cm)|netto|min"
