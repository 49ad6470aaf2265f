"""What a quarantine holds after a clean run."""

from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from support.declare import declare
from support.execution import Materialize
from support.quarantined import CLEAN, DAYS, DIRTY, QUARANTINED, Orders, Read
from support.storage import FileIOManager

import dagster_dataframely as dd


@pytest.mark.parametrize("partition", [None, "mon"])
def test_a_clean_run_leaves_no_old_error_rows(
    materialize: Materialize,
    manager: object,
    read: Read,
    partition: str | None,
) -> None:
    arguments: dict[str, Any] = {"partitions_def": DAYS} if partition else {}
    materialize(declare(Orders, CLEAN, **QUARANTINED, **arguments), manager, partition)
    assert read(partition) is None
    materialize(declare(Orders, DIRTY, **QUARANTINED, **arguments), manager, partition)
    rows = read(partition)
    assert rows is not None
    assert rows["id"].to_list() == [-2]
    materialize(declare(Orders, CLEAN, **QUARANTINED, **arguments), manager, partition)
    rows = read(partition)
    assert rows is not None
    assert rows.is_empty()
    # And once more, with nothing left to take away.
    assert materialize(
        declare(Orders, CLEAN, **QUARANTINED, **arguments), manager, partition
    ).success


@pytest.mark.parametrize(
    ("partitions_def", "partition"),
    [
        (dg.DailyPartitionsDefinition("2013-01-01"), "2013-01-02"),
        (dg.DynamicPartitionsDefinition(name="days"), "mon"),
        (dg.MultiPartitionsDefinition({"day": DAYS, "origin": DAYS}), "mon|tue"),
    ],
    ids=["time windows", "dynamic", "grid"],
)
def test_a_clean_run_leaves_no_old_error_rows_of_any_kind_of_partition(
    materialize: Materialize,
    files: FileIOManager,
    instance: dg.DagsterInstance,
    partitions_def: dg.PartitionsDefinition[Any],
    partition: str,
) -> None:
    instance.add_dynamic_partitions("days", ["mon"])
    for returned in (DIRTY, CLEAN):
        materialize(
            declare(Orders, returned, partitions_def=partitions_def, **QUARANTINED),
            files,
            partition,
        )
    rows = files.read("orders_quarantine", partition)
    assert rows is not None
    assert rows.is_empty()


def test_a_clean_run_of_one_partition_leaves_the_others(
    materialize: Materialize,
    manager: object,
    read: Read,
) -> None:
    for day in ("mon", "tue"):
        rows = DIRTY.with_columns(day=pl.lit(day))
        materialize(declare(Orders, rows, partitions_def=DAYS, **QUARANTINED), manager, day)
    materialize(declare(Orders, CLEAN, partitions_def=DAYS, **QUARANTINED), manager, "mon")
    found = {day: read(day) for day in ("mon", "tue")}
    assert {day: None if rows is None else rows.height for day, rows in found.items()} == {
        "mon": 0,
        "tue": 1,
    }


@pytest.mark.parametrize("returned", [None, DIRTY.drop("id")], ids=["skip", "other columns"])
def test_a_run_that_writes_no_table_leaves_the_error_rows_of_the_last_one(
    materialize: Materialize, files: FileIOManager, returned: object
) -> None:
    materialize(declare(Orders, DIRTY, **QUARANTINED), files)
    run = dg.materialize(
        [declare(Orders, returned, **QUARANTINED)],
        resources={"io_manager": files},
        raise_on_error=False,
    )
    assert run.success is (returned is None)
    rows = files.read("orders_quarantine")
    assert rows is not None
    assert rows.height == 1


def test_error_rows_stay_where_the_table_of_a_clean_run_cannot_be_written(
    materialize: Materialize, files: FileIOManager
) -> None:
    materialize(declare(Orders, DIRTY, **QUARANTINED), files)
    before = files.files

    class Full(type(files)):  # type: ignore[misc]
        def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
            message = "No space left"
            raise OSError(message)

    with pytest.raises(OSError, match="No space left"):
        materialize(declare(Orders, CLEAN, **QUARANTINED), Full(files.root))
    rows = files.read("orders_quarantine")
    assert rows is not None
    assert (rows.height, files.files) == (1, before)


def test_a_clean_direct_invocation_clears_the_file_of_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR", str(tmp_path))
    path = tmp_path / "orders_quarantine.parquet"

    def call(frame: pl.DataFrame) -> None:
        events: Any = declare(Orders, frame, **QUARANTINED)(dg.build_asset_context())
        assert list(events)

    call(CLEAN)
    assert not path.exists()
    call(DIRTY)
    assert pl.read_parquet(path).height == 1
    assert dd.testing.invoke(declare(Orders, CLEAN, **QUARANTINED)).quarantine is None
    assert pl.read_parquet(path).height == 1
    call(CLEAN)
    assert pl.read_parquet(path).is_empty()
    monkeypatch.delenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR")
    call(CLEAN)


def test_a_clean_run_of_a_hand_wired_asset_clears_what_its_writer_can_clear(
    files: FileIOManager,
) -> None:
    frames = iter([DIRTY, CLEAN])

    @dg.asset(check_specs=dd.wiring.check_specs(Orders, asset="orders"), output_required=False)
    def orders(context: dg.AssetExecutionContext) -> Any:
        writer = dd.wiring.delegating_writer(context)
        yield from dd.wiring.process(Orders, next(frames), asset="orders", quarantine_writer=writer)

    heights = []
    for _run in range(2):
        dg.materialize([orders], resources={"io_manager": files})
        rows = files.read("orders_quarantine")
        assert rows is not None
        heights.append(rows.height)
    assert heights == [1, 0]


def test_a_writer_that_is_a_function_is_not_called_without_error_rows() -> None:
    def refuse(frame: pl.DataFrame) -> str:
        raise AssertionError(frame)

    assert list(dd.wiring.process(Orders, CLEAN, asset="orders", quarantine_writer=refuse))
