"""A table and its quarantine do not get in each other's way, however a manager addresses them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from handover.changes import same
from handover.managers import Manager, anything, parameters, pickling
from handover.matrix import NAMED, assert_stored
from handover.place import Place, raised
from polars.testing import assert_frame_equal

import dagster_dataframely as dd

DIRTY = same().new
CLEAN = replace(DIRTY, frame=DIRTY.survivors)
SCHEMA = DIRTY.schema
Address = Callable[[Any], str]

ADDRESSES: dict[str, Address] = {
    "asset key": lambda context: "_".join(context.asset_key.path),
    "definition metadata": lambda context: context.definition_metadata["table_name"],
    "metadata of the asset's spec": lambda context: context.asset_spec.metadata["table_name"],
    "path in the metadata": lambda context: f"shop/{context.definition_metadata['path']}",
    "step key": lambda context: context.step_key,
    "output's name": lambda context: context.name,
    "op's name": lambda context: context.op_def.name,
    "constant": lambda context: "table",
}


class Addressing(dg.IOManager):
    """Writes Parquet files, each where a function says."""

    def __init__(self, folder: Path, address: Address) -> None:
        self.folder = folder
        self.address = address

    def _path(self, context: dg.OutputContext) -> Path:
        path = self.folder / f"{self.address(context)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        obj.lazy().collect().write_parquet(self._path(context))

    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        assert context.upstream_output is not None
        return pl.read_parquet(self._path(context.upstream_output))

    def stored(self) -> dict[str, pl.DataFrame]:
        paths = sorted(self.folder.rglob("*.parquet"))
        return {str(path.relative_to(self.folder)): pl.read_parquet(path) for path in paths}


def assert_same_files(found: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    assert found.keys() == expected.keys()
    for path, frame in expected.items():
        assert_frame_equal(found[path], frame)


def assert_files(files: dict[str, pl.DataFrame], frame: pl.DataFrame) -> None:
    """One file holds the surviving rows; the others hold the error rows, if there are any."""
    columns = SCHEMA.column_names()
    (table,) = (file for file in files.values() if file.columns == columns)
    rejected = [file.select(columns) for file in files.values() if file.columns != columns]
    result = SCHEMA.filter(frame)
    assert_frame_equal(table, result.result)
    assert_frame_equal(pl.concat([table.clear(), *rejected]), result.failure.invalid())


def run(frame: pl.DataFrame, lazy: bool, io_manager: Addressing, instance: Any) -> Any:
    """Run the asset and one downstream of it; return the error, or what the latter loads."""
    seen: list[pl.DataFrame] = []

    @dd.asset(SCHEMA, quarantine=True, metadata={"table_name": "sales", "path": "2024/sales"})
    def orders() -> Any:
        return frame.lazy() if lazy else frame

    @dg.asset(io_manager_key="nowhere")
    def downstream(orders: Any) -> None:
        seen.append(orders)

    result = dg.materialize(
        [orders, downstream],
        instance=instance,
        resources={"io_manager": io_manager, "nowhere": dg.mem_io_manager},
        raise_on_error=False,
    )
    return raised(result) or seen[0]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", ADDRESSES)
def test_error_rows_do_not_replace_the_table(
    how: str,
    lazy: bool,
    tmp_path: Path,
    instance: dg.DagsterInstance,
) -> None:
    io_manager = Addressing(tmp_path, ADDRESSES[how])
    for frame in (CLEAN.frame, DIRTY.frame, CLEAN.frame):
        before = io_manager.stored()
        loaded = run(frame, lazy, io_manager, instance)
        if isinstance(loaded, pl.DataFrame):
            assert_frame_equal(loaded, SCHEMA.filter(frame).result)
            assert_files(io_manager.stored(), frame)
        else:
            assert how != "asset key", loaded
            assert loaded.classes[0] in NAMED, loaded
            assert "quarantine" in loaded.message
            assert_same_files(io_manager.stored(), before)


@pytest.mark.parametrize(
    "manager",
    [
        Manager("pickle", pickling, ("FileNotFoundError",), reads=anything),
        *parameters("parquet", "delta"),
    ],
    ids=str,
)
def test_a_partition_does_not_leave_its_folder(
    manager: Manager, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """The path of a partition `../x` is the same for a table and its quarantine."""
    place = Place(manager, tmp_path / "storage", instance, partition="../x")
    for version in (CLEAN, DIRTY):
        fitted = place.fit(version)
        error = place.run(fitted)
        if error is None:
            assert_stored(place, fitted)
        else:
            assert error.classes[0] in NAMED, error
            assert "orders_quarantine" in error.message
