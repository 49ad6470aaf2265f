"""A lazy table replaces a local Parquet file in one step, however its IO manager asks for it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import dagster as dg
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import fault_runs
from support.declare import annotated, declare
from support.fault_runs import Orders, rows_of

from dagster_dataframely._run.replacement import replacing_in_one_step
from dagster_dataframely._validation.verdict import StagedFile

pytestmark = pytest.mark.io_managers

ROWS = pl.DataFrame({"a": [1, 2, 3]})
OPTIONS: dict[str, Any] = {"compression": "zstd", "statistics": False}


@pytest.fixture
def staged(tmp_path: Path) -> StagedFile:
    path = tmp_path / "staging" / "rows.parquet"
    path.parent.mkdir()
    ROWS.write_parquet(path, compression="zstd", statistics=False)
    return StagedFile(path, OPTIONS)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def frame(staged: StagedFile, lines: list[str]) -> pl.LazyFrame:
    rows = pl.scan_parquet(staged.path)
    return replacing_in_one_step(rows, staged, staged.path.parent, lines.append)


def others(path: Path) -> list[str]:
    return [file.name for file in path.parent.iterdir() if file != path and file.is_file()]


def test_the_staged_file_becomes_the_table(
    frame: pl.LazyFrame, staged: StagedFile, tmp_path: Path, lines: list[str]
) -> None:
    table = tmp_path / "table.parquet"
    table.write_text("the last table")
    table.chmod(0o640)
    frame.sink_parquet(str(table), storage_options=None, row_group_size=None, **OPTIONS)
    assert table.samefile(staged.path)
    assert table.stat().st_mode & 0o777 == 0o640
    assert lines == [f"The staged file is linked as {table}."]
    assert others(table) == []


def test_a_link_to_a_table_stays_one(frame: pl.LazyFrame, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    table, link = tmp_path / "disk" / "table.parquet", tmp_path / "table.parquet"
    link.symlink_to(table)
    frame.sink_parquet(link, **OPTIONS)
    assert link.is_symlink()
    assert_frame_equal(pl.read_parquet(table), ROWS)


def test_on_another_file_system_it_is_copied(
    frame: pl.LazyFrame, tmp_path: Path, lines: list[str]
) -> None:
    table = tmp_path / "table.parquet"
    with mock.patch.object(os, "link", side_effect=OSError(18, "Invalid cross-device link")):
        frame.sink_parquet(table, **OPTIONS)
    assert_frame_equal(pl.read_parquet(table), ROWS)
    assert lines == [f"The staged file is copied to {table}."]
    assert others(table) == []


def test_rows_that_are_asked_for_in_another_way_are_written_first(
    frame: pl.LazyFrame, staged: StagedFile, tmp_path: Path, lines: list[str]
) -> None:
    table = tmp_path / "table.parquet"
    frame.sink_parquet(table, compression="snappy")
    assert_frame_equal(pl.read_parquet(table), ROWS)
    assert not table.samefile(staged.path)
    assert lines == [f"The rows are written; the file is linked as {table}."]
    assert list(staged.path.parent.iterdir()) == [staged.path]


def test_a_write_that_fails_leaves_the_last_table(frame: pl.LazyFrame, tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    ROWS.write_parquet(table)
    with (
        pytest.raises(OSError, match="no disk"),
        mock.patch.object(Path, "replace", side_effect=OSError("no disk")),
    ):
        frame.sink_parquet(table, **OPTIONS)
    assert_frame_equal(pl.read_parquet(table), ROWS)
    assert others(table) == []


def test_a_directory_that_takes_no_file_has_its_table_written_over(
    frame: pl.LazyFrame, tmp_path: Path, lines: list[str]
) -> None:
    table = tmp_path / "table.parquet"
    table.write_text("the last table")
    with (
        mock.patch.object(os, "link", side_effect=PermissionError),
        mock.patch.object(Path, "open", side_effect=PermissionError),
    ):
        frame.sink_parquet(table, **OPTIONS)
    assert_frame_equal(pl.read_parquet(table), ROWS)
    assert lines == [f"The rows are written over {table}: its directory takes no other file."]


@pytest.mark.parametrize(
    "options",
    [{"mkdir": True}, {"storage_options": {"aws_region": "eu-north-1"}}],
    ids=["unknown", "store"],
)
def test_what_is_not_known_is_left_to_polars(
    frame: pl.LazyFrame, tmp_path: Path, lines: list[str], options: dict[str, Any]
) -> None:
    table = tmp_path / "table.parquet"
    frame.sink_parquet(table, **OPTIONS, **options)
    assert_frame_equal(pl.read_parquet(table), ROWS)
    assert lines == ["The rows are written as the IO manager asks, and not in one step."]


@pytest.mark.parametrize("where", ["url", "device"])
def test_neither_is_what_is_no_local_file(
    frame: pl.LazyFrame, tmp_path: Path, lines: list[str], where: str
) -> None:
    target = "/dev/null" if where == "device" else f"file://{tmp_path}/table.parquet"
    frame.sink_parquet(target, **OPTIONS)
    assert lines == ["The rows are written as the IO manager asks, and not in one step."]


def test_what_is_derived_is_a_plain_frame(frame: pl.LazyFrame) -> None:
    assert "sink_parquet" in vars(frame)
    derived: list[Callable[[], pl.LazyFrame]] = [
        frame.clone,
        lambda: frame.filter(pl.col("a") > 1),
        lambda: frame.select("a"),
        lambda: frame.head(1),
        lambda: frame.join(frame, on="a"),
        lambda: pl.concat([frame, frame]),
        lambda: frame.collect().lazy(),
    ]
    assert not any("sink_parquet" in vars(derive()) for derive in derived)
    assert type(frame) is pl.LazyFrame


@pytest.mark.parametrize("metadata", [{}, {"compression": "snappy", "row_group_size": 10}])
def test_the_manager_of_dagster_polars_is_given_the_staged_file(
    tmp_path: Path, metadata: dict[str, Any]
) -> None:
    from dagster_polars import PolarsParquetIOManager

    (tmp_path / "staging").mkdir()
    orders = declare(
        Orders,
        annotated(pl.LazyFrame, rows_of(1).lazy()),
        quarantine=True,
        metadata=metadata,
        temp_dir=tmp_path / "staging",
    )
    manager = PolarsParquetIOManager(base_dir=str(tmp_path))
    with dg.DagsterInstance.ephemeral() as instance:
        dg.materialize([orders], resources={"io_manager": manager}, instance=instance)
        (run,) = instance.get_runs()
        messages = [log.user_message for log in instance.all_logs(run.run_id)]
    assert f"The staged file is linked as {tmp_path / 'orders.parquet'}." in messages
    assert pl.read_parquet(tmp_path / "orders.parquet").height == fault_runs.ROWS
    assert pl.read_parquet(tmp_path / "orders_quarantine.parquet").height == fault_runs.ERROR_ROWS


def test_a_reader_finds_a_whole_table_whenever_the_writer_is_killed(tmp_path: Path) -> None:
    """The next writer starts over the same files, so that each kill leaves its traces to the others."""
    random = Random(16)
    table = tmp_path / "orders.parquet"
    found: set[int] = set()
    for _ in range(4):
        command = [sys.executable, "-W", "ignore", "-m", fault_runs.__name__, "for ever"]
        writer = subprocess.Popen(
            [*command, fault_runs.LAZY, str(tmp_path)],
            cwd=Path(__file__).parents[1],
            stderr=subprocess.PIPE,
        )
        fault_runs.wait_until((tmp_path / "writing").exists)
        until = time.monotonic() + random.uniform(0.2, 1.5)
        while time.monotonic() < until:
            found |= look(table)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        found |= look(table)
        (tmp_path / "writing").unlink()
    assert len(found) > 4
    assert {path.name for path in tmp_path.iterdir()} == {
        "orders.parquet",
        "orders_quarantine.parquet",
        "staging",
    }


def look(table: Path) -> set[int]:
    """Read a whole table; the runs that wrote its rows."""
    rows = pl.read_parquet(table)
    assert rows.height == fault_runs.ROWS
    (run,) = {*rows["run"], *rows["same_run"]}
    return {run}
