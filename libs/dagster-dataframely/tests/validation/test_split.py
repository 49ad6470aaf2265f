"""Rows are split while they are written, batch by batch, and keep their order."""

from pathlib import Path

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._validation.limits import Limits
from dagster_dataframely._validation.split import POSITION, Split
from dagster_dataframely._validation.staging import UNPUBLISHED
from dagster_dataframely._validation.streaming import evaluate_plan


def even(batch: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    passes = batch["a"] % 2 == 0
    return passes, passes.alias("even").to_frame()


def aside(split: Split) -> pl.DataFrame:
    return pl.concat(map(pl.read_parquet, split.failed_files))


@pytest.mark.parametrize("failed_bytes", [1, 1_000_000])
def test_both_files_keep_the_order(tmp_path: Path, failed_bytes: int) -> None:
    rows = pl.DataFrame({"a": pl.int_range(500_000, eager=True)})
    path = tmp_path / "folder" / "rows.parquet"
    path.parent.mkdir()
    split = Split(even, path, failed_bytes)
    passes = split.run(rows.lazy(), rows.schema, UNPUBLISHED)
    assert_series_equal(passes, (rows["a"] % 2 == 0).alias(""))
    assert_frame_equal(pl.read_parquet(path), rows[::2])
    odd = rows.with_row_index(POSITION)[1::2].with_columns(even=pl.lit(value=False))
    assert_frame_equal(aside(split), odd)
    assert (split.counts, split.counts_of_failed) == ({"even": 250_000}, {"even": 250_000})


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]])
def test_batches_may_come_in_any_order(tmp_path: Path, order: list[int]) -> None:
    path = tmp_path / "rows.parquet"
    split = Split(even, path, 1)
    batches = [pl.DataFrame({POSITION: [n, n + 1], "a": [n, n + 1]}) for n in (0, 2, 4)]
    for number in order:
        passes, flags = even(batches[number])
        failed = batches[number].hstack(flags).filter(~passes)
        split.take(2 * number, passes, failed, flags, pl.DataFrame())
    assert aside(split)[POSITION].to_list() == [1, 3, 5]


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
    split = Split(even, tmp_path / "rows.parquet", 1, ["text"])
    for number in (1, 0, 2):
        batch = frame.with_row_index(POSITION)[2 * number : 2 * number + 2]
        passes, flags = even(batch)
        failed = batch.hstack(flags).filter(~passes)
        kept = batch.select("text").filter(passes)
        split.take(2 * number, passes, failed, flags, kept)
    split.write_beside()
    assert split.has_beside is (texts[0] is not None)
    written = pl.concat([pl.read_parquet(file) for file in split.beside_files])
    assert written["text"].to_list() == texts
