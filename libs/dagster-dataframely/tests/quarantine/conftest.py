"""Fixtures of these tests."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.quarantined import Read
from support.storage import FileIOManager


@pytest.fixture
def read(manager: Any, tmp_path: Path, files: FileIOManager) -> Read:
    """What is stored as the quarantine of an asset or a partition, read without the manager."""

    def read(partition: str | None) -> pl.DataFrame | None:
        if hasattr(manager, "database"):
            import duckdb

            with duckdb.connect(manager.database) as connection:
                try:
                    found = connection.execute("select * from public.orders_quarantine")
                except duckdb.CatalogException:
                    return None
                frame: pl.DataFrame = found.pl()
                return frame if partition is None else frame.filter(day=partition)
        if hasattr(manager, "base_dir"):
            parts = ["orders_quarantine", *([] if partition is None else [partition])]
            path = Path(manager.base_dir).joinpath(*parts[:-1], f"{parts[-1]}.parquet")
            return pl.read_parquet(path) if path.exists() else None
        return files.read("orders_quarantine", partition)

    return read
