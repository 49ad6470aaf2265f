"""A key is the first column or pair of columns without duplicates."""

import dataclasses
import functools

import polars as pl
import pytest
from support.inferred import ORDERS, table_of

from dagster_dataframely._infer import facts as _inference
from dagster_dataframely._infer.drops import BATCH_ROWS
from dagster_dataframely._infer.facts import Limits, infer
from dagster_dataframely._infer.files import read_batches


def key_of(
    frame: pl.DataFrame, limits: Limits, batch_rows: int = BATCH_ROWS
) -> tuple[tuple[str, ...], set[str]]:
    batches = functools.partial(read_batches, frame.lazy(), frame.height, batch_rows=batch_rows)
    table = dataclasses.replace(table_of(frame), batches=batches)
    inference = infer(table, print, limits)
    return inference.key, set(inference.unique)


SEVERAL_ROWS = pl.DataFrame(
    {
        "shop": ["a", "a", "b", "b"],
        "code": [1.0, 2.0, 3.0, 4.0],
        "maybe": [1, 2, 3, None],
        "number": [1, 2, 1, 2],
    }
)
"""No column is a key: one is a float and one has a null."""


@pytest.mark.parametrize(
    ("frame", "key", "unique"),
    [
        (SEVERAL_ROWS, ("shop", "number"), set()),
        (SEVERAL_ROWS.drop("number"), (), set()),
        (SEVERAL_ROWS.drop("number").vstack(SEVERAL_ROWS.drop("number")), (), set()),
        (SEVERAL_ROWS.vstack(SEVERAL_ROWS), (), set()),
        (
            SEVERAL_ROWS.with_columns(i=pl.Series([4, 3, 2, 1]), j="maybe", k=pl.int_range(4)),
            ("i",),
            {"k"},
        ),
        (SEVERAL_ROWS.head(1), (), set()),
    ],
    ids=["pair", "no pair", "twice", "no key", "first", "one row"],
)
@pytest.mark.parametrize("batch_rows", [3, 100])
@pytest.mark.parametrize("rows_in_memory", [1, 100])
def test_the_key_is_the_first_column_or_pair_without_duplicates(
    frame: pl.DataFrame,
    key: tuple[str, ...],
    unique: set[str],
    batch_rows: int,
    rows_in_memory: int,
) -> None:
    limits = Limits(rows_in_memory, hashes=3, suspects=1)
    assert key_of(frame, limits, batch_rows=batch_rows) == (key, unique)


def test_a_pair_is_looked_for_in_all_rows() -> None:
    twice = SEVERAL_ROWS.vstack(SEVERAL_ROWS)
    assert key_of(twice, Limits(first_rows=2), batch_rows=4) == ((), set())


def test_values_that_hash_alike_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_inference, "_hashes", lambda batch: pl.repeat(1, batch.height, eager=True))
    assert key_of(pl.DataFrame({"a": [1, 2, 3]}), Limits(rows_in_memory=1)) == (("a",), set())


def test_rows_that_polars_does_not_deliver_are_missed() -> None:
    table = dataclasses.replace(
        table_of(ORDERS), batches=functools.partial(read_batches, ORDERS.lazy(), 5)
    )
    with pytest.raises(OSError, match="its last 2 rows cannot be read"):
        infer(table, print)
