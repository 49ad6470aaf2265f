"""List IO managers: those that are released and installed, and some that do other things."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from handover.own_managers import Keeping, Pickling, Remembering
from upath import UPath


@dataclass(frozen=True, eq=False)
class Manager:
    """An IO manager by name, and how a test has to treat it."""

    name: str
    make: Callable[[Path], Any]
    missing: tuple[str, ...]
    """The classes of the errors that mean that nothing is stored."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What a partitioned asset has to say."""
    reads: Callable[[bool], Any] = lambda lazy: pl.LazyFrame if lazy else pl.DataFrame
    """The annotation of an input, where the output is lazy and where it is not."""
    widens: Sequence[tuple[Any, pl.DataType]] = ()
    """Dtypes that are known to be read back as another that holds the values too."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What `dd.asset` needs besides."""

    def __str__(self) -> str:
        return self.name


def pickling(folder: Path | str) -> Any:
    return Pickling(UPath(folder))


def parquet(folder: Path) -> Any:
    from dagster_polars import PolarsParquetIOManager

    return PolarsParquetIOManager(base_dir=str(folder))


def delta(folder: Path) -> Any:
    from dagster_polars import PolarsDeltaIOManager

    return PolarsDeltaIOManager(base_dir=str(folder))


def duckdb(folder: Path) -> Any:
    from dagster_duckdb_polars import DuckDBPolarsIOManager

    return DuckDBPolarsIOManager(database=str(folder / "w.duckdb"), schema="main")


def iceberg(folder: Path) -> Any:
    from dagster_iceberg.config import IcebergCatalogConfig
    from dagster_iceberg.io_manager.polars import PolarsIcebergIOManager
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
    }
    # The manager creates no namespace (0.3.14).
    SqlCatalog("test", **catalog).create_namespace("shop")
    return PolarsIcebergIOManager(
        name="test", config=IcebergCatalogConfig(properties=catalog), namespace="shop"
    )


def deltalake(folder: Path) -> Any:
    from dagster_deltalake import LocalConfig
    from dagster_deltalake_polars import DeltaLakePolarsIOManager

    return DeltaLakePolarsIOManager(
        root_uri=str(folder), storage_options=LocalConfig(), schema="shop"
    )


def branching(make: Callable[[Path], Any], folder: Path) -> Any:
    from dagster._core.storage.branching.branching_io_manager import BranchingIOManager

    def initialized(name: str) -> Any:
        (folder / name).mkdir()
        manager = make(folder / name)
        factory = isinstance(manager, dg.ConfigurableIOManager)
        return manager.process_config_and_initialize() if factory else manager

    return BranchingIOManager(
        parent_io_manager=initialized("parent"), branch_io_manager=initialized("branch")
    )


def anything(_lazy: bool) -> Any:
    return Any


EVENTS = {"quarantine_events": True}
"""A branching manager reads a branch where the instance has an event that says so."""
OWN = [
    Manager(
        "pickle",
        lambda folder: pickling(f"memory:/{folder}"),
        ("FileNotFoundError",),
        reads=anything,
    ),
    Manager("keep", lambda _: Keeping(), ("KeyError",), reads=anything),
    Manager("remember", lambda path: Remembering(pickling(path)), ("KeyError",), reads=anything),
    Manager(
        "branching pickle",
        partial(branching, pickling),
        ("FileNotFoundError",),
        reads=anything,
        arguments=EVENTS,
    ),
]
BY_COLUMN = {"partition_expr": "part"}
ENUM = (pl.Enum, pl.String())
MILLISECONDS = (pl.Datetime("ms"), pl.Datetime("us"))
RELEASED = {
    "dagster_polars": [
        Manager("parquet", parquet, ("FileNotFoundError",)),
        Manager("delta", delta, ("TableNotFoundError",), widens=[MILLISECONDS]),
        Manager(
            "branching parquet",
            partial(branching, parquet),
            ("FileNotFoundError",),
            arguments=EVENTS,
        ),
    ],
    "dagster_duckdb_polars": [
        # DuckDB loads no lazy frame.
        Manager("duckdb", duckdb, ("CatalogException",), BY_COLUMN, lambda _: pl.DataFrame, [ENUM]),
    ],
    "dagster_iceberg": [
        Manager("iceberg", iceberg, ("NoSuchTableError",), BY_COLUMN, widens=[ENUM, MILLISECONDS]),
    ],
    "dagster_deltalake_polars": [
        Manager(
            "deltalake", deltalake, ("TableNotFoundError",), BY_COLUMN, widens=[ENUM, MILLISECONDS]
        ),
    ],
}
INSTALLED = [
    manager for package, managers in RELEASED.items() if find_spec(package) for manager in managers
]


def parameters(*names: str) -> list[Any]:
    """Each manager that is there, or those of some names, as a parameter."""
    return [
        pytest.param(manager, marks=[pytest.mark.io_managers] if manager in INSTALLED else [])
        for manager in (*OWN, *INSTALLED)
        if not names or manager.name in names
    ]
