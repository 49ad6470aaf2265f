"""The report of a run: what became of the rows, which rules fail, and what changed."""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd

if TYPE_CHECKING:
    from conftest import Execute


class Orders(dy.Schema):
    """Error rules, a warn rule, and a rule over the whole table."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(nullable=True, min=0.0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))

    @dd.rule(severity="warn")
    def many(cls) -> pl.Expr:
        """There are four rows."""
        return pl.len() >= 4


CLEAN = pl.DataFrame(
    {"id": range(1_000), "amount": [1.0] * 1_000, "note": [None] * 1_000},
    schema=Orders.create_empty().schema,
)
DIRTY = pl.DataFrame(
    {"id": [1, 2, 3, 3, 4], "amount": [1.0, -1.0, 1.0, 1.0, -2.0], "note": ["x", "long", *"abc"]}
)
"""Rows 2 and 5 have a negative amount, 3 and 4 share a key, and the one that is left is too few."""


RED, AMBER = "#d33", "#d92"


class One(dy.Schema):
    """A rule."""

    a = dy.Int64(nullable=True, min=0)


def bar(share: str, pixels: int, colour: str = RED) -> str:
    """An image of 120 pixels, so many of them in colour, as it is in the report."""
    svg = (
        "<svg xmlns='http://www.w3.org/2000/svg' width='120' height='9'>"
        "<rect width='120' height='9' fill='#8884'/>"
        f"<rect width='{pixels}' height='9' fill='{colour}'/></svg>"
    )
    return f"![{share}](data:image/svg+xml,{svg})"


def report_of(schema: type[dy.Schema], frame: pl.DataFrame, **arguments: Any) -> list[str]:
    """The lines of the report of a call."""
    asset = dd.asset(schema, name="orders", quarantine=True, **arguments)(lambda: frame)
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
        "**1 of 5 rows written**, 4 set aside (80.0%). 4 of 7 rules fail:",
        "",
        "| rule | severity | rows | share | |",
        "| --- | --- | ---: | ---: | --- |",
        "| `many` | warn | the whole table | | |",
        f"| `amount\\|min` | error | 2 | 40.0% | {bar('40.0%', 48)} |",
        f"| `primary_key` | error | 2 | 40.0% | {bar('40.0%', 48)} |",
        f"| `note\\|max_length` | warn | 1 | 20.0% | {bar('20.0%', 24, AMBER)} |",
        "",
        "`id|nullability`, `amount|inf`, `amount|nan` pass.",
        "",
        "The most frequent reason, of 2 of 4 error rows: `primary_key`.",
    ]


@pytest.mark.parametrize(
    ("failing", "rows", "share", "pixels"),
    [
        (1, 2_000, "< 0.1%", 1),
        (1, 1_000, "0.1%", 1),
        (3, 200, "1.5%", 2),
        (1_999, 2_000, "> 99.9%", 120),
        (1_998, 2_000, "99.9%", 120),
    ],
)
def test_no_share_is_rounded_to_none_or_all(
    failing: int, rows: int, share: str, pixels: int
) -> None:
    frame = pl.DataFrame({"a": [-1] * failing + [1] * (rows - failing)})
    lines = report_of(One, frame)
    assert lines[0].startswith(f"**{rows - failing:,} of {rows:,} rows written**")
    assert lines[0].endswith(f" set aside ({share}). 1 of 1 rule fails:")
    assert lines[4] == f"| `a\\|min` | error | {failing:,} | {share} | {bar(share, pixels)} |"


def test_many_rules_are_counted() -> None:
    failing: dict[str, Any] = {f"c{number}": dy.Int64(nullable=True, min=0) for number in range(35)}
    passing: dict[str, Any] = {f"d{number}": dy.Int64(nullable=True) for number in range(1)}
    passing |= {f"e{number}": dy.Int64(nullable=True, max=9) for number in range(280)}
    schema = type("Wide", (dy.Schema,), failing | passing)
    frame = pl.DataFrame({name: [1, -1 if name in failing else 1] for name in failing | passing})
    lines = report_of(schema, frame, check_granularity="schema")
    assert lines[0] == "**1 of 2 rows written**, 1 set aside (50.0%). 35 of 315 rules fail:"
    assert sum(line.startswith("| `c") for line in lines) == 20
    assert lines[24:27] == ["| and 15 more rules | | | | |", "", "280 other rules pass."]
    assert lines[28].startswith("The most frequent reason, of 1 of 1 error row: `c0|min, c1|min, ")
    assert len(lines[28]) < 300


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("a`b", "`a'b\\|min`"),
        ("``", "`''\\|min`"),
        ("a|b", "`a\\|b\\|min`"),
        ("a\nb\r\n\u2028c", "`a b c\\|min`"),
        ("<script>alert(1)</script>", "`<script>alert(1)</script>\\|min`"),
        ("](javascript:x)", "`](javascript:x)\\|min`"),
        ("a\\", r"`a\\\|min`"),
        ("a\\|b", r"`a\\\|b\|min`"),
        ("\\d", r"`\d\|min`"),
        ("x" * 10_000, f"`{'x' * 59}…`"),
    ],
)
def test_a_name_cannot_break_the_report(column: str, code: str) -> None:
    odd = type("Odd", (dy.Schema,), {"a": dy.Int64(alias=column, nullable=True, min=1)})
    lines = report_of(odd, pl.DataFrame({column: [0, 1]}))
    assert lines[4] == f"| {code} | error | 1 | 50.0% | {bar('50.0%', 60)} |"
    assert len(lines) == 7  # The last is the most frequent reason.
    assert lines[6].count("`") == 2


def test_one_rule_that_passes_is_named() -> None:
    class Two(One):
        b = dy.Int64(nullable=True, min=0)

    assert report_of(Two, pl.DataFrame({"a": [-1, 1], "b": [1, 1]}))[6] == "`b|min` passes."


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ({"a": [1]}, "**1 row written.** The rule passes."),
        ({"a": [-1, 1]}, "**1 of 2 rows written**, 1 set aside (50.0%). 1 of 1 rule fails:"),
        ({"a": []}, "**0 rows written.** The rule passes."),
    ],
)
def test_words_go_with_their_numbers(frame: dict[str, list[int]], line: str) -> None:
    assert report_of(One, pl.DataFrame(frame, schema={"a": pl.Int64}))[0] == line


def test_a_schema_without_rules_has_a_report() -> None:
    class Free(dy.Schema):
        a = dy.Int64(nullable=True)

    assert report_of(Free, pl.DataFrame({"a": [1, 2]})) == ["**2 rows written.**"]


# What changed.

NO_CHANGE = "No change since the last materialization."


def changes(metadata: dict[str, Any] | None) -> str | None:
    assert metadata is not None
    last = metadata["dataframely/report"].splitlines()[-1]
    return last.partition("Since the last materialization: ")[2] or (
        last if last == NO_CHANGE else None
    )


def declare(frame: pl.DataFrame, **arguments: Any) -> dg.AssetsDefinition:
    return dd.asset(Orders, name="orders", quarantine=True, **arguments)(lambda: frame)


def test_a_run_is_compared_with_the_one_before(run: "Execute") -> None:
    assert changes(run(declare(CLEAN)).metadata) is None
    assert changes(run(declare(CLEAN)).metadata) == NO_CHANGE
    assert changes(run(declare(DIRTY)).metadata) == (
        "999 rows fewer; 4 error rows more; newly failing "
        "`amount|min`, `note|max_length`, `primary_key`, `many`."
    )
    quiet = DIRTY.with_columns(note=pl.lit(None, pl.String))
    assert changes(run(declare(quiet)).metadata) == "no longer failing `note|max_length`."


def test_a_run_that_is_not_materialized_is_not_compared_with(run: "Execute") -> None:
    run(declare(CLEAN))
    assert not run(declare(DIRTY[1:3], severities={"many": "error"})).success
    assert changes(run(declare(CLEAN)).metadata) == NO_CHANGE


def test_a_partition_is_compared_with_itself(run: "Execute") -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])
    found = [
        changes(run(declare(CLEAN[:rows], partitions_def=days), partition_key=day).metadata)
        for rows, day in [(10, "mon"), (20, "tue"), (15, "mon"), (20, "tue")]
    ]
    assert found == [None, None, "5 rows more.", NO_CHANGE]


def test_an_asset_without_partitions_is_compared_in_a_run_that_has_one(
    instance: dg.DagsterInstance,
) -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])
    found = []
    for day in days.get_partition_keys():
        partitioned = dd.asset(Orders, name="other", partitions_def=days)(lambda: CLEAN)
        result = dg.materialize(
            [declare(CLEAN), partitioned],
            instance=instance,
            resources={"io_manager": dg.mem_io_manager},
            partition_key=day,
        )
        (event,) = result.asset_materializations_for_node("orders")
        found.append(changes({"dataframely/report": event.metadata["dataframely/report"].value}))
    assert found == [None, NO_CHANGE]


def test_a_materialization_of_another_tool_is_not_compared_with(
    run: "Execute", instance: dg.DagsterInstance
) -> None:
    instance.report_runless_asset_event(
        dg.AssetMaterialization("orders", metadata={"dagster/row_count": 7})
    )
    assert changes(run(declare(CLEAN)).metadata) is None


def test_failures_are_recorded_by_rule_the_worst_first(run: "Execute") -> None:
    metadata = run(declare(DIRTY)).metadata
    assert metadata is not None
    failures = metadata["dataframely/failures_by_rule"]
    assert failures == {"amount|min": 2, "primary_key": 2, "note|max_length": 1, "many": 1}
    assert list(failures.values()) == [2, 2, 1, 1]
    assert (run(declare(CLEAN)).metadata or {})["dataframely/failures_by_rule"] == {}


def test_more_than_five_names_are_counted(run: "Execute") -> None:
    wide = type(
        "Wide", (dy.Schema,), {f"c{number}": dy.Int64(nullable=True, min=0) for number in range(8)}
    )
    names = [f"c{number}" for number in range(8)]
    for value in (1, -1):
        frame = pl.DataFrame({name: [1, value] for name in names})
        metadata = run(dd.asset(wide, name="orders", quarantine=True)(lambda: frame)).metadata  # noqa: B023
    assert changes(metadata) == (
        "1 row fewer; 1 error row more; newly failing `c0|min`, `c1|min`, `c2|min`, `c3|min`, "
        "`c4|min` and 3 more."
    )
