"""Each of the seven exits as a real run and as a direct invocation."""

from collections.abc import Callable

import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.execution import Execute
from support.orders import (
    ALL_BAD,
    ALL_CHECKS,
    CLEAN,
    DRIFTED,
    SOME,
    Frame,
    Orders,
    both,
    quarantined,
)
from support.storage import FileIOManager

import dagster_dataframely as dd

WARNED = CLEAN.with_columns(note=pl.Series(["abcd", None, "abcde"]))
"""Two rows fail the rule that only warns."""


EMPTY = CLEAN.clear()
"""No rows, which is not the same as no frame."""


def verdicts(passing: str, **failing: str) -> dict[str, tuple[bool, str]]:
    """Every check, in order: the failing ones at their severity, the rest passing at their own."""
    own = dict.fromkeys(ALL_CHECKS, passing) | {"dy_rule__note__max_length": "WARN"}
    expected = {name: (name not in failing, failing.get(name, own[name])) for name in ALL_CHECKS}
    return expected | {"dy_schema__columns": (True, "ERROR")}


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


@both
def test_too_many_error_rows_are_set_aside_and_the_last_table_stays(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    outcome = execute(declare(Orders, given(SOME), quarantine=True, max_error_share=0.79))
    assert (outcome.success, outcome.error) == (False, "TooManyErrorRowsError")
    assert "4 error rows of 5 (80.0%), above `max_error_share=0.79`: " in outcome.message
    assert "`amount|min` (2), `primary_key` (2). The last table stays." in outcome.message
    assert outcome.checks == verdicts(
        "ERROR",
        dy_rule__amount__min="ERROR",
        dy_rule__primary_key="ERROR",
        dy_rule__note__max_length="WARN",
    )
    assert outcome.metadata is None
    negative, twice = ["dy_rule__amount__min"], ["dy_rule__primary_key"]
    outcome.assert_stored(
        table=None,
        quarantine=quarantined(SOME[1:], row0=negative, row1=twice, row2=twice, row3=negative),
    )


@both
def test_as_many_error_rows_as_the_limit_are_set_aside(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    outcome = execute(declare(Orders, given(SOME), quarantine=True, max_error_share=0.8))
    assert outcome.success
    assert outcome.table is not None
    assert outcome.table.height == 1


def test_the_error_of_too_many_error_rows_has_the_facts() -> None:
    with pytest.raises(dd.errors.TooManyErrorRowsError) as raised:
        dd.testing.invoke(declare(Orders, SOME, quarantine=True, max_error_share=0))
    error = raised.value
    assert (error.asset, error.error_rows, error.rows) == ("orders", 4, 5)
    assert (error.share, error.limit) == (0.8, 0.0)
    assert error.counts == {"amount|min": 2, "primary_key": 2}
    assert error.rules == ("amount|min", "primary_key")
    assert error.address == "the result of `dd.testing.invoke`"


@pytest.mark.parametrize(
    ("frame", "quarantine", "error"),
    [
        (CLEAN, True, None),
        (SOME, False, "ValidationAbortError"),
        (ALL_BAD, True, "NothingSurvivedError"),
    ],
    ids=["clean", "no quarantine", "nothing survives"],
)
def test_a_limit_of_no_error_row_leaves_the_other_exits_as_they_are(
    execute: Execute, frame: pl.DataFrame, *, quarantine: bool, error: str | None
) -> None:
    outcome = execute(declare(Orders, frame, quarantine=quarantine, max_error_share=0))
    assert outcome.error == error


def test_too_many_error_rows_outweigh_a_rule_over_the_whole_table(execute: Execute) -> None:
    outcome = execute(declare(Balanced, SOME, quarantine=True, max_error_share=0.5))
    assert outcome.error == "TooManyErrorRowsError"


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
