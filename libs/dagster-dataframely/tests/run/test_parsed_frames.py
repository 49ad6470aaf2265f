"""What an asset makes of the values that `dd.parse` could not parse."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Execute

import dagster_dataframely as dd
from dagster_dataframely._metadata.tables import given_table
from dagster_dataframely._schema.original import redact_original
from dagster_dataframely._schema.parsed import judge_parsed
from dagster_dataframely._schema.read import build_expressions, read_schema
from dagster_dataframely._validation.in_memory import evaluate
from dagster_dataframely._validation.limits import Limits
from dagster_dataframely._validation.streaming import evaluate_plan

COLUMNS_CHECK = "dy_schema__columns"


class People(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Decimal(10, 2, min=0)
    born_on = dy.Date(nullable=True, unique=True, metadata=dd.severity(dtype="warn"))
    seen = dy.Datetime(nullable=True)

    @dy.rule()
    def born_before_seen(cls) -> pl.Expr:
        return pl.col("born_on") < pl.col("seen").dt.date()

    @dy.rule()
    def below_the_most(cls) -> pl.Expr:
        return pl.col("amount") < pl.col("amount").max() + 1

    @dy.rule()
    def some_rows(cls) -> pl.Expr:
        return pl.len() > 0


TEXTS = pl.DataFrame(
    {
        "id": ["1", "x", "y", "4", "4", "6", "7"],
        "amount": ["1", "-2", "z", "3", "3", "5.00", "6"],
        "born_on": ["2024-01-01", "q", "2024-01-02", "2024-01-03", "2024-01-04", "u", "v"],
        "seen": [None, "2024-02-01", None, None, None, "2024-02-01", "2024-02-01"],
    }
)
TABLE = pl.DataFrame(
    {
        "id": [1, 6, 7],
        "amount": [Decimal("1.00"), Decimal("5.00"), Decimal("6.00")],
        "born_on": [dt.date(2024, 1, 1), None, None],
        "seen": [None, dt.datetime(2024, 2, 1), dt.datetime(2024, 2, 1)],
    },
    schema={name: column.dtype for name, column in People.columns().items()},
)
KINDS = pytest.mark.parametrize("lazy", [False, True])


def parsed(lazy: bool, texts: pl.DataFrame = TEXTS) -> Any:
    return dd.parse(People, texts.lazy() if lazy else texts)


@KINDS
def test_what_was_lost_goes_with_its_row(execute: Execute, lazy: bool) -> None:
    outcome = execute(declare(People, parsed(lazy), quarantine=True, redact=["amount"]))
    assert outcome.table is not None
    assert outcome.quarantine is not None
    assert_frame_equal(outcome.table, TABLE)
    assert outcome.quarantine.columns[-1] == "dy_original"
    assert not [name for name in outcome.quarantine.columns if name.endswith("dtype")]
    assert outcome.quarantine["dy_original"].to_list() == [
        '{"id":"x","born_on":"q"}',
        '{"id":"y","amount":"z"}',
        None,
        None,
    ]
    words = outcome.quarantine.select("^dy_rule__.*$").rename(lambda name: name[9:])
    assert words.row(0, named=True) == {
        "id__nullability": "unknown",
        "amount__nullability": "valid",
        "amount__min": "invalid",
        "born_on__unique": "unknown",
        "primary_key": "unknown",
        "born_before_seen": "unknown",
        "below_the_most": "valid",
        "some_rows": "unknown",
    }
    assert words["primary_key"].to_list() == ["unknown", "unknown", "invalid", "invalid"]
    assert words["amount__nullability"].to_list() == ["valid", "unknown", "valid", "valid"]
    assert outcome.failed == {
        COLUMNS_CHECK: "WARN",
        "dy_rule__amount__min": "WARN",
        "dy_rule__primary_key": "WARN",
    }
    assert outcome.metadata is not None
    assert outcome.metadata["dataframely/cast_failures"] == {"born_on": 3, "id": 2, "amount": 1}
    (sample,) = outcome.check_metadata["dy_rule__amount__min"]["dy_failed_sample"].records
    assert sample.data["dy_original"] == '{"id":"x","born_on":"q"}'.replace(":", ": ").replace(
        ",", ", "
    )
    rows = {row.data["column"]: row.data for row in _lost(outcome)}
    assert rows["amount"]["most_frequent"] == "redacted"
    assert rows["id"] == {
        "column": "id",
        "found": "String",
        "declared": "Int64",
        "values": 2,
        "most_frequent": '"x" (1), "y" (1)',
    }


def _lost(outcome: Any) -> Any:
    return outcome.check_metadata[COLUMNS_CHECK]["dy_cast_failures"].records


@KINDS
def test_a_list_names_the_rules_on_dtypes(execute: Execute, lazy: bool) -> None:
    asset = declare(People, parsed(lazy), quarantine=True, quarantine_layout="list")
    outcome = execute(asset)
    assert outcome.quarantine is not None
    assert outcome.quarantine.columns[-1] == "dy_original"
    assert outcome.quarantine["dy_failed_rules"].to_list() == [
        ["id|dtype", "born_on|dtype", "amount|min"],
        ["id|dtype", "amount|dtype"],
        ["primary_key"],
        ["primary_key"],
    ]


@KINDS
def test_a_run_without_a_quarantine_aborts_over_a_lost_value(execute: Execute, lazy: bool) -> None:
    outcome = execute(declare(People, parsed(lazy)))
    assert outcome.error == "ValidationAbortError"
    assert outcome.failed[COLUMNS_CHECK] == "ERROR"
    assert "`id|dtype`" in outcome.message


@KINDS
def test_a_rule_that_warns_keeps_the_row_and_blocks_nothing(execute: Execute, lazy: bool) -> None:
    texts = TEXTS[[0, 5, 6]]
    outcome = execute(declare(People, parsed(lazy, texts)))
    assert outcome.table is not None
    assert_frame_equal(outcome.table, TABLE)
    assert outcome.failed == {COLUMNS_CHECK: "WARN"}
    (row,) = _lost(outcome)
    assert row.data["most_frequent"] == '"u" (1), "v" (1)'


@KINDS
def test_a_frame_that_lost_nothing_passes(execute: Execute, lazy: bool) -> None:
    outcome = execute(declare(People, parsed(lazy, TEXTS[[0]]), quarantine=True))
    assert outcome.failed == {}
    assert outcome.quarantine is None
    assert outcome.check_metadata[COLUMNS_CHECK] == {"dy_severity": "error"}
    assert outcome.metadata is not None
    assert outcome.metadata["dataframely/cast_failures"] == {}


@KINDS
def test_frames_are_filtered_joined_and_sorted_after_they_were_parsed(
    execute: Execute, lazy: bool
) -> None:
    other = pl.DataFrame({"id": [4, 6, 7], "note": ["", "", ""]})
    frame = parsed(lazy).filter(pl.col("amount") > -1)
    joined = frame.join(other.lazy() if lazy else other, on="id", how="left")
    outcome = execute(declare(People, joined.sort("amount", descending=True), quarantine=True))
    assert outcome.table is not None
    assert outcome.table["id"].to_list() == [7, 6, 1]
    assert outcome.check_metadata[COLUMNS_CHECK]["dy_extra_columns"] == ["note"]


class Numbers(dy.Schema):
    id = dy.Int64(primary_key=True, check=lambda _: pl.all_horizontal(pl.selectors.integer() > 0))
    small = dy.Int8(nullable=True)
    some = dy.List(dy.Int8(), nullable=True)


def test_values_that_were_no_text_are_lost_too(execute: Execute) -> None:
    frame = pl.DataFrame({"id": [1, 2], "small": [300, 1], "some": [[1], [900]]})
    severities: Any = {"small|dtype": "warn"}
    asset = declare(Numbers, dd.parse(Numbers, frame), quarantine=True, severities=severities)
    outcome = execute(asset)
    assert outcome.table is not None
    assert outcome.table["id"].to_list() == [1]
    found = [(row.data["found"], row.data["most_frequent"]) for row in _lost(outcome)]
    assert found == [("another dtype", '"300" (1)'), ("another dtype", "")]


def test_a_null_that_is_kept_has_to_be_allowed(execute: Execute) -> None:
    severities: Any = {"amount|dtype": "warn"}
    asset = declare(People, parsed(lazy=False), quarantine=True, severities=severities)
    outcome = execute(asset)
    assert outcome.failed["dy_rule__amount__nullability"] == "WARN"
    assert outcome.table is not None
    assert_frame_equal(outcome.table, TABLE)


def test_severities_of_dtypes_are_part_of_the_code_version() -> None:
    severities: Any = {"born_on|dtype": "error"}
    versions = [
        [*asset.code_versions_by_key.values()]
        for asset in (declare(People, None), declare(People, None, severities=severities))
    ]
    assert versions[0] != versions[1]


@KINDS
def test_checks_without_a_policy_say_what_was_lost(lazy: bool) -> None:
    results = {r.check_name: r for r in dd.wiring.evaluate(People, parsed(lazy), asset="people")}
    check = results[COLUMNS_CHECK]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert next(iter(results)) == COLUMNS_CHECK


def test_checks_of_a_parsed_frame_with_other_columns_end_there() -> None:
    results = dd.wiring.evaluate(People, parsed(lazy=False).drop("seen"), asset="people")
    assert not next(results).passed
    with pytest.raises(dd.errors.ColumnSchemaError):
        next(results)


@pytest.mark.parametrize("layout", ["columns", "list"])
def test_a_frame_of_error_rows_has_what_was_lost(layout: Literal["columns", "list"]) -> None:
    rows = dd.wiring.quarantine_frame(People, parsed(lazy=False), quarantine_layout=layout)
    assert rows["dy_original"].null_count() == 2


class Shop(dy.Collection):
    people: dy.LazyFrame[People]

    @dy.filter()
    def has_six(self) -> pl.LazyFrame:
        return self.people.filter(pl.col("id") != 6)


@KINDS
def test_members_of_a_collection_are_judged_alike(execute: Execute, lazy: bool) -> None:
    asset = declare(Shop, {"people": parsed(lazy)}, quarantine=True)
    result = dd.testing.invoke_collection(asset)["people"]
    assert result.table is not None
    assert result.table["id"].to_list() == [1, 7]
    assert result.quarantine is not None
    assert result.quarantine["dy_original"].to_list()[-1] == '{"born_on":"u"}'


def test_redaction_reaches_into_what_was_lost() -> None:
    text = '{"a":"x","b":0.10}'
    assert redact_original(text, []) == text
    assert redact_original(text, ["a"]) == '{"a": "redacted", "b": "0.10"}'
    assert redact_original("no JSON", ["a"]) == "redacted"
    schema = dg.TableSchema([dg.TableColumn("dy_original"), dg.TableColumn("a")])
    records = [
        dg.TableRecord({"dy_original": '{"a":"x"}', "a": "x"}),
        dg.TableRecord({"dy_original": None, "a": None}),
    ]
    given = given_table(dg.TableMetadataValue(records, schema), {"a"})
    assert given.rows == [
        {"dy_original": '{"a": "redacted"}', "a": "redacted"},
        {"dy_original": None, "a": None},
    ]


CELLS = st.sampled_from(["1", "2", "3", "x", "-4", None, "2024-01-01", "2024-01-02", "1.5"])


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), max_size=12),
    st.frozensets(st.sampled_from(sorted(People.columns()))),
    st.sampled_from([1, 2, 100]),
)
def test_engines_agree_on_what_was_lost(
    tmp_path_factory: pytest.TempPathFactory,
    cells: list[tuple[str | None, ...]],
    warns: frozenset[str],
    size: int,
) -> None:
    schema = dict.fromkeys(People.columns(), pl.String)
    frame = dd.parse(People, pl.DataFrame(cells, schema=schema, orient="row"))
    severities: Any = {f"{name}|dtype": "warn" for name in sorted(warns)}
    read = build_expressions(read_schema(People, severities))
    rules = judge_parsed(read, frame.schema)
    folder: Path = tmp_path_factory.mktemp("staging") / "rows"
    folder.mkdir()
    expected = evaluate(frame, rules, sample=3)
    limits = Limits(size, hashes=size, failed_bytes=size, merged_rows=size)
    found = evaluate_plan(frame.lazy(), rules, folder, sample=3, log=lambda _: None, limits=limits)
    assert found.counts == expected.counts
    for name, sample in expected.samples.items():
        assert_frame_equal(found.samples[name], sample)
    assert_frame_equal(found.survivors.collect(), expected.survivors)
    assert found.survivors.collect_schema().names() == rules.column_names
    assert_frame_equal(found.error_rows.collect(), expected.error_rows, check_column_order=False)
    # Once more: rows have been divided anew.
    for name, sample in expected.samples.items():
        assert_frame_equal(found.samples[name], sample)
