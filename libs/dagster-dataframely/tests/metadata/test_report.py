"""The report of a run: what became of the rows, which rules fail, and what changed."""

import json
from typing import Any
from urllib.parse import unquote

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.execution import Execute

import dagster_dataframely as dd


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


# What changed.

NO_CHANGE = "No change since the last materialization."


def changes(metadata: dict[str, Any] | None) -> str | None:
    assert metadata is not None
    last = metadata["dataframely/report"].splitlines()[-1]
    return last.partition("Since the last materialization: ")[2] or (
        last if last == NO_CHANGE else None
    )


def test_a_run_is_compared_with_the_one_before(run: Execute) -> None:
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) is None
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) == NO_CHANGE
    assert changes(run(declare(Orders, DIRTY, quarantine=True)).metadata) == (
        "999 rows fewer; 4 error rows more; newly failing "
        "`amount|min`, `note|max_length`, `primary_key`, `many`."
    )
    quiet = DIRTY.with_columns(note=pl.lit(None, pl.String))
    assert (
        changes(run(declare(Orders, quiet, quarantine=True)).metadata)
        == "no longer failing `note|max_length`."
    )


def test_a_run_that_is_not_materialized_is_not_compared_with(run: Execute) -> None:
    run(declare(Orders, CLEAN, quarantine=True))
    assert not run(
        declare(Orders, DIRTY[1:3], quarantine=True, severities={"many": "error"})
    ).success
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) == NO_CHANGE


def test_a_partition_is_compared_with_itself(run: Execute) -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])
    found = [
        changes(
            run(
                declare(Orders, CLEAN[:rows], quarantine=True, partitions_def=days),
                partition_key=day,
            ).metadata
        )
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
            [declare(Orders, CLEAN, quarantine=True), partitioned],
            instance=instance,
            resources={"io_manager": dg.mem_io_manager},
            partition_key=day,
        )
        (event,) = result.asset_materializations_for_node("orders")
        found.append(changes({"dataframely/report": event.metadata["dataframely/report"].value}))
    assert found == [None, NO_CHANGE]


def test_a_materialization_of_another_tool_is_not_compared_with(
    run: Execute, instance: dg.DagsterInstance
) -> None:
    instance.report_runless_asset_event(
        dg.AssetMaterialization("orders", metadata={"dagster/row_count": 7})
    )
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) is None


def test_failures_are_recorded_by_rule_the_worst_first(run: Execute) -> None:
    metadata = run(declare(Orders, DIRTY, quarantine=True)).metadata
    assert metadata is not None
    failures = metadata["dataframely/failures_by_rule"]
    assert failures == {"amount|min": 2, "primary_key": 2, "note|max_length": 1, "many": 1}
    assert list(failures.values()) == [2, 2, 1, 1]
    assert (run(declare(Orders, CLEAN, quarantine=True)).metadata or {})[
        "dataframely/failures_by_rule"
    ] == {}


def test_more_than_five_names_are_counted(run: Execute) -> None:
    for value in (1, -1):
        metadata = run(wide(8, value)).metadata
    assert changes(metadata) == (
        "1 row fewer; 1 error row more; newly failing `c0|min`, `c1|min`, `c2|min`, `c3|min`, "
        "`c4|min` and 3 more."
    )


def wide(columns: int, value: int, name: str = "c", **settings: Any) -> dg.AssetsDefinition:
    """An asset with a rule for each column, and a row that fails all of them if the value does."""
    members = {f"{name}{number}": dy.Int64(nullable=True, min=0) for number in range(columns)}
    frame = pl.DataFrame({column: [1, value] for column in members})
    schema = type("Wide", (dy.Schema,), members)
    arguments: dict[str, Any] = {"quarantine": True, "check_granularity": "schema"} | settings
    return declare(schema, frame, name="orders", **arguments)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"dataframely/rows_written": 7, "dataframely/error_rows": 0},
        {
            "dataframely/rows_written": "many",
            "dataframely/error_rows": 0,
            "dataframely/failures_by_rule": {},
        },
        {
            "dataframely/rows_written": 7,
            "dataframely/error_rows": dg.MetadataValue.null(),
            "dataframely/failures_by_rule": {},
        },
        {
            "dataframely/rows_written": 7,
            "dataframely/error_rows": 0,
            "dataframely/failures_by_rule": dg.MetadataValue.json(["amount|min"]),
        },
    ],
)
def test_a_materialization_that_says_something_else_is_not_compared_with(
    run: Execute, instance: dg.DagsterInstance, metadata: dict[str, Any]
) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization("orders", metadata=metadata))
    assert changes(run(declare(Orders, CLEAN, quarantine=True)).metadata) is None


# How large it gets.


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


def test_rules_that_an_earlier_run_left_out_are_not_said_to_be_new(run: Execute) -> None:
    little: dict[str, Any] = {"max_metadata_bytes": 10_000}
    metadata = run(wide(30, -1, **little)).metadata
    assert metadata is not None
    *_, (note, number) = metadata["dataframely/failures_by_rule"].items()
    assert note.endswith(" more rules (max_metadata_bytes)")
    assert number is None
    assert changes(run(wide(30, -1)).metadata) is None
    assert changes(run(wide(30, -1)).metadata) == NO_CHANGE
    run(wide(30, -1, **little))
    assert str(changes(run(wide(30, 1)).metadata)).startswith(
        "1 row more; 1 error row fewer; no longer failing `c0|min`, `c1|min`"
    )


# A collection, and a range of partitions.


def test_each_member_of_a_collection_is_compared_with_itself(instance: dg.DagsterInstance) -> None:
    class Shop(dy.Collection):
        first: dy.LazyFrame[One]
        other: dy.LazyFrame[One]

    def last_lines(value: int) -> dict[str, str]:
        frames = {"first": pl.LazyFrame({"a": [1, 1]}), "other": pl.LazyFrame({"a": [1, value]})}
        asset = dd.collection_asset(Shop, name="shop", quarantine=True)(lambda: frames)
        result = dg.materialize(
            [asset], instance=instance, resources={"io_manager": dg.mem_io_manager}
        )
        reports = {
            event.asset_key.path[-1]: event.materialization.metadata["dataframely/report"].value
            for event in result.get_asset_materialization_events()
            if event.asset_key is not None
        }
        return {name: str(report).splitlines()[-1] for name, report in reports.items()}

    passed = "**2 rows written.** The rule passes."
    assert last_lines(1) == {"first": passed, "other": passed}
    assert last_lines(-1) == {
        "first": NO_CHANGE,
        "other": "Since the last materialization: "
        "1 row fewer; 1 error row more; newly failing `a|min`.",
    }


@pytest.mark.parametrize("divided", [True, False])
def test_a_partition_is_compared_with_a_range_where_that_told_partitions_apart(
    instance: dg.DagsterInstance, run: Execute, *, divided: bool
) -> None:
    class Trips(dy.Schema):
        city = dy.String()
        km = dy.Int64(min=0)

    frame = pl.DataFrame({"city": ["oslo", "oslo", "riga"], "km": [1, -1, 2]})

    def asset(rows: pl.DataFrame) -> dg.AssetsDefinition:
        return dd.asset(
            Trips,
            name="orders",
            quarantine=True,
            partitions_def=dg.StaticPartitionsDefinition(["oslo", "riga"]),
            metadata={"partition_expr": "city"} if divided else {},
        )(lambda: rows)

    result = dg.materialize(
        [asset(frame)],
        instance=instance,
        resources={"io_manager": dg.mem_io_manager},
        tags={
            "dagster/asset_partition_range_start": "oslo",
            "dagster/asset_partition_range_end": "riga",
        },
    )
    said = {
        event.partition: event.metadata["dataframely/report"].value.splitlines()[0]  # type: ignore[union-attr]
        for event in result.asset_materializations_for_node("orders")
    }
    together = "**2 of 3 rows written**, 1 set aside (33.3%)."
    oslo = "**1 of 2 rows written**, 1 set aside (50.0%)."
    riga = "**1 row written.** All 3 rules pass."
    assert said == {
        "oslo": oslo if divided else together,
        "riga": riga if divided else together,
    }
    outcome = run(asset(frame[:1]), partition_key="oslo")
    assert changes(outcome.metadata) == (
        "1 error row fewer; no longer failing `km|min`." if divided else None
    )
