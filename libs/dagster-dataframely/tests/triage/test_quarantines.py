"""Quarantines are listed, shown, exported and read from outside of a run."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dagster_dataframely as dd
from dagster_dataframely.errors import InvalidArgumentError, UnknownQuarantineError

from .conftest import Location

Run = Callable[..., tuple[int, str, str]]
LIST = """\
quarantine         partitions  rows  rule                  fail it
daily_quarantine       2 of 3     3  amount|min                  3
                                     customer|nullability        1
weekly_quarantine           -     2  amount|min                  2
                                     customer|nullability        1
clean_quarantine            -     0
"""
SHOW = """\
dy_partition  dy_failed_rules                   id  amount  customer  day
mon           amount|min                        2   -1.0    redacted  mon
mon           amount|min, customer|nullability  3   -2.0              mon

2 of 3 rows.
"""


def test_list_counts_rows_by_rule_worst_first(location: Location, quarantine: Run) -> None:
    file, _ = location
    assert quarantine("list", "-f", file)[:2] == (0, LIST)


def test_show_prints_rows_with_the_rules_they_fail(location: Location, quarantine: Run) -> None:
    file, _ = location
    assert quarantine("show", "daily", "-f", file, "--limit", 2)[:2] == (0, SHOW)
    nothing = quarantine("show", "daily", "-f", file, "--partition", "tue", "--rule", "primary_key")
    assert nothing[:2] == (0, "0 rows.\n")
    code, shown, _ = quarantine(
        "show", "daily_quarantine", "-f", file, "--partition", "mon",
        "--rule", "customer|nullability", "--show-redacted",
    )  # fmt: skip
    assert code == 0
    assert shown.splitlines()[1:] == [
        "mon           amount|min, customer|nullability  3   -2.0              mon",
        "",
        "1 row.",
    ]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_export_writes_all_rows_once(
    location: Location, quarantine: Run, suffix: str, tmp_path: Path
) -> None:
    file, _ = location
    to = tmp_path / f"daily.{suffix}"
    code, printed, _ = quarantine("export", "daily", "-f", file, "--to", to)
    assert (code, printed) == (0, f"3 rows written to {to}.\n")
    rows = pl.read_csv(to) if suffix == "csv" else pl.read_parquet(to)
    assert rows["id"].to_list() == [2, 3, 4]
    assert rows["customer"].to_list() == ["redacted", None, "redacted"]
    code, _, told = quarantine("export", "daily", "-f", file, "--to", to)
    assert code == 1
    assert "already there" in told
    assert not list(tmp_path.glob(".*"))


def test_rows_are_read_with_one_row_for_each_failed_rule(location: Location) -> None:
    _, defs = location
    expected = pl.DataFrame(
        {
            "id": [2, 3, 3, 4],
            "customer": ["Bob", None, None, "Ann"],
            "dy_partition": ["mon", "mon", "mon", "tue"],
            "dy_rule": ["amount|min", "amount|min", "customer|nullability", "amount|min"],
        }
    )
    found = dd.read_quarantine(defs, "daily").select(expected.columns)
    assert_frame_equal(found.collect(), expected)
    assert_frame_equal(found.collect(engine="streaming").sort("id", "dy_rule"), expected)
    tuesday = dd.read_quarantine(defs, "daily", partition_keys=["tue"]).select(expected.columns)
    assert_frame_equal(tuesday.collect(), expected[3:])
    weekly = dd.read_quarantine(defs, dg.AssetKey("weekly_quarantine")).collect()
    assert weekly.select("id", "dy_rule").rows() == expected.select("id", "dy_rule").rows()[:3]
    assert weekly["dy_run_id"].null_count() == weekly["dy_written_at"].null_count() == 0
    assert weekly.schema["dy_written_at"] == pl.Datetime("us", "UTC")


def test_a_quarantine_without_rows_has_the_columns(location: Location) -> None:
    _, defs = location
    empty = dd.read_quarantine(defs, "clean").collect()
    assert empty.is_empty()
    assert {"id", "amount", "customer", "day", "dy_rule"} < {*empty.columns}


def test_progress_is_told_apart_from_rows(
    files: Location, quarantine: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = files
    monkeypatch.setattr("dagster_dataframely.__main__._SECONDS_BETWEEN_LINES", -1.0)
    _, printed, told = quarantine("list", "-f", file)
    assert printed == LIST
    assert "daily_quarantine: 2 of 3 partitions" in told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "dayly"], "UnknownQuarantineError: There is no quarantine `dayly`"),
        (["show", "daily", "--partition", "sun"], "`sun` is not a partition of `daily_quarantine`"),
        (["show", "daily", "--rule", "amount"], "UnknownRuleError: No rule of `daily_quarantine`"),
        (["show", "weekly", "--rule", "amount"], "there are `id|nullability`"),
        (["export", "daily", "--to", "rows.txt"], "it ends in neither `.csv` nor `.parquet`"),
        (["export", "daily", "--to", "missing/rows.csv"], "it cannot be written (No such file"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    files: Location,
    quarantine: Run,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    file, _ = files
    monkeypatch.chdir(file.parent)
    code, printed, told = quarantine(*arguments, "-f", file)
    assert (code, printed) == (1, "")
    assert says in told.splitlines()[-1]


@pytest.mark.parametrize("option", [["-f", "nowhere.py"], ["-m", "no_such_module"]])
def test_a_code_location_that_cannot_be_loaded_is_named(quarantine: Run, option: list[str]) -> None:
    code, printed, told = quarantine("list", *option)
    assert (code, printed) == (1, "")
    assert told.startswith(f"CodeLocationError: The code location `{option[1]}` cannot be loaded")


def test_a_wrong_name_is_an_error_in_a_notebook_too(files: Location) -> None:
    _, defs = files
    with pytest.raises(UnknownQuarantineError) as raised:
        dd.read_quarantine(defs, "monthly")
    assert raised.value.known == ("clean_quarantine", "daily_quarantine", "weekly_quarantine")
    with pytest.raises(InvalidArgumentError):
        dd.read_quarantine(defs, "daily", partition_keys=["sun"])
