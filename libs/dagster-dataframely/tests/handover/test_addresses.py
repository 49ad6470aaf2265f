"""A table and its quarantine do not get in each other's way, however a manager addresses them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from handover.changes import Change, same
from handover.managers import Manager, Pickling, parameters
from handover.matrix import NAMED, Place, assert_stored, compare, raised
from polars.testing import assert_frame_equal
from upath import UPath

import dagster_dataframely as dd

DIRTY = same().new
SCHEMA = DIRTY.schema
CLEAN_ROWS = DIRTY.survivors
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


def assert_files(files: dict[str, pl.DataFrame], frame: pl.DataFrame) -> None:
    """One file holds the surviving rows; the others hold the error rows, if there are any."""
    columns = SCHEMA.column_names()
    (table,) = (file for file in files.values() if file.columns == columns)
    rejected = [file.select(columns) for file in files.values() if file.columns != columns]
    result = SCHEMA.filter(frame)
    assert_frame_equal(table, result.result)
    assert_frame_equal(pl.concat([table.clear(), *rejected]), result.failure.invalid())


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", ADDRESSES)
def test_error_rows_do_not_replace_the_table(
    how: str,
    lazy: bool,  # noqa: FBT001
    tmp_path: Path,
    instance: dg.DagsterInstance,
) -> None:
    manager = Addressing(tmp_path, ADDRESSES[how])
    metadata = {"table_name": "sales", "path": "2024/sales"}
    for frame in (CLEAN_ROWS, DIRTY.frame, CLEAN_ROWS):
        seen: list[pl.DataFrame] = []

        def orders(frame: pl.DataFrame = frame) -> Any:
            return frame.lazy() if lazy else frame

        @dg.asset(io_manager_key="nowhere")
        def downstream(orders: Any, seen: list[pl.DataFrame] = seen) -> None:
            seen.append(orders)

        orders.__defaults__ = None
        before = manager.stored()
        asset = dd.asset(SCHEMA, name="orders", quarantine=True, metadata=metadata)(orders)
        error = raised(
            dg.materialize(
                [asset, downstream],
                instance=instance,
                resources={"io_manager": manager, "nowhere": dg.mem_io_manager},
                raise_on_error=False,
            )
        )
        if error is None:
            assert_frame_equal(seen[0], SCHEMA.filter(frame).result)
            assert_files(manager.stored(), frame)
        else:
            assert how != "asset key", error
            assert error.classes[0] in NAMED, error
            assert "quarantine" in error.message
            assert manager.stored() == before
