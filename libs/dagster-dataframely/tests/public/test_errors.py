"""Messages name the object, what was found and the way out, and stay readable."""

import pickle
from collections.abc import Callable

import dagster as dg
import pytest

from dagster_dataframely import errors
from dagster_dataframely.errors import CastFailure, ColumnMismatch, UnstorableColumn

LONG = "x" * 400
"""Longer than a message may be."""
MANY = {f"{index}{LONG}": 1_000_000 for index in range(40)}
"""More names than a message may list."""
MISMATCHES = [ColumnMismatch(name, "Struct({'a': Int64})", "String") for name in MANY]

WORST = {
    "abort": lambda: errors.ValidationAbortError(LONG, MANY, error_rows=10**9, rows=10**9),
    "table": lambda: errors.ValidationAbortError(
        LONG, MANY, error_rows=10**9, rows=10**9, table_rules=list(MANY), address=LONG
    ),
    "table, without a quarantine": lambda: errors.ValidationAbortError(
        LONG, MANY, error_rows=10**9, rows=10**9, table_rules=list(MANY)
    ),
    "quarantine columns": lambda: errors.QuarantineColumnsError(
        LONG, LONG, found=list(MANY), stored=[LONG]
    ),
    "nothing survived": lambda: errors.NothingSurvivedError(LONG, MANY, rows=10**9, address=LONG),
    "columns": lambda: errors.ColumnSchemaError(LONG, LONG, MISMATCHES, castable=True),
    "stored columns": lambda: errors.ColumnSchemaError(
        LONG, LONG, MISMATCHES, castable=True, stored=True
    ),
    "return value": lambda: errors.ReturnValueError(LONG, LONG, LONG, LONG),
    "stored asset": lambda: errors.AssetReadError(LONG, LONG),
    "directory": lambda: errors.QuarantineDirError(LONG, LONG),
    "storage": lambda: errors.StorageDtypeError(
        LONG, LONG, [UnstorableColumn(name, LONG, LONG) for name in MANY]
    ),
    "strict cast": lambda: errors.StrictCastError(
        LONG, [CastFailure(LONG, LONG, LONG, LONG), CastFailure(LONG, LONG, None, LONG)]
    ),
    "staging": lambda: errors.StagingError(LONG),
    "key": lambda: errors.QuarantineKeyCollisionError(LONG, LONG),
    "schema": lambda: errors.InvalidSchemaError(type(LONG, (), {})),
    "collection": lambda: errors.CollectionNotSupportedError(type(LONG, (), {})),
    "no collection": lambda: errors.InvalidCollectionError(type(LONG, (), {})),
    "argument": lambda: errors.InvalidArgumentError(LONG, LONG),
    "rule": lambda: errors.InvalidRuleError(LONG, LONG, LONG, LONG),
    "setting": lambda: errors.InvalidSettingError(LONG, LONG, LONG, LONG),
    "severity": lambda: errors.InvalidSeverityError(LONG, LONG, LONG, list(MANY)),
    "severity value": lambda: errors.InvalidSeverityError(LONG, LONG, LONG, [LONG]),
    "column": lambda: errors.InvalidColumnError(LONG, list(MANY)),
    "reserved": lambda: errors.ReservedColumnError(LONG, list(MANY)),
    "file": lambda: errors.UnreadableFileError(LONG, LONG),
    "collision": lambda: errors.CheckNameCollisionError(LONG, LONG, [LONG, LONG]),
    "many filters": lambda: errors.ManyChecksWarning(LONG, 10**9, {}),
    "many checks": lambda: errors.ManyChecksWarning(LONG, 10**9, {"column": 10**9, "schema": 2}),
}


@pytest.mark.parametrize("worst", WORST.values(), ids=WORST)
def test_message_is_at_most_300_characters(worst: Callable[[], Exception]) -> None:
    assert len(str(worst())) <= 300


PICKLED = {
    **WORST,
    # A class is pickled by its name.
    "schema": lambda: errors.InvalidSchemaError(int),
    "collection": lambda: errors.CollectionNotSupportedError(int),
    "no collection": lambda: errors.InvalidCollectionError(int),
}


@pytest.mark.parametrize("error", PICKLED.values(), ids=PICKLED)
def test_an_error_reaches_another_process_whole(
    error: Callable[[], Exception],
) -> None:
    sent = error()
    received = pickle.loads(pickle.dumps(sent))
    assert (type(received), str(received)) == (type(sent), str(sent))
    assert vars(received) == vars(sent)


def test_abort_lists_five_rules_and_counts_the_rest() -> None:
    counts = {f"r{index}": index for index in range(1, 9)}
    error = errors.ValidationAbortError("orders", counts, error_rows=1, rows=2000)
    assert str(error) == (
        "Asset `orders`: 1 row of 2,000 failed error rules: `r1` (1), `r2` (2), `r3` (3), `r4` (4), "
        "`r5` (5) and 3 more. Nothing was written; the last table stays. "
        "`quarantine=True` would set these rows aside and write the others."
    )
    assert (error.rules, error.counts) == (tuple(counts), counts)


def test_run_errors_are_failures_that_dagster_does_not_retry() -> None:
    error = errors.NothingSurvivedError("orders", {"r": 3}, rows=3, address="orders_quarantine")
    assert isinstance(error, dg.Failure)
    assert error.allow_retries is False
    assert error.description == str(error)
    assert error.address == "orders_quarantine"


def test_column_schema_error_says_what_to_write_when_a_cast_would_do() -> None:
    mismatches = [ColumnMismatch("id", "Int64", "Int32"), ColumnMismatch("name", "String", None)]
    castable = errors.ColumnSchemaError("orders", "Orders", mismatches[:1], castable=True)
    assert str(castable) == (
        "Asset `orders`: not the columns of schema `Orders`: "
        "`id` is Int32, declared Int64. Return `Orders.cast(frame)`."
    )
    missing = errors.ColumnSchemaError("orders", "Orders", mismatches, castable=False)
    assert "`name` is missing, declared String" in str(missing)
    assert missing.columns == ("id", "name")
