"""One table for each dtype family, out of one query; strings never show a value."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from dagster_dataframely._metadata.statistics import describe_families
from dagster_dataframely.data import valid_orders

EVERY_FAMILY = pl.DataFrame(
    {
        "n": [1.0, 2.0, float("nan"), float("inf"), None],
        "d": [Decimal("0.1"), Decimal("0.2"), None, None, None],
        "day": [dt.date(2026, 1, 1), dt.date(2026, 1, 3), None, None, None],
        "span": [dt.timedelta(hours=1), dt.timedelta(hours=2), None, None, None],
        "text": ["secret", "é", "é", None, ""],
        "flag": [True, False, True, None, None],
        "rest": [[1], [2], None, None, None],
    }
)
"""A column or two of each family, with nulls and non-finite numbers, and one of none."""


def test_describes_every_family() -> None:
    assert describe_families(EVERY_FAMILY) == {
        "numeric": [
            {
                "column": "n",
                "count": 4,
                "nulls": 1,
                "mean": "NaN",
                "std": "NaN",
                "min": 1.0,
                "median": 1.5,
                "max": "inf",
                "histogram": "█      █",
            },
            {
                "column": "d",
                "count": 2,
                "nulls": 3,
                "mean": 0.15,
                "std": 0.07071,
                "min": "0.1",
                "median": 0.15,
                "max": "0.2",
                "histogram": "█      █",
            },
        ],
        "temporal": [
            {
                "column": "day",
                "count": 2,
                "nulls": 3,
                "min": "2026-01-01",
                "max": "2026-01-03",
                "span": "2 days",
            },
            {"column": "span", "count": 2, "nulls": 3, "min": "1h", "max": "2h", "span": "1 h"},
        ],
        "string": [
            {
                "column": "text",
                "count": 4,
                "nulls": 1,
                "distinct": 3,
                "empty": 1,
                "min_length": 0,
                "mean_length": 2.0,
                "max_length": 6,
            }
        ],
        "boolean": [
            {
                "column": "flag",
                "count": 3,
                "nulls": 2,
                "true": 2,
                "false": 1,
                "true_rate": "66.7%",
            }
        ],
    }


def test_strings_show_no_value() -> None:
    assert "secret" not in json.dumps(describe_families(EVERY_FAMILY)["string"])


@pytest.mark.parametrize("dtype", [pl.Enum(["a", "bc"]), pl.Categorical, pl.String])
def test_categories_are_strings(dtype: pl.DataType) -> None:
    (row,) = describe_families(pl.DataFrame({"a": pl.Series(["bc", "a", "a"], dtype=dtype)}))[
        "string"
    ]
    assert (row["distinct"], row["max_length"]) == (2, 2)


def test_a_frame_without_rows_has_empty_statistics() -> None:
    (row, *_) = describe_families(valid_orders().clear())["numeric"]
    assert row == {
        "column": "order_id",
        "count": 0,
        "nulls": 0,
        "mean": None,
        "std": None,
        "min": None,
        "median": None,
        "max": None,
        "histogram": "",
    }


def test_columns_of_nulls_have_no_span_and_no_rate() -> None:
    nulls = pl.DataFrame({"day": [None], "flag": [None]}, {"day": pl.Date, "flag": pl.Boolean})
    found = describe_families(nulls)
    assert (found["temporal"][0]["span"], found["boolean"][0]["true_rate"]) == (None, None)


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([1.0, 1.0, 2.0], 1.333),
        ([123_456.0, 123_457.0, 123_457.0], 123_457.0),
        ([0.001, 0.002, 0.002], 0.001667),
        ([-10_000.0, -10_000.0, -10_001.0], -10_000.0),
    ],
)
def test_means_are_rounded_as_a_person_would(values: list[float], mean: float) -> None:
    (row,) = describe_families(pl.DataFrame({"a": values}))["numeric"]
    assert row["mean"] == mean


@pytest.mark.parametrize(
    ("last", "span"),
    [
        (dt.datetime(2026, 1, 1), "0 s"),
        (dt.datetime(2026, 1, 2), "1 day"),
        (dt.datetime(2028, 10, 5, 5, 30, 1), "1,008 days 5 h"),
        (dt.datetime(2026, 1, 1, 0, 5, 0, 250_000), "5 min 250 ms"),
    ],
)
def test_a_span_has_its_two_largest_units(last: dt.datetime, span: str) -> None:
    rows = pl.DataFrame({"a": [dt.datetime(2026, 1, 1), last]})
    assert describe_families(rows)["temporal"][0]["span"] == span


def test_a_family_without_columns_has_no_entry() -> None:
    assert describe_families(pl.DataFrame({"a": [[1]]})) == {}


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        (list(range(80)), "████████"),
        ([0] * 70 + list(range(80)), "█▁▁▁▁▁▁▁"),
    ],
)
def test_histogram_shows_each_bins_share(values: list[int], drawn: str) -> None:
    (row,) = describe_families(pl.DataFrame({"a": values}))["numeric"]
    assert row["histogram"] == drawn


@pytest.mark.parametrize("distinct", [10, 3000, 40_000])
def test_distinct_strings_are_estimated_among_many(distinct: int) -> None:
    frame = pl.DataFrame({"a": [str(number % distinct) for number in range(80_001)]})
    (few,) = describe_families(frame[1:], exact=80_000)["string"]
    assert few["distinct"] == distinct
    (many,) = describe_families(frame, exact=80_000)["string"]
    shown = str(many["distinct"])
    assert shown.startswith("≈ ")
    assert int(shown.removeprefix("≈ ").replace(",", "")) == pytest.approx(distinct, rel=0.1)


def test_an_estimate_does_not_depend_on_how_the_rows_are_stored(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [str(number) for number in range(50_000)]})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=7_000)
    halves = pl.concat([frame[:20_000], frame[20_000:]], rechunk=False)
    scan = pl.scan_parquet(tmp_path / "a.parquet")
    one, two, three = (describe_families(rows, exact=0) for rows in (frame, halves, scan))
    assert one == two == three


@pytest.mark.parametrize("lazy", [False, True])
def test_a_histogram_of_many_rows_is_drawn_from_evenly_spaced_ones(*, lazy: bool) -> None:
    # The even rows are low and the odd ones high, but for the last, which is the highest of all.
    frame = pl.DataFrame({"a": [*([0, 70] * 100), 80]})
    (row,) = describe_families(frame.lazy() if lazy else frame, sample=100)["numeric"]
    # Every third of 201 rows: 34 low ones, 33 high ones.
    assert row["histogram"] == "█      █"
    assert (row["count"], row["median"], row["max"]) == (201, 0, 80)


def test_histogram_of_one_value_is_one_full_block() -> None:
    (row,) = describe_families(pl.DataFrame({"a": [3, 3, 3]}))["numeric"]
    assert sorted(str(row["histogram"])) == [*" " * 7, "█"]


def test_sums_that_overflow_do_not_fail() -> None:
    big = pl.DataFrame({"a": pl.Series([Decimal(9 * 10**37)] * 3, dtype=pl.Decimal(38, 0))})
    (row,) = describe_families(big)["numeric"]
    assert row["max"] == "9" + "0" * 37
    assert row["mean"] == pytest.approx(9e37)
