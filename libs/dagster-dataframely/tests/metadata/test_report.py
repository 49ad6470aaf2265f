"""The report of a run: what became of the rows, and which rules fail."""

import json
from typing import Any
from urllib.parse import unquote

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.execution import Execute
from support.reported_orders import CLEAN, DIRTY, NO_CHANGE, One, Orders, changes, wide

import dagster_dataframely as dd

RED, AMBER = "#d33", "#d92"


def bar(share: str, pixels: int, colour: str = RED) -> str:
    """An image of 100 pixels, so many of them in colour, as it is in the report."""
    svg = (
        "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='9' style='background:#8884'>"
        f"<rect width='{pixels}' height='9' fill='{colour}'/></svg>"
    )
    return f"![{share}](data:image/svg+xml,{svg})"


def report_of(schema: type[dy.Schema], frame: pl.DataFrame, **arguments: Any) -> list[str]:
    """The lines of the report of a call."""
    asset = declare(schema, frame, name="orders", quarantine=True, **arguments)
    value = dd.testing.invoke(asset).metadata["dataframely/report"]
    assert isinstance(value, dg.MarkdownMetadataValue)
    report = value.value or ""
    for line in report.splitlines():
        _, _, image = line.partition("data:image")
        assert not set(' "<>#') & set(image.removesuffix(") |"))  # They end a link, or its address.
    return unquote(report).splitlines()


def test_a_clean_run_is_one_line() -> None:
    assert report_of(Orders, CLEAN) == ["**1,000 rows written.** All 7 rules pass."]


def test_failing_rules_come_first_the_worst_on_top() -> None:
    assert report_of(Orders, DIRTY) == [
        "**1 of 5 rows written**, 4 set aside (80.0%).",
        "",
        "4 of 7 rules fail.",
        "",
        "| rule | severity | rows | share | |",
        "| --- | --- | ---: | ---: | --- |",
        "| `many` | warn | the whole table | | |",
        f"| `amount\\|min` | error | 2 | 40.0% | {bar('40.0%', 40)} |",
        f"| `primary_key` | error | 2 | 40.0% | {bar('40.0%', 40)} |",
        f"| `note\\|max_length` | warn | 1 | 20.0% | {bar('20.0%', 20, AMBER)} |",
        "",
        "`id|nullability`, `amount|inf`, `amount|nan` pass.",
        "",
        "Most frequent reason: `primary_key` (2 of 4 error rows).",
    ]


@pytest.mark.parametrize(
    ("failing", "rows", "share", "pixels"),
    [
        (1, 2_000, "< 0.1%", 1),
        (1, 1_000, "0.1%", 1),
        (3, 200, "1.5%", 2),
        (1_999, 2_000, "> 99.9%", 100),
        (1_998, 2_000, "99.9%", 100),
    ],
)
def test_no_share_is_rounded_to_none_or_all(
    failing: int, rows: int, share: str, pixels: int
) -> None:
    frame = pl.DataFrame({"a": [-1] * failing + [1] * (rows - failing)})
    lines = report_of(One, frame)
    assert lines[0].startswith(f"**{rows - failing:,} of {rows:,} rows written**")
    assert lines[0].endswith(f" set aside ({share}).")
    assert lines[6] == f"| `a\\|min` | error | {failing:,} | {share} | {bar(share, pixels)} |"


def test_many_rules_are_counted() -> None:
    failing: dict[str, Any] = {f"c{number}": dy.Int64(nullable=True, min=0) for number in range(35)}
    passing: dict[str, Any] = {f"d{number}": dy.Int64(nullable=True) for number in range(1)}
    passing |= {f"e{number}": dy.Int64(nullable=True, max=9) for number in range(280)}
    schema = type("Wide", (dy.Schema,), failing | passing)
    frame = pl.DataFrame({name: [1, -1 if name in failing else 1] for name in failing | passing})
    lines = report_of(schema, frame, check_granularity="schema")
    assert lines[2] == "35 of 315 rules fail."
    assert sum(line.startswith("| `c") for line in lines) == 20
    assert lines[26:29] == ["| and 15 more rules | | | | |", "", "280 other rules pass."]
    assert lines[30].startswith("Most frequent reason: `c0|min, c1|min, ")
    assert len(lines[30]) < 300


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("a`b", "`a'b\\|min`"),
        ("``", "`''\\|min`"),
        ("a|b", "`a\\|b\\|min`"),
        ("a\nb\r\n\u2028c", "`a\\nb\\r\\n\\u2028c\\|min`"),
        ("<script>alert(1)</script>", "`<script>alert(1)</script>\\|min`"),
        ("](javascript:x)", "`](javascript:x)\\|min`"),
        ("a\\", r"`a\\\|min`"),
        ("a\\|b", r"`a\\\|b\|min`"),
        ("\\d", r"`\d\|min`"),
        ("a\u202eb", "`a\\u202eb\\|min`"),
        ("x" * 10_000, f"`{'x' * 59}…`"),
    ],
)
def test_a_name_cannot_break_the_report(column: str, code: str) -> None:
    odd = type("Odd", (dy.Schema,), {"a": dy.Int64(alias=column, nullable=True, min=1)})
    lines = report_of(odd, pl.DataFrame({column: [0, 1]}))
    assert lines[6] == f"| {code} | error | 1 | 50.0% | {bar('50.0%', 50)} |"
    assert len(lines) == 9  # The last is the most frequent reason.
    assert lines[8].count("`") == 2


def test_one_rule_that_passes_is_named() -> None:
    class Two(One):
        b = dy.Int64(nullable=True, min=0)

    assert report_of(Two, pl.DataFrame({"a": [-1, 1], "b": [1, 1]}))[8] == "`b|min` passes."


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ({"a": [1]}, "**1 row written.** The rule passes."),
        ({"a": [-1, 1]}, "**1 of 2 rows written**, 1 set aside (50.0%)."),
        ({"a": []}, "**0 rows written.** The rule passes."),
    ],
)
def test_words_go_with_their_numbers(frame: dict[str, list[int]], line: str) -> None:
    assert report_of(One, pl.DataFrame(frame, schema={"a": pl.Int64}))[0] == line


def test_a_schema_without_rules_has_a_report() -> None:
    class Free(dy.Schema):
        a = dy.Int64(nullable=True)

    assert report_of(Free, pl.DataFrame({"a": [1, 2]})) == ["**2 rows written.**"]


def test_more_than_five_names_are_counted(run: Execute) -> None:
    for value in (1, -1):
        metadata = run(wide(8, value)).metadata
    assert changes(metadata) == (
        "1 row fewer; 1 error row more; newly failing `c0|min`, `c1|min`, `c2|min`, `c3|min`, "
        "`c4|min` and 3 more."
    )


def size(value: object) -> int:
    return len(dg.serialize_value(dg.AssetMaterialization("any", metadata={"k": value})))  # type: ignore[dict-item]


NOTHING = size(dg.MetadataValue.json({}))


@pytest.mark.parametrize("budget", [0, 4_000, 20_000, 200_000])
@pytest.mark.parametrize(
    ("columns", "name"), [(300, "c"), (60, "x" * 10_000), (40, "\N{GRINNING FACE}" * 200)]
)
def test_the_report_stays_in_the_budget_whatever_rules_are_called(
    columns: int, name: str, budget: int
) -> None:
    asset = wide(columns, -1, name, max_metadata_bytes=budget, row_sample=0, statistics=False)
    metadata = dd.testing.invoke(asset).metadata
    report, failures = (metadata[f"dataframely/{key}"] for key in ("report", "failures_by_rule"))
    headline = (
        f"**1 of 2 rows written**, 1 set aside (50.0%).\n\n{columns} of {columns} rules fail."
    )
    assert report.value.startswith(headline)
    assert len(json.dumps(report.value)) <= max(budget // 16, len(json.dumps(headline)))
    assert size(failures) - NOTHING <= max(budget // 32, 100)
    assert len(failures.value) > 1 or budget < 200_000


def test_names_of_two_megabytes_are_cut(run: Execute) -> None:
    name = "x" * 2_000_000
    metadata = run(wide(1, -1, name, max_failure_samples=0)).metadata
    assert metadata is not None
    assert metadata["dataframely/failures_by_rule"] == {f"{'x' * 200}… (2,000,005 characters)": 1}
    assert len(metadata["dataframely/report"]) < 1_000
    assert changes(run(wide(1, -1, name, max_failure_samples=0)).metadata) == NO_CHANGE


def test_less_room_gives_fewer_lines_and_names() -> None:
    asset = wide(15, -1, max_metadata_bytes=20_000)
    lines = (dd.testing.invoke(asset).metadata["dataframely/report"].value or "").splitlines()
    shown = [line for line in lines if line.startswith("| `c")]
    assert 1 <= len(shown) < 10
    assert f"| and {15 - len(shown)} more rules | | | | |" in lines
