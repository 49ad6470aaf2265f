"""Each of the six exits as a real run and as a direct invocation."""

import math
from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Execute
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely.data import OrdersSchema, valid_orders

Frame = pl.DataFrame | pl.LazyFrame


class Orders(dy.Schema):
    """A column of each severity, and a key."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))


ALL_CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__amount__nullability",
    "dy_rule__amount__min",
    "dy_rule__amount__inf",
    "dy_rule__amount__nan",
    "dy_rule__note__max_length",
    "dy_rule__primary_key",
]

CLEAN = pl.DataFrame({"id": [3, 1, 2], "amount": [1.0, 2.0, 0.0], "note": ["abc", None, ""]})
"""No rule fails; not sorted, so that a changed order shows."""

WARNED = CLEAN.with_columns(note=pl.Series(["abcd", None, "abcde"]))
"""Two rows fail the rule that only warns."""

SOME = pl.DataFrame(
    {
        "id": [3, 1, 2, 2, 9],
        "amount": [1.0, -1.0, 5.0, 6.0, -2.0],
        "note": ["long note", None, "", None, None],
    }
)
"""Rows 2 and 5 have a negative amount, rows 3 and 4 share a key, and the survivor fails a warn rule."""

SOME_ERROR_RULES = {"amount|min": 2, "primary_key": 2}

ALL_BAD = pl.DataFrame({"id": [1, 2], "amount": [-1.0, math.nan], "note": ["long note", None]})
"""Every row fails an error rule, and one a warn rule too."""

EMPTY = CLEAN.clear()
"""No rows, which is not the same as no frame."""

DRIFTED = pl.DataFrame({"extra": [1], "note": [1], "amount": ["1.0"]})
"""A key column that is missing, two columns of another dtype, one that is undeclared."""

CASTABLE = pl.DataFrame(
    {"id": ["1"], "amount": [1], "note": [None]}, schema_overrides={"note": pl.String}
)
"""Columns of other dtypes that a cast turns into the declared ones."""

RULE_COLUMNS = dict.fromkeys(ALL_CHECKS[1:], pl.String)


def as_eager(frame: pl.DataFrame) -> Frame:
    return frame


def as_lazy(frame: pl.DataFrame) -> Frame:
    return frame.lazy()


both = pytest.mark.parametrize("given", [as_eager, as_lazy])


def verdicts(passing: str, **failing: str) -> dict[str, tuple[bool, str]]:
    """Every check, in order: the failing ones at their severity, the rest passing at their own."""
    own = dict.fromkeys(ALL_CHECKS, passing) | {"dy_rule__note__max_length": "WARN"}
    expected = {name: (name not in failing, failing.get(name, own[name])) for name in ALL_CHECKS}
    return expected | {"dy_schema__columns": (True, "ERROR")}


def quarantined(rows: pl.DataFrame, **invalid: list[str]) -> pl.DataFrame:
    """Error rows with the rules each of them fails, by the index of the row."""
    words = {
        check: [
            "invalid" if check in invalid.get(f"row{i}", []) else "valid"
            for i in range(rows.height)
        ]
        for check in RULE_COLUMNS
    }
    return rows.hstack(pl.DataFrame(words, schema=RULE_COLUMNS))


@pytest.mark.parametrize("quarantine", [False, True])
@both
def test_clean_rows_are_all_written_in_their_order(
    execute: Execute, given: Callable[[pl.DataFrame], Frame], *, quarantine: bool
) -> None:
    outcome = execute(declare(Orders, given(CLEAN), quarantine=quarantine))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.checks == verdicts("ERROR")
    outcome.assert_stored(table=CLEAN, quarantine=None)


@pytest.mark.parametrize("quarantine", [False, True])
@both
def test_rows_that_fail_only_warn_rules_are_written(
    execute: Execute, given: Callable[[pl.DataFrame], Frame], *, quarantine: bool
) -> None:
    outcome = execute(declare(Orders, given(WARNED), quarantine=quarantine))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.checks == verdicts("ERROR", dy_rule__note__max_length="WARN")
    outcome.assert_stored(table=WARNED, quarantine=None)


@both
def test_error_rows_without_a_quarantine_abort(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    outcome = execute(declare(Orders, given(SOME)))
    assert (outcome.success, outcome.error) == (False, "ValidationAbortError")
    assert "`amount|min` (2), `primary_key` (2)" in outcome.message
    assert outcome.checks == verdicts(
        "ERROR",
        dy_rule__amount__min="ERROR",
        dy_rule__primary_key="ERROR",
        dy_rule__note__max_length="WARN",
    )
    assert outcome.metadata is None
    outcome.assert_stored(table=None, quarantine=None)


@both
def test_error_rows_are_set_aside_and_the_others_are_written(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    outcome = execute(declare(Orders, given(SOME), quarantine=True))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.checks == verdicts(
        "WARN",
        dy_rule__amount__min="WARN",
        dy_rule__primary_key="WARN",
        dy_rule__note__max_length="WARN",
    )
    negative, twice = ["dy_rule__amount__min"], ["dy_rule__primary_key"]
    outcome.assert_stored(
        table=SOME[:1],
        quarantine=quarantined(SOME[1:], row0=negative, row1=twice, row2=twice, row3=negative),
    )


@both
def test_nothing_is_written_but_the_quarantine_where_no_row_survives(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    outcome = execute(declare(Orders, given(ALL_BAD), quarantine=True))
    assert (outcome.success, outcome.error) == (False, "NothingSurvivedError")
    assert "`amount|min` (1), `amount|nan` (1)" in outcome.message
    assert outcome.checks == verdicts(
        "ERROR",
        dy_rule__amount__min="ERROR",
        dy_rule__amount__nan="ERROR",
        dy_rule__note__max_length="WARN",
    )
    assert outcome.metadata is None
    outcome.assert_stored(
        table=None,
        quarantine=quarantined(
            ALL_BAD,
            row0=["dy_rule__amount__min", "dy_rule__note__max_length"],
            row1=["dy_rule__amount__nan"],
        ),
    )


class Balanced(Orders):
    """Two rules that give one value for all rows; one of them only warns."""

    @dy.rule()
    def total_is_small(cls) -> pl.Expr:
        """All amounts together are below 3."""
        return cls.amount.col.sum() < 3

    @dd.rule(severity="warn")
    def has_four_rows(cls) -> pl.Expr:
        return pl.len() >= 4


TABLE_CHECKS = {
    "dy_rule__total_is_small": (False, "ERROR"),
    "dy_rule__has_four_rows": (False, "WARN"),
}


@pytest.mark.parametrize("quarantine", [False, True])
@both
def test_a_table_that_fails_as_a_whole_aborts_without_error_rows(
    execute: Execute, given: Callable[[pl.DataFrame], Frame], *, quarantine: bool
) -> None:
    outcome = execute(declare(Balanced, given(CLEAN), name="orders", quarantine=quarantine))
    assert (outcome.success, outcome.error) == (False, "ValidationAbortError")
    assert "the table of 3 rows failed error rules: `total_is_small`. " in outcome.message
    assert outcome.checks == verdicts("ERROR") | TABLE_CHECKS
    outcome.assert_stored(table=None, quarantine=None)


@both
def test_a_table_that_fails_as_a_whole_aborts_after_its_error_rows_are_set_aside(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    bad = pl.DataFrame({"id": [8], "amount": [-9.0], "note": [None]}, schema=CLEAN.schema)
    outcome = execute(declare(Balanced, given(CLEAN.vstack(bad)), name="orders", quarantine=True))
    assert (outcome.success, outcome.error) == (False, "ValidationAbortError")
    assert "Error rows: " in outcome.message
    assert outcome.checks == (verdicts("ERROR", dy_rule__amount__min="ERROR") | TABLE_CHECKS)
    unknown = {name: ["unknown"] for name in TABLE_CHECKS}
    outcome.assert_stored(
        table=None,
        quarantine=quarantined(bad, row0=["dy_rule__amount__min"]).with_columns(
            **{name: pl.Series(words) for name, words in unknown.items()}
        ),
    )


@both
def test_a_table_rule_that_warns_stops_nothing(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    small = CLEAN[1:]
    outcome = execute(declare(Balanced, given(small), name="orders"))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.checks == verdicts("ERROR") | {
        "dy_rule__total_is_small": (True, "ERROR"),
        "dy_rule__has_four_rows": (False, "WARN"),
    }
    outcome.assert_stored(table=small, quarantine=None)


@pytest.mark.parametrize("quarantine", [False, True])
@both
def test_other_columns_or_dtypes_fail_before_any_row_is_looked_at(
    execute: Execute, given: Callable[[pl.DataFrame], Frame], *, quarantine: bool
) -> None:
    outcome = execute(declare(Orders, given(DRIFTED), quarantine=quarantine))
    assert (outcome.success, outcome.error) == (False, "ColumnSchemaError")
    assert (
        "`id` is missing, declared Int64; `amount` is String, declared Float64; "
        "`note` is Int64, declared String" in outcome.message
    )
    assert "Orders.cast" not in outcome.message
    assert outcome.checks == {"dy_schema__columns": (False, "ERROR")}
    assert outcome.metadata is None
    outcome.assert_stored(table=None, quarantine=None)


@pytest.mark.parametrize("quarantine", [False, True])
def test_none_writes_nothing_and_passes_every_check(execute: Execute, *, quarantine: bool) -> None:
    outcome = execute(declare(Orders, None, quarantine=quarantine))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.checks == verdicts("ERROR")
    assert outcome.metadata is None
    outcome.assert_stored(table=None, quarantine=None)


@pytest.mark.parametrize("quarantine", [False, True])
@both
def test_a_frame_without_rows_writes_an_empty_table(
    execute: Execute, given: Callable[[pl.DataFrame], Frame], *, quarantine: bool
) -> None:
    outcome = execute(declare(Orders, given(EMPTY), quarantine=quarantine))
    assert (outcome.success, outcome.error) == (True, None)
    assert outcome.checks == verdicts("ERROR")
    outcome.assert_stored(table=EMPTY, quarantine=None)
    assert outcome.metadata is not None
    assert outcome.metadata["dagster/row_count"] == 0
    assert outcome.metadata["dataframely/error_share"] == 0.0


@pytest.mark.parametrize(
    ("returned", "quarantine"),
    [
        pytest.param(DRIFTED, False, id="other columns"),
        pytest.param(SOME, False, id="abort"),
        pytest.param(ALL_BAD, True, id="nothing survives"),
        pytest.param([], False, id="no frame"),
        pytest.param(None, False, id="skip"),
    ],
)
def test_the_last_table_stays_where_nothing_is_written(
    run: Execute, files: FileIOManager, returned: object, *, quarantine: bool
) -> None:
    run(declare(Orders, CLEAN))
    before = (files.root / "orders.parquet").read_bytes()
    outcome = run(declare(Orders, returned, quarantine=quarantine))
    assert outcome.metadata is None
    assert (files.root / "orders.parquet").read_bytes() == before
    assert outcome.table is not None


def test_a_later_run_replaces_table_and_quarantine(run: Execute) -> None:
    run(declare(Orders, SOME, quarantine=True))
    second = pl.DataFrame({"id": [7, 8], "amount": [1.0, -1.0], "note": ["a", "b"]})
    outcome = run(declare(Orders, second, quarantine=True))
    outcome.assert_stored(
        table=second[:1], quarantine=quarantined(second[1:], row0=["dy_rule__amount__min"])
    )


OWN_METADATA = {
    "dagster/column_schema",
    "dataframely/report",
    "dataframely/failures_by_rule",
    "dagster/row_count",
    "dataframely/rows_in",
    "dataframely/rows_written",
    "dataframely/error_rows",
    "dataframely/error_share",
    "dataframely/valid_sample",
    "dataframely/valid_stats/numeric",
    "dataframely/valid_stats/string",
}
QUARANTINE_METADATA = {
    "dataframely/quarantine_address",
    "dataframely/invalid_count",
    "dataframely/invalid_sample",
    "dataframely/invalid_by_rules",
}


@pytest.mark.parametrize(
    ("frame", "expected_keys", "expected_numbers"),
    [
        pytest.param(CLEAN, OWN_METADATA, (3, 3, 0, 0.0), id="clean"),
        pytest.param(SOME, OWN_METADATA | QUARANTINE_METADATA, (5, 1, 4, 0.8), id="error rows"),
    ],
)
def test_materialization_counts_rows_and_describes_error_rows_only_where_there_are_any(
    execute: Execute,
    frame: pl.DataFrame,
    expected_keys: set[str],
    expected_numbers: tuple[int, int, int, float],
) -> None:
    metadata = execute(declare(Orders, frame, quarantine=True)).metadata
    assert metadata is not None
    assert metadata.keys() - {"path"} == expected_keys
    names = ("rows_in", "rows_written", "error_rows", "error_share")
    assert tuple(metadata[f"dataframely/{name}"] for name in names) == expected_numbers
    assert metadata["dagster/row_count"] == metadata["dataframely/rows_written"]


def test_materialization_says_where_error_rows_are_and_which_rules_they_fail(
    run: Execute, files: FileIOManager
) -> None:
    metadata = run(declare(Orders, SOME, quarantine=True)).metadata
    assert metadata is not None
    address = metadata["dataframely/quarantine_address"]
    assert address == f"orders_quarantine at {files.root / 'orders_quarantine.parquet'}"
    assert metadata["dataframely/invalid_count"] == 4
    assert [dict(row.data) for row in metadata["dataframely/invalid_by_rules"].records] == [
        {"rules": "amount|min", "rows": 2},
        {"rules": "primary_key", "rows": 2},
    ]
    sampled = [dict(row.data) for row in metadata["dataframely/invalid_sample"].records]
    rows = quarantined(
        SOME[1:],
        row0=["dy_rule__amount__min"],
        row1=["dy_rule__primary_key"],
        row2=["dy_rule__primary_key"],
        row3=["dy_rule__amount__min"],
    )
    assert sampled == rows.to_dicts()


def test_every_check_says_where_the_rows_are_when_none_survives(execute: Execute) -> None:
    outcome = execute(declare(Orders, ALL_BAD, quarantine=True))
    addresses = {
        name: metadata.get("dataframely/quarantine_address")
        for name, metadata in outcome.check_metadata.items()
    }
    assert list(addresses) == ALL_CHECKS
    (address,) = set(addresses.values())
    assert address is not None
    assert address.endswith("orders_quarantine.parquet")
    assert "orders_quarantine.parquet" in outcome.message


@pytest.mark.parametrize(
    ("frame", "quarantine"),
    [(SOME, False), (SOME, True), (ALL_BAD, True)],
    ids=["abort", "set aside", "nothing survives"],
)
def test_rule_checks_count_and_sample_failing_rows(
    execute: Execute, frame: pl.DataFrame, *, quarantine: bool
) -> None:
    outcome = execute(declare(Orders, frame, quarantine=quarantine))
    negative = frame.filter(pl.col("amount") < 0)
    metadata = outcome.check_metadata["dy_rule__amount__min"]
    assert metadata["dy_rule"] == "amount|min"
    assert metadata["dy_failed_count"] == negative.height
    assert [dict(row.data) for row in metadata["dy_failed_sample"].records] == negative.to_dicts()
    passed = outcome.check_metadata["dy_rule__id__nullability"]
    assert passed["dy_failed_count"] == 0
    assert "dy_failed_sample" not in passed


def test_the_column_schema_check_lists_every_mismatch(execute: Execute) -> None:
    metadata = execute(declare(Orders, DRIFTED)).check_metadata["dy_schema__columns"]
    assert [dict(row.data) for row in metadata["dy_schema__errors"].records] == [
        {"column": "id", "expected": "Int64", "found": "missing"},
        {"column": "amount", "expected": "Float64", "found": "String"},
        {"column": "note", "expected": "String", "found": "Int64"},
    ]


@both
def test_undeclared_columns_are_dropped_and_named_and_the_schema_orders_the_rest(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    wide = CLEAN.select("note", pl.lit(1).alias("extra"), "amount", pl.lit("x").alias("more"), "id")
    outcome = execute(declare(Orders, given(wide)))
    outcome.assert_stored(table=CLEAN, quarantine=None)
    assert outcome.checks["dy_schema__columns"] == (True, "ERROR")
    assert outcome.check_metadata["dy_schema__columns"] == {"dy_extra_columns": ["extra", "more"]}


@both
def test_nothing_is_cast_but_the_error_says_when_a_cast_would_do(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    outcome = execute(declare(Orders, given(CASTABLE)))
    assert outcome.error == "ColumnSchemaError"
    assert "Return `dd.strict_cast(Orders, frame)`." in outcome.message
    outcome.assert_stored(table=None, quarantine=None)
    assert execute(declare(Orders, dd.strict_cast(Orders, given(CASTABLE)))).success


@pytest.mark.parametrize(
    ("returned", "quarantine"),
    [(DRIFTED, False), (SOME, False), (ALL_BAD, True), ([], False)],
    ids=["other columns", "abort", "nothing survives", "no frame"],
)
def test_an_error_of_this_library_is_not_retried(
    run: Execute, returned: object, *, quarantine: bool
) -> None:
    executions = []

    @dd.asset(Orders, quarantine=quarantine, retry_policy=dg.RetryPolicy(max_retries=2))
    def orders() -> object:
        executions.append(1)
        return returned

    outcome = run(orders)
    assert not outcome.success
    assert len(executions) == 1
    assert not [event for event in outcome.events if event.is_step_up_for_retry]


class CustomError(Exception):
    """An error of the user's own."""


def test_an_error_of_the_function_passes_through_as_it_is(instance: dg.DagsterInstance) -> None:
    raised = CustomError("mine")

    @dd.asset(Orders, quarantine=True)
    def orders() -> pl.DataFrame:
        raise raised

    with pytest.raises(CustomError) as in_a_run:
        dg.materialize([orders], instance=instance)
    assert in_a_run.value is raised
    with pytest.raises(CustomError) as in_a_call:
        dd.testing.invoke(orders)
    assert in_a_call.value is raised


def test_an_error_of_the_function_is_retried_as_its_policy_says(run: Execute) -> None:
    executions = []

    @dd.asset(Orders, retry_policy=dg.RetryPolicy(max_retries=2))
    def orders() -> pl.DataFrame:
        executions.append(1)
        if len(executions) < 3:
            raise CustomError
        return CLEAN

    assert run(orders).success
    assert len(executions) == 3


def test_errors_carry_their_facts(instance: dg.DagsterInstance, files: FileIOManager) -> None:
    def failure(asset: dg.AssetsDefinition) -> dict[str, Any]:
        with pytest.raises(dd.errors.DagsterDataframelyError) as caught:
            dg.materialize([asset], instance=instance, resources={"io_manager": files})
        assert isinstance(caught.value, dg.Failure)
        facts = vars(caught.value)
        return {
            k: v for k, v in facts.items() if k not in {"description", "metadata", "allow_retries"}
        }

    assert failure(declare(Orders, SOME)) == {
        "asset": "orders",
        "rules": ("amount|min", "primary_key"),
        "counts": SOME_ERROR_RULES,
        "table_rules": (),
        "error_rows": 4,
        "rows": 5,
        "address": None,
    }
    assert failure(declare(Orders, ALL_BAD, quarantine=True)) == {
        "asset": "orders",
        "rules": ("amount|min", "amount|nan"),
        "counts": {"amount|min": 1, "amount|nan": 1},
        "rows": 2,
        "address": f"orders_quarantine at {files.root / 'orders_quarantine.parquet'}",
    }
    assert failure(declare(Orders, CASTABLE)) == {
        "asset": "orders",
        "schema": "Orders",
        "mismatches": (
            dd.errors.ColumnMismatch("id", "Int64", "String"),
            dd.errors.ColumnMismatch("amount", "Float64", "Int64"),
        ),
        "columns": ("id", "amount"),
        "castable": True,
    }


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


def test_what_the_context_is_told_wins_over_all_but_the_columns(files: FileIOManager) -> None:
    told = {"dagster/row_count": 999, "dagster/column_schema": dg.TableSchema([]), "mine": 1}

    @dd.asset(OrdersSchema)
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        context.add_asset_metadata(told)
        return valid_orders()

    result = dg.materialize([orders], resources={"io_manager": files})
    (event,) = result.asset_materializations_for_node("orders")
    values = {key: event.metadata[key].value for key in told}
    declared = orders.metadata_by_key[dg.AssetKey("orders")]["dagster/column_schema"]
    assert values == {"dagster/row_count": 999, "dagster/column_schema": declared, "mine": 1}
    with pytest.raises(AttributeError):
        dd.testing.invoke(orders)
