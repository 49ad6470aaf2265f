"""Names and numbers are put into words that stay on one line."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely._assets.dagster_types import typed_ins
from dagster_dataframely._text import (
    count,
    cut,
    cut_start,
    list_within,
    printable,
    share,
    type_name,
)

ODD = "a\nb\x1b[2J\u202ec"
"""A name that would begin a line, clear a terminal and turn the rest of the line around."""
SHOWN = r"a\nb\x1b[2J\u202ec"

PARTITION = "north\x1b[2J"
"""Dagster takes no line break in a partition (1.13), but other control characters."""


class Odd(dy.Schema):
    """Each rule names the column, a field of it, or a value in words."""

    key = dy.Int64(alias=ODD, primary_key=True, min=1)
    text = dy.String(regex="a\nb", nullable=True)
    record = dy.Struct({ODD: dy.Int64(min=1)}, nullable=True)

    @dy.rule()
    def positive(cls) -> pl.Expr:
        return pl.col(ODD) > 0


ROWS = pl.LazyFrame(
    {ODD: [1, 2, -1, -1], "text": [None] * 4, "record": [None] * 4},
    schema={name: column.dtype for name, column in Odd.columns().items()},
)


@pytest.mark.parametrize(
    ("part", "shown"),
    [(0, "0%"), (1, "< 0.1%"), (125_000, "12.5%"), (999_999, "> 99.9%"), (1_000_000, "100.0%")],
)
def test_a_share_is_none_or_all_only_where_it_is(part: int, shown: str) -> None:
    assert share(part, 1_000_000) == shown


def test_control_characters_line_breaks_and_marks_that_reorder_are_escaped() -> None:
    assert printable(ODD) == SHOWN
    assert printable("größe 宽 €") == "größe 宽 €"


def test_numbers_go_with_their_nouns() -> None:
    assert [count(number, "row") for number in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]


def test_a_text_is_cut_at_its_end_or_at_its_start() -> None:
    assert [cut("abcd", 4), cut("abcde", 4)] == ["abcd", "abc…"]
    assert [cut_start("abcd", 4), cut_start("abcde", 4)] == ["abcd", "…cde"]


@pytest.mark.parametrize(
    ("length", "names", "shown"),
    [
        (50, "abc", "in: a, b, c."),
        (50, "abcdefg", "in: a, b, c, d, e and 2 more."),
        (20, "abcdefg", "in: a, b and 5 more."),
        (1, "ab", "in: a and 1 more."),
        (1, "", "in: ."),
    ],
)
def test_a_list_shows_fewer_names_where_it_gets_long(length: int, names: str, shown: str) -> None:
    assert list_within(length, "in: ", list(names), ".") == shown


def test_a_type_is_named_as_it_is_imported() -> None:
    assert [type_name(value) for value in (1, pl.DataFrame())] == ["int", "polars.DataFrame"]


def test_no_name_fakes_a_line_of_the_log() -> None:
    @dd.asset(Odd, quarantine=True, partitions_def=dg.StaticPartitionsDefinition([PARTITION]))
    def odd() -> pl.LazyFrame:
        return ROWS

    with dg.DagsterInstance.ephemeral() as instance:
        run = dg.materialize(
            [odd],
            instance=instance,
            resources={"io_manager": dg.mem_io_manager},
            partition_key=PARTITION,
        )
        entries = instance.all_logs(run.run_id)
    messages = [entry.user_message for entry in entries if not entry.is_dagster_event]
    lines = [line for message in messages for line in message.split("\n")]
    assert run.success
    assert all(map(str.isprintable, lines))
    assert r"  a\nb\x1b[2J\u202ec|min (error): 2 rows" in lines
    assert r"Error rows written to odd_quarantine (partition north\x1b[2J): 2." in lines


def test_a_rule_that_names_a_column_is_logged_on_one_line() -> None:
    unique = type("Unique", (dy.Schema,), {"key": dy.Int64(alias=ODD, unique=True)})
    rows = ROWS.select(ODD)

    @dd.asset(unique, quarantine=True)
    def odd() -> pl.LazyFrame:
        return rows

    with dg.DagsterInstance.ephemeral() as instance:
        run = dg.materialize([odd], instance=instance, resources={"io_manager": dg.mem_io_manager})
        entries = instance.all_logs(run.run_id)
    lines = [entry.user_message for entry in entries if not entry.is_dagster_event]
    assert any(
        line.startswith(f"Looked for duplicates under `{SHOWN}|unique`: 4 rows in ")
        for line in lines
    )


@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
def test_no_name_fakes_a_line_of_a_checks_description(granularity: Any) -> None:
    asset = dd.asset(Odd, name="odd", check_granularity=granularity)(lambda: None)
    descriptions = [spec.description or "" for spec in asset.check_specs]
    assert all(map(str.isprintable, descriptions))
    assert any(SHOWN in description for description in descriptions)


def test_what_a_check_says_of_its_rule_is_on_one_line() -> None:
    asset = dd.asset(Odd, name="odd")(lambda: None)
    descriptions = {spec.name: spec.description for spec in asset.check_specs}
    assert descriptions["dy_rule__text__regex"] == "`text`: matches `a\\nb`"
    column = "dy_rule__a_b__2J_c__min"
    assert descriptions[column] == f"`{SHOWN}`: at least 1"


@pytest.mark.parametrize("found", ["frame", "partition"])
def test_no_name_fakes_a_line_of_a_type_check(found: str) -> None:
    def total(odd: dict[str, dy.DataFrame[Odd]]) -> None: ...

    kind: Any = dd.dagster_type(Odd)
    value: Any = pl.DataFrame()
    if found == "partition":
        kind, value = typed_ins(total, None, ())["odd"].dagster_type, {PARTITION: value}
    description = kind.type_check(None, value).description
    assert description is not None
    assert description.isprintable()
    assert f"`{SHOWN}` is missing, declared Int64" in description


def test_no_name_fakes_a_line_of_a_quarantines_description() -> None:
    spec = dd.build_quarantine_spec(Odd, dg.AssetKey(["sales", ODD]))
    assert spec.description is not None
    assert spec.description.startswith(f"Invalid rows from `sales/{SHOWN}`: ")


def test_columns_to_redact_are_named_in_full() -> None:
    names = ["x" * 60, *(f"{'y' * 60}{number}" for number in range(5))]
    schema = type("Long", (dy.Schema,), {name: dy.Int64() for name in names})
    with pytest.raises(dd.errors.InvalidSettingError) as caught:
        dd.asset(schema, redact=["z"])
    assert str(caught.value) == (
        "Setting `redact` is ['z'], from the argument. Allowed: columns of Long: "
        f"{names[0]}, {names[1]} and 4 more."
    )
