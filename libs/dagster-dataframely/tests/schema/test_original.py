"""What did not survive is written as JSON, and found again by its column."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataframely._names import ORIGINAL
from dagster_dataframely._schema.original import failed_in, write_original

HOSTILE = [
    'a"b', '"', "\\", "\\\\", 'a\\"', "a\\", ":", ",", "}", "]", "{", "[", ":x", ",x", "x:", ",,", " ",
    "é", "🦆", "\n", "\x00", "\x1f", "\x7f", "\u2028", 'x"c', "c", '":', '"c":', ',"c":', '","', "null",
    '{"c":1}', "\\u0022", "\\u003a",
]  # fmt: skip
"""Names of columns, and values."""

COLUMNS = [name for name in HOSTILE if "\0" not in name]


def originals(values: dict[str, pl.Series]) -> pl.DataFrame:
    """The JSON of values by column, each in a row alone and then all together."""
    frame = pl.DataFrame({f"{place}": series for place, series in enumerate(values.values())})
    columns = {name: pl.col(f"{place}") for place, name in enumerate(values)}
    dtypes = {name: series.dtype for name, series in values.items()}
    for engine in ("in-memory", "streaming"):
        lazy = frame.lazy().select(write_original(columns, dtypes).alias(ORIGINAL))
        found = lazy.collect(engine=engine)
    return found


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_is_found_where_it_failed_and_nowhere_else(column: str) -> None:
    others = [name for name in COLUMNS if name != column]
    data = {name: pl.Series([*HOSTILE, None]) for name in others}
    own = [None] * len(HOSTILE)
    found = originals({**data, column: pl.Series([*own, "x"], dtype=pl.String)})
    rows = [text and json.loads(text) for text in found[ORIGINAL]]
    assert rows == [*(dict.fromkeys(others, value) for value in HOSTILE), {column: "x"}]
    assert found.select(failed_in(column))[ORIGINAL].to_list() == [*[False] * len(HOSTILE), True]


NAMES = st.text(st.sampled_from('ab:,"\\{}[] \n'), min_size=1, max_size=3)


@given(row=st.dictionaries(NAMES, st.none() | NAMES, min_size=1, max_size=5))
def test_any_column_is_found_where_it_failed(row: dict[str, str | None]) -> None:
    found = originals({name: pl.Series([v], dtype=pl.String) for name, v in row.items()})
    failed = {name: value for name, value in row.items() if value is not None}
    assert [text and json.loads(text) for text in found[ORIGINAL]] == [failed or None]
    assert [n for n in row if found.select(failed_in(n)).item()] == [*failed]


def test_a_field_of_a_struct_is_not_the_column_of_its_name() -> None:
    struct = pl.Series([{"c": 'x"c":y', 'q"': [{"c": None}]}])
    found = originals({"s": struct, "c": pl.Series([None], dtype=pl.Int8)})
    assert json.loads(found.item()) == {"s": {"c": 'x"c":y', 'q"': [{"c": None}]}}
    assert found.select(failed_in("s").alias("s"), failed_in("c").alias("c")).row(0) == (
        True,
        False,
    )


VALUES: dict[str, tuple[pl.Series, Any]] = {
    "whole numbers": (pl.Series([2**63 - 1]), 2**63 - 1),
    "floats": (pl.Series([0.1]), 0.1),
    "NaN": (pl.Series([float("nan")]), "NaN"),
    "infinity": (pl.Series([float("inf")]), "inf"),
    "decimals": (pl.Series([Decimal("1.20")]), 1.2),
    "flags": (pl.Series([True]), True),
    "categories": (pl.Series(["a"], dtype=pl.Categorical), "a"),
    "days": (pl.Series([dt.date(2024, 7, 1)]), "2024-07-01"),
    "times": (pl.Series([dt.time(12, 30)]), "12:30:00"),
    "moments": (pl.Series([dt.datetime(2024, 7, 1)]), "2024-07-01 00:00:00.000000"),
    "the infinity of DuckDB": (
        pl.Series([2**63 - 1], dtype=pl.Datetime("us")),
        "9223372036854775807 us",
    ),
    "durations": (pl.Series([dt.timedelta(days=1)]), "P1D"),
    "bytes in a list": (pl.Series([[b"a\xff", None]]), ["0x61ff", None]),
    "nulls in a list": (pl.Series([[None, None]]), [None, None]),
    "missing floats in a list": (pl.Series([[1.5, None]]), [1.5, None]),
    "missing numbers in a list": (pl.Series([[1, None]]), [1, None]),
    "empty lists": (pl.Series([[]], dtype=pl.List(pl.Int8)), []),
    "lists of lists": (pl.Series([[["a"], None, []]]), [["a"], None, []]),
    "arrays": (pl.Series([[1, 2]], dtype=pl.Array(pl.Int8, 2)), [1, 2]),
    "structs": (
        pl.Series([{"a": {"b": None}, "*": dt.date(1, 1, 1)}]),
        {"a": {"b": None}, "*": "0001-01-01"},
    ),
    "missing structs in a list": (pl.Series([[{"a": 1}, None]]), [{"a": 1}, None]),
}  # fmt: skip


@pytest.mark.parametrize(("series", "read"), VALUES.values(), ids=VALUES)
def test_values_of_any_dtype_are_written(series: pl.Series, read: Any) -> None:
    assert json.loads(originals({"value": series}).item()) == {"value": read}


def test_without_values_nothing_failed() -> None:
    frame = pl.DataFrame({"a": [1]}).with_columns(write_original({}, {}).alias(ORIGINAL))
    assert frame.select(failed_in("a").alias("a"), ORIGINAL).row(0) == (False, None)
