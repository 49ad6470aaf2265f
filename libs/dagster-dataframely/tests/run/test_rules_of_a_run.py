"""Which rules decide over an exit, and how checks show them."""

from collections.abc import Callable
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Execute
from support.orders import (
    SOME,
    Frame,
    Orders,
    both,
    quarantined,
)

import dagster_dataframely as dd


class Free(dy.Schema):
    """A schema without any rule."""

    a = dy.Int64(nullable=True)
    b = dy.String(nullable=True)


@pytest.mark.parametrize("granularity", ["rule", "schema"])
@both
def test_a_schema_without_rules_has_only_the_column_schema_check(
    execute: Execute, given: Callable[[pl.DataFrame], Frame], granularity: Any
) -> None:
    frame = pl.DataFrame({"a": [None, 1], "b": ["x", None]})

    @dd.asset(Free, quarantine=True, check_granularity=granularity)
    def free() -> Frame:
        return given(frame)

    outcome = execute(free)
    assert outcome.checks == {"dy_schema__columns": (True, "ERROR")}
    outcome.assert_stored(table=frame, quarantine=None)


class Pairs(dy.Schema):
    """A rule over several rows."""

    customer = dy.String()
    amount = dy.Int64(min=0)

    @dy.rule()
    def two_rows(cls) -> pl.Expr:
        """A customer has two rows at least."""
        return pl.len().over("customer") >= 2


PAIRS = pl.DataFrame({"customer": ["a", "b", "a", "b", "b"], "amount": [1, 2, -3, 4, 5]})
"""`two_rows` holds, until the negative amount is taken away and leaves customer `a` with one row."""


@both
def test_rows_that_fail_once_others_are_taken_away_are_error_rows_too(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    @dd.asset(Pairs, quarantine=True)
    def pairs() -> Frame:
        return given(PAIRS)

    outcome = execute(pairs)
    assert outcome.failed == {"dy_rule__amount__min": "WARN", "dy_rule__two_rows": "WARN"}
    assert outcome.check_metadata["dy_rule__two_rows"]["dy_failed_count"] == 1
    expected = PAIRS.filter(pl.col("customer") == "a").with_columns(
        dy_rule__customer__nullability=pl.lit("valid"),
        dy_rule__amount__nullability=pl.lit("valid"),
        dy_rule__amount__min=pl.Series(["valid", "invalid"]),
        dy_rule__two_rows=pl.Series(["invalid", "valid"]),
    )
    outcome.assert_stored(table=PAIRS.filter(pl.col("customer") == "b"), quarantine=expected)


@both
def test_severities_given_to_the_asset_decide_over_the_schema(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    severities = {"amount|min": "warn", "primary_key": "warn", "note|max_length": "error"}
    outcome = execute(declare(Orders, given(SOME), quarantine=True, severities=severities))
    assert outcome.failed == {
        "dy_rule__amount__min": "WARN",
        "dy_rule__primary_key": "WARN",
        "dy_rule__note__max_length": "WARN",
    }
    outcome.assert_stored(
        table=SOME[1:], quarantine=quarantined(SOME[:1], row0=["dy_rule__note__max_length"])
    )


@pytest.mark.parametrize(
    ("granularity", "multi_column_rules", "expected"),
    [
        (
            "column",
            "schema",
            {
                "dy_schema__columns": (True, "ERROR"),
                "dy_col__id": (True, "ERROR"),
                "dy_col__amount": (False, "ERROR"),
                "dy_col__note": (False, "WARN"),
                "dy_schema__rules": (False, "ERROR"),
            },
        ),
        (
            "column",
            "per_rule",
            {
                "dy_schema__columns": (True, "ERROR"),
                "dy_col__id": (True, "ERROR"),
                "dy_col__amount": (False, "ERROR"),
                "dy_col__note": (False, "WARN"),
                "dy_rule__primary_key": (False, "ERROR"),
            },
        ),
        (
            "schema",
            "schema",
            {"dy_schema__columns": (True, "ERROR"), "dy_schema__rules": (False, "ERROR")},
        ),
    ],
)
def test_collapsed_checks_fail_at_the_worst_severity_of_their_failing_rules(
    execute: Execute,
    granularity: str,
    multi_column_rules: str,
    expected: dict[str, tuple[bool, str]],
) -> None:
    outcome = execute(
        declare(Orders, SOME, check_granularity=granularity, multi_column_rules=multi_column_rules)
    )
    assert outcome.checks == expected


def test_a_collapsed_check_has_a_row_for_each_rule_and_one_sample(execute: Execute) -> None:
    outcome = execute(declare(Orders, SOME, quarantine=True, check_granularity="column"))
    metadata = outcome.check_metadata["dy_col__amount"]
    rows = [dict(row.data) for row in metadata["dy_rules"].records]
    assert [(row["rule"], row["failures"], row["severity"]) for row in rows] == [
        ("amount|nullability", 0, "error"),
        ("amount|min", 2, "error"),
        ("amount|inf", 0, "error"),
        ("amount|nan", 0, "error"),
    ]
    negative = SOME.filter(pl.col("amount") < 0).select(
        pl.lit("amount|min").alias("dy_rule"), pl.all()
    )
    sample = metadata["dy_failed_sample"]
    assert [column.name for column in sample.schema.columns] == negative.columns
    assert [dict(row.data) for row in sample.records] == negative.to_dicts()


def test_rows_survive_exactly_once_and_in_order(execute: Execute) -> None:
    amounts = [float(number if number % 3 else -number - 1) for number in range(999)]
    frame = pl.DataFrame({"id": range(999), "amount": amounts, "note": ["n"] * 999})
    outcome = execute(declare(Orders, frame.lazy(), quarantine=True))
    assert outcome.table is not None
    assert outcome.quarantine is not None
    assert_frame_equal(outcome.table, frame.filter(pl.col("amount") >= 0))
    assert_frame_equal(outcome.quarantine.select(frame.columns), frame.filter(pl.col("amount") < 0))
