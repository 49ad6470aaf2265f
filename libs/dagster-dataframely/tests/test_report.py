"""The report of a run: what became of the rows, which rules fail, and what changed."""

from typing import TYPE_CHECKING, Any

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


def report_of(schema: type[dy.Schema], frame: pl.DataFrame, **arguments: Any) -> list[str]:
    """The lines of the report of a call."""
    asset = dd.asset(schema, name="orders", quarantine=True, **arguments)(lambda: frame)
    value = dd.testing.invoke(asset).metadata["dataframely/report"]
    assert isinstance(value, dg.MarkdownMetadataValue)
    return (value.value or "").splitlines()


def test_a_clean_run_is_one_line() -> None:
    assert report_of(Orders, CLEAN) == ["**1,000 rows written.** All 7 rules pass."]


def test_failing_rules_come_first_the_worst_on_top() -> None:
    assert report_of(Orders, DIRTY) == [
        "**1 of 5 rows written**, 4 set aside (80.0%). 4 of 7 rules fail:",
        "",
        "| rule | severity | rows | share | |",
        "| --- | --- | ---: | ---: | --- |",
        "| `many` | warn | the whole table | | |",
        "| `amount\\|min` | error | 2 | 40.0% | `████` |",
        "| `primary_key` | error | 2 | 40.0% | `████` |",
        "| `note\\|max_length` | warn | 1 | 20.0% | `██` |",
        "",
        "`id|nullability`, `amount|inf`, `amount|nan` pass.",
        "",
        "The most frequent reason, of 2 of 4 error rows: `primary_key`.",
    ]


def test_a_small_share_shows_too() -> None:
    frame = CLEAN.with_columns(amount=pl.Series([-1.0, *[1.0] * 999]))
    (line,) = [line for line in report_of(Orders, frame) if line.startswith("| `")]
    assert line == "| `amount\\|min` | error | 1 | 0.1% | `▏` |"
    frame = pl.concat([frame, CLEAN.with_columns(pl.col("id") + 1_000)])
    (line,) = [line for line in report_of(Orders, frame) if line.startswith("| `")]
    assert line == "| `amount\\|min` | error | 1 | < 0.1% | `▏` |"


def test_many_rules_are_counted() -> None:
    failing: dict[str, Any] = {f"c{number}": dy.Int64(nullable=True, min=0) for number in range(35)}
    passing: dict[str, Any] = {f"d{number}": dy.Int64(nullable=True) for number in range(1)}
    passing |= {f"e{number}": dy.Int64(nullable=True, max=9) for number in range(280)}
    schema = type("Wide", (dy.Schema,), failing | passing)
    frame = pl.DataFrame({name: [1, -1 if name in failing else 1] for name in failing | passing})
    lines = report_of(schema, frame, check_granularity="schema")
    assert lines[0] == "**1 of 2 rows written**, 1 set aside (50.0%). 35 of 315 rules fail:"
    assert sum(line.startswith("| `c") for line in lines) == 20
    assert lines[24:27] == ["| and 15 more rules | | | | |", "", "280 rules pass."]
    assert lines[28].startswith("The most frequent reason, of 1 of 1 error row: `c0|min, c1|min, ")
    assert len(lines[28]) < 300
    short = report_of(schema, frame, check_granularity="schema", max_metadata_bytes=10_000)
    assert sum(line.startswith("| `c") for line in short) == 2
    assert "| and 33 more rules | | | | |" in short


def test_names_cannot_break_the_report() -> None:
    class Odd(dy.Schema):
        size = dy.Int64(alias="a`|<b>\n" + "x" * 80, nullable=True, min=1)
        one = dy.Int64(nullable=True, min=1)

    (name, _) = Odd.column_names()
    lines = report_of(Odd, pl.DataFrame({name: [0, 1], "one": [1, 1]}))
    assert lines[4] == f"| `a'\\|<b> {'x' * 52}…` | error | 1 | 50.0% | `█████` |"
    assert lines[6] == "`one|min` passes."
    lines = report_of(Odd, pl.DataFrame({name: [0, 1], "one": [0, 1]}))
    assert lines[0].endswith("2 of 2 rules fail:")
    assert lines[7].startswith("The most frequent reason")


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ({"a": [1]}, "**1 row written.** The rule passes."),
        ({"a": [-1, 1]}, "**1 of 2 rows written**, 1 set aside (50.0%). 1 of 1 rule fails:"),
        ({"a": []}, "**0 rows written.** The rule passes."),
    ],
)
def test_words_go_with_their_numbers(frame: dict[str, list[int]], line: str) -> None:
    class One(dy.Schema):
        a = dy.Int64(nullable=True, min=0)

    assert report_of(One, pl.DataFrame(frame, schema={"a": pl.Int64}))[0] == line


def test_a_schema_without_rules_has_a_report() -> None:
    class Free(dy.Schema):
        a = dy.Int64(nullable=True)

    assert report_of(Free, pl.DataFrame({"a": [1, 2]})) == ["**2 rows written.**"]


# What changed.


def changes(metadata: dict[str, Any] | None) -> str | None:
    assert metadata is not None
    last = metadata["dataframely/report"].splitlines()[-1]
    return last.partition("materialization: ")[2] or None


def declare(frame: pl.DataFrame, **arguments: Any) -> dg.AssetsDefinition:
    return dd.asset(Orders, name="orders", quarantine=True, **arguments)(lambda: frame)


def test_a_run_is_compared_with_the_one_before(run: "Execute") -> None:
    assert changes(run(declare(CLEAN)).metadata) is None
    assert changes(run(declare(CLEAN)).metadata) == "no change."
    assert changes(run(declare(DIRTY)).metadata) == (
        "999 rows fewer; 4 error rows more; newly failing "
        "`amount|min`, `note|max_length`, `primary_key`, `many`."
    )
    quiet = DIRTY.with_columns(note=pl.lit(None, pl.String))
    assert changes(run(declare(quiet)).metadata) == "failing no more `note|max_length`."


def test_a_run_that_is_not_materialized_is_not_compared_with(run: "Execute") -> None:
    run(declare(CLEAN))
    assert not run(declare(DIRTY[1:3], severities={"many": "error"})).success
    assert changes(run(declare(CLEAN)).metadata) == "no change."


def test_a_partition_is_compared_with_itself(run: "Execute") -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])
    found = [
        changes(run(declare(CLEAN[:rows], partitions_def=days), partition_key=day).metadata)
        for rows, day in [(10, "mon"), (20, "tue"), (15, "mon"), (20, "tue")]
    ]
    assert found == [None, None, "5 rows more.", "no change."]


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
    assert found == [None, "no change."]


def test_a_materialization_of_another_tool_is_not_compared_with(
    run: "Execute", instance: dg.DagsterInstance
) -> None:
    instance.report_runless_asset_event(
        dg.AssetMaterialization("orders", metadata={"dagster/row_count": 7})
    )
    assert changes(run(declare(CLEAN)).metadata) is None


def test_failures_are_recorded_by_rule_where_there_are_any(run: "Execute") -> None:
    metadata = run(declare(DIRTY)).metadata
    assert metadata is not None
    assert metadata["dataframely/failures_by_rule"] == {
        "amount|min": 2,
        "note|max_length": 1,
        "primary_key": 2,
        "many": 1,
    }
    assert "dataframely/failures_by_rule" not in (run(declare(CLEAN)).metadata or {})


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
