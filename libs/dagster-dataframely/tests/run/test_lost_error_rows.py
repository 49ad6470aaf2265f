"""A partition is run again after its error rows are gone."""

import shutil
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from support.fault_runs import (
    ERROR_ROWS,
    ROWS,
    SAFE,
    build_orders,
    manager,
    query,
    rows_of,
)

pytestmark = pytest.mark.io_managers


def materialize_partition(storage: str, folder: Path, key: str, rows: int | None = None) -> None:
    orders = build_orders(
        lambda: rows_of(int(key)).lazy().head(rows or ROWS + ERROR_ROWS),
        folder,
        partitions_def=dg.StaticPartitionsDefinition(["1", "2"]),
        metadata={"partition_expr": "run"},
    )
    resources = {"io_manager": manager(storage, folder)}
    dg.materialize([orders], resources=resources, partition_key=key)


def error_rows(storage: str, folder: Path) -> dict[str, int]:
    """How many there are by partition."""
    if storage.startswith("Parquet"):
        files = sorted((folder / "orders_quarantine").glob("*.parquet"))
        return {file.stem: pl.read_parquet(file).height for file in files}
    found = query(
        folder, "select run, count(*) from public.orders_quarantine group by 1 order by 1"
    )
    return {str(run): rows for run, rows in found}


def take_away(storage: str, folder: Path) -> None:
    if storage.startswith("Parquet"):
        shutil.rmtree(folder / "orders_quarantine")
    else:
        query(folder, "drop table public.orders_quarantine")


@pytest.mark.parametrize("storage", ["Parquet", "DuckDB", *SAFE])
def test_a_partition_is_run_again_after_its_error_rows_are_gone(
    storage: str, tmp_path: Path
) -> None:
    for key in ("1", "2"):
        materialize_partition(storage, tmp_path, key)
    assert error_rows(storage, tmp_path) == {"1": ERROR_ROWS, "2": ERROR_ROWS}
    materialize_partition(storage, tmp_path, "1", ROWS)
    empty_file = {"1": 0} if storage.startswith("Parquet") else {}
    assert error_rows(storage, tmp_path) == {**empty_file, "2": ERROR_ROWS}
    take_away(storage, tmp_path)
    materialize_partition(storage, tmp_path, "1", ROWS)
    materialize_partition(storage, tmp_path, "2")
    assert error_rows(storage, tmp_path) == {"2": ERROR_ROWS}
