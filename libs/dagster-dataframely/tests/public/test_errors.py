"""Messages name the object, what was found and the way out, and stay readable."""

import pickle
import re
from collections.abc import Callable

import dagster as dg
import pytest

from dagster_dataframely import errors
from dagster_dataframely.errors import CastFailure, ColumnMismatch, UnstorableColumn

LONG = "x" * 400
"""A value, a problem or an address longer than a message may be."""
REASON = "y" * 80
"""As long as a reason that the library writes."""


def many(name: str) -> dict[str, int]:
    """More names than a message may list."""
    return {f"{name}{index}": 1_000_000 for index in range(40)}


def mismatches(name: str) -> list[ColumnMismatch]:
    return [ColumnMismatch(column, "Struct({'a': Int64})", "String") for column in many(name)]


WORST: dict[str, Callable[[str], Exception]] = {
    "abort": lambda n: errors.ValidationAbortError(n, many(n), error_rows=10**9, rows=10**9),
    "table": lambda n: errors.ValidationAbortError(
        n, many(n), error_rows=10**9, rows=10**9, table_rules=list(many(n)), address=LONG
    ),
    "table, without a quarantine": lambda n: errors.ValidationAbortError(
        n, many(n), error_rows=10**9, rows=10**9, table_rules=list(many(n))
    ),
    "quarantine columns": lambda n: errors.QuarantineColumnsError(
        n, n, [errors.StoredColumn(name, LONG, None, LONG) for name in many(n)]
    ),
    "quarantine address": lambda n: errors.QuarantineAddressError(n, n, n, LONG),
    "quarantine read": lambda n: errors.QuarantineReadError(n, n, n, LONG),
    "stored table": lambda n: errors.StoredTableError(
        n, LONG, [errors.StoredColumn(name, LONG, LONG) for name in many(n)], REASON
    ),
    "nothing survived": lambda n: errors.NothingSurvivedError(n, many(n), rows=10**9, address=LONG),
    "too many error rows": lambda n: errors.TooManyErrorRowsError(
        n, many(n), error_rows=10**9, rows=10**9 + 1, limit=0.123456, address=LONG
    ),
    "columns": lambda n: errors.ColumnSchemaError(n, n, mismatches(n), advice=None),
    "stored columns": lambda n: errors.ColumnSchemaError(
        n, n, mismatches(n), advice=None, stored=True
    ),
    "return value": lambda n: errors.ReturnValueError(n, f"a `{n}`", n, REASON),
    "rule at runtime": lambda n: errors.RuleEvaluationError(n, n, LONG),
    "stored asset": lambda n: errors.AssetReadError(n, n),
    "directory": lambda n: errors.QuarantineDirError(n, REASON),
    "storage": lambda n: errors.StorageDtypeError(
        n, "Delta Lake", [UnstorableColumn(name, LONG, n) for name in many(n)]
    ),
    "strict cast": lambda n: errors.StrictCastError(
        n, [CastFailure(n, LONG, LONG, REASON), CastFailure(n, LONG, None, REASON)]
    ),
    "staging": lambda n: errors.StagingError(LONG),
    "key": lambda n: errors.QuarantineKeyCollisionError(n, n),
    "schema": lambda n: errors.InvalidSchemaError(type(n, (), {})),
    "collection": lambda n: errors.CollectionNotSupportedError(type(n, (), {})),
    "no collection": lambda n: errors.InvalidCollectionError(type(n, (), {})),
    "reference": lambda n: errors.InvalidReferenceError(n, "a schema", LONG, list(many(n))),
    "argument": lambda n: errors.InvalidArgumentError(n, REASON),
    "rule": lambda n: errors.InvalidRuleError(n, n, REASON, f"Write `{n}`."),
    "setting": lambda n: errors.InvalidSettingError(n, LONG, f"`{n}`", REASON),
    "severity": lambda n: errors.InvalidSeverityError(n, n, LONG, list(many(n))),
    "severity value": lambda n: errors.InvalidSeverityError(n, n, LONG, [n]),
    "column": lambda n: errors.InvalidColumnError(n, list(many(n))),
    "reserved": lambda n: errors.ReservedColumnError(n, list(many(n))),
    "file": lambda n: errors.UnreadableFileError(LONG, REASON),
    "collision": lambda n: errors.CheckNameCollisionError(n, n, [n, n]),
    "many filters": lambda n: errors.ManyChecksWarning(n, 10**9, {}),
    "many checks": lambda n: errors.ManyChecksWarning(n, 10**9, {"column": 10**9, "schema": 2}),
}

worst_errors = pytest.mark.parametrize("worst", WORST.values(), ids=WORST)


@worst_errors
def test_message_is_at_most_300_characters(worst: Callable[[str], Exception]) -> None:
    assert len(str(worst("n" * 30))) <= 300


@worst_errors
def test_a_name_is_never_cut(worst: Callable[[str], Exception]) -> None:
    in_short, in_long = (re.findall("n{20,}", str(worst("n" * size))) for size in (30, 400))
    assert set(in_long) == {name.replace("n" * 30, "n" * 400) for name in in_short}


@worst_errors
def test_a_name_does_not_fake_a_line(worst: Callable[[str], Exception]) -> None:
    assert str(worst("n\n\x1b[2J\u202e")).isprintable()


PICKLED = {
    **WORST,
    # A class is pickled by its name.
    "schema": lambda n: errors.InvalidSchemaError(int),
    "collection": lambda n: errors.CollectionNotSupportedError(int),
    "no collection": lambda n: errors.InvalidCollectionError(int),
}


@pytest.mark.parametrize("error", PICKLED.values(), ids=PICKLED)
def test_an_error_reaches_another_process_whole(error: Callable[[str], Exception]) -> None:
    sent = error("name")
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
    found = [ColumnMismatch("id", "Int64", "Int32"), ColumnMismatch("name", "String", None)]
    castable = errors.ColumnSchemaError("orders", "Orders", found[:1], advice=None)
    assert str(castable) == (
        "Asset `orders`: not the columns of schema `Orders`: "
        "`id` is Int32, declared Int64. Return `dd.strict_cast(Orders, frame)`."
    )
    missing = errors.ColumnSchemaError("orders", "Orders", found, advice="Add `name`.")
    assert "`name` is missing, declared String" in str(missing)
    assert missing.columns == ("id", "name")
