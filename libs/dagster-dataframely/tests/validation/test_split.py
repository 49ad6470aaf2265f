"""Rows are split while they are written, batch by batch, and keep their order."""

from pathlib import Path

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._validation.limits import Limits
from dagster_dataframely._validation.split import POSITION, SetAside, Split
from dagster_dataframely._validation.staged import decide_by_column, decide_by_rules
from dagster_dataframely._validation.staging import UNPUBLISHED
from dagster_dataframely._validation.streaming import evaluate_plan
from dagster_dataframely._validation.verdict import SURVIVES
from dagster_dataframely.errors import RuleEvaluationError


def even(batch: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    passes = batch["a"] % 2 == 0
    return passes, passes.alias("even").to_frame()


def aside(split: Split) -> pl.DataFrame:
    return pl.concat(map(pl.read_parquet, split.failed_files))


def test_lists_of_categories_stay_with_their_rows(tmp_path: Path) -> None:
    values: list[list[str | None]] = [[], [], ["a"], [None], ["b"]]
    rows = pl.DataFrame(
        {"a": range(5), "of": pl.Series(values, dtype=pl.List(pl.Categorical()))},
    )
    path = tmp_path / "folder" / "rows.parquet"
    path.parent.mkdir()
    split = Split(even, path, rows.schema, 1)
    split.run(rows.lazy(), UNPUBLISHED)
    assert pl.read_parquet(path)["of"].to_list() == [[], ["a"], ["b"]]
    assert aside(split)["of"].to_list() == [[], [None]]


@pytest.mark.parametrize("failed_bytes", [1, 1_000_000])
def test_both_files_keep_the_order(tmp_path: Path, failed_bytes: int) -> None:
    rows = pl.DataFrame({"a": pl.int_range(500_000, eager=True)})
    path = tmp_path / "folder" / "rows.parquet"
    path.parent.mkdir()
    split = Split(even, path, rows.schema, failed_bytes)
    passes = split.run(rows.lazy(), UNPUBLISHED)
    assert_series_equal(passes, (rows["a"] % 2 == 0).alias(""))
    assert_frame_equal(pl.read_parquet(path), rows[::2])
    odd = rows.with_row_index(POSITION)[1::2].with_columns(even=pl.lit(value=False))
    assert_frame_equal(aside(split), odd)
    assert (split.counts, split.counts_of_failed) == ({"even": 250_000}, {"even": 250_000})


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 1, 3], [1, 3, 2, 0], [3, 2, 1, 0]])
def test_batches_may_come_in_any_order(tmp_path: Path, order: list[int]) -> None:
    path = tmp_path / "rows.parquet"
    split = Split(even, path, pl.Schema({"a": pl.Int64()}), 1)
    batches = [pl.DataFrame({POSITION: [n, n + 1], "a": [n, n + 1]}) for n in (0, 2, 4)]
    batches.append(pl.DataFrame({POSITION: [6], "a": [6]}))
    passing = {number: split.split(batches[number])["a"].to_list() for number in order}
    assert passing == {number: batches[number]["a"][::2].to_list() for number in order}
    failed = [pl.read_parquet(file) for file in split.failed.publish()]
    assert [rows[POSITION].to_list() for rows in failed] == [[1], [3], [5]]
    assert split.split(batches[0].clear()).equals(pl.DataFrame(schema={"a": pl.Int64}))


@pytest.mark.parametrize(("max_bytes", "files"), [(1, 2), (1_000_000, 1)])
def test_rows_set_aside_stay_in_memory_until_they_are_many(
    tmp_path: Path, max_bytes: int, files: int
) -> None:
    rows = pl.DataFrame({"a": [1, 2]})
    set_aside = SetAside(tmp_path / "rows.parquet", max_bytes)
    for part in (rows, rows.clear(), rows + 2):
        set_aside.add(part)
    published = set_aside.publish()
    assert sorted(tmp_path.iterdir()) == published
    assert len(published) == files
    assert pl.read_parquet(published)["a"].to_list() == [1, 2, 3, 4]
    assert SetAside(tmp_path / "none.parquet", max_bytes).publish() == []


def test_a_batch_that_cannot_be_evaluated_is_noted() -> None:
    def refuse(_series: pl.Series) -> pl.Series:
        message = "not today"
        raise ValueError(message)

    checks = {
        "other": lambda a: a.map_batches(refuse, return_dtype=pl.Boolean, is_elementwise=True)
    }
    rules = read_schema(type("Schema", (dy.Schema,), {"a": dy.Int64(check=checks)}))
    errors: list[RuleEvaluationError] = []
    batch = pl.DataFrame({"a": [1, None]})
    with pytest.raises(RuleEvaluationError):
        decide_by_rules(batch, rules, rules.rules, errors)
    assert [error.rule for error in errors] == ["a|check__other"]
    nullability = [rule for rule in rules.rules if rule.name == "a|nullability"]
    passes, flags = decide_by_rules(batch, rules, nullability, errors)
    assert passes.to_list() == flags["a|nullability"].to_list() == [True, False]


def test_a_column_may_decide() -> None:
    passes, flags = decide_by_column(pl.DataFrame({SURVIVES: [True, False]}))
    assert (passes.to_list(), flags.width) == ([True, False], 0)


class Keyed(dy.Schema):
    """Rules about one row that are errors and warnings, and one over several rows."""

    id = dy.Int64(primary_key=True)
    amount = dy.Int64(min=0)
    note = dy.String(nullable=True, max_length=2)


def test_a_table_from_which_no_row_is_removed_is_written_once(tmp_path: Path) -> None:
    rules = read_schema(Keyed, {"note|max_length": "warn"})
    frame = pl.DataFrame({"id": [1, 2, 3], "amount": [1, -1, 2], "note": ["long", "ok", None]})
    lines: list[str] = []
    options = {"compression": "zstd"}
    verdict = evaluate_plan(
        frame.lazy(), rules, tmp_path, sample=3, log=lines.append, options=options
    )
    staged = verdict.staged_file
    assert staged is not None
    assert staged.options == options
    assert_frame_equal(pl.read_parquet(staged.path), frame[[0, 2]])
    assert not any("once more" in line for line in lines)
    assert_frame_equal(verdict.samples["note|max_length"], frame[:1])


def test_a_table_from_which_rows_are_removed_is_written_again(tmp_path: Path) -> None:
    rules = read_schema(Keyed, {"note|max_length": "warn"})
    frame = pl.DataFrame(
        {"id": [1, 2, 1, 4], "amount": [1, -1, 2, 3], "note": ["long", "longer", None, "ok"]}
    )
    lines: list[str] = []
    verdict = evaluate_plan(
        frame.lazy(), rules, tmp_path, sample=3, log=lines.append, limits=Limits(merged_rows=1)
    )
    staged = verdict.staged_file
    assert staged is not None
    assert_frame_equal(pl.read_parquet(staged.path), frame[3:])
    (line,) = [line for line in lines if "once more" in line]
    assert line.startswith("Wrote the rows once more without 2 rows that")
    error_rows = verdict.error_rows.select(*frame.columns, "note|max_length").collect()
    expected = frame[:3].with_columns(pl.Series("note|max_length", [False, False, True]))
    assert_frame_equal(error_rows, expected)
    # The rows that are left, and those aside, as before: nothing else is in the folder.
    assert len(list(tmp_path.iterdir())) == 2
    assert_frame_equal(verdict.samples["note|max_length"], frame[:2])
    assert_frame_equal(verdict.samples["primary_key"], frame[:1])


@pytest.mark.parametrize("texts", [["a" * 20, None, None], [None, None, None]])
def test_columns_beside_the_rows_that_pass_are_kept_unless_they_are_null(
    tmp_path: Path, texts: list[str | None]
) -> None:
    frame = pl.DataFrame({"a": [0, 1, 2, 3, 4], "text": [texts[0], "x", texts[1], "x", texts[2]]})
    split = Split(even, tmp_path / "rows.parquet", pl.Schema({"a": pl.Int64()}), 1, ["text"])
    for number in (1, 0, 2):
        batch = frame.with_row_index(POSITION)[2 * number : 2 * number + 2]
        assert split.split(batch).columns == ["a"]
    assert split.has_beside is (texts[0] is not None)
    written = pl.concat([pl.read_parquet(file) for file in split.kept.publish()])
    assert written["text"].to_list() == texts
