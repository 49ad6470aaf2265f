"""Know how the IO managers of Dagster's libraries work inside: where they write, and into what."""

import importlib
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import dagster as dg
import polars as pl
from dagster._core.storage.db_io_manager import DbIOManager
from dagster._core.storage.upath_io_manager import UPathIOManager

from dagster_dataframely._upstream.io_managers import BoundManager, written_to

Storage = Literal["DuckDB", "Delta Lake", "Iceberg", "a database", "files", "unknown"]

_WRITES: Mapping[str, Literal["DuckDB", "Delta Lake", "Parquet"]] = {
    "dagster_duckdb_polars.duckdb_polars_type_handler.DuckDBPolarsTypeHandler.handle_output": "DuckDB",
    "dagster_polars.io_managers.delta.PolarsDeltaIOManager.write_df_to_path": "Delta Lake",
    "dagster_polars.io_managers.parquet.PolarsParquetIOManager.write_df_to_path": "Parquet",
}
_CLIENTS: Mapping[str, Storage] = {
    "DuckDbClient": "DuckDB",
    "DeltaLakeDbClient": "Delta Lake",
    "IcebergDbClient": "Iceberg",
}


def written_by(bound: BoundManager) -> Literal["DuckDB", "Delta Lake", "Parquet"] | None:
    """What the manager writes to, where a released one's own code does the writing.

    The method tells and not the class: a subclass that writes in another way knows what it does.
    """
    manager = written_to(bound.manager)
    if isinstance(manager, DbIOManager):
        handler = manager._handlers_by_type.get(pl.DataFrame)
        write = getattr(type(handler), "handle_output", None)
    else:
        write = getattr(type(manager), "write_df_to_path", None)
    return None if write is None else _WRITES.get(f"{write.__module__}.{write.__qualname__}")


def storage_of(bound: BoundManager) -> Storage:
    """What kind of storage the manager writes to, as far as its class tells."""
    return storage_of_manager(bound.manager)


def storage_of_manager(manager: object) -> Storage:
    """What kind of storage a manager writes to, as far as its class tells."""
    manager = written_to(manager)
    if isinstance(manager, DbIOManager):
        clients = {kind.__name__ for kind in type(manager._db_client).__mro__}
        return next((kind for name, kind in _CLIENTS.items() if name in clients), "a database")
    if _is_kind(manager, "PolarsDeltaIOManager"):
        return "Delta Lake"
    return "files" if isinstance(manager, UPathIOManager) else "unknown"


def sinks_lazy_frames(bound: BoundManager) -> bool:
    """Whether the manager writes a lazy frame out at once, and keeps no plan.

    Those of dagster-polars do (0.27.12), and any other whose class says so.
    """
    manager = written_to(bound.manager)
    if (said := getattr(manager, "sinks_lazy_frames", None)) is not None:
        return bool(said)
    return _is_kind(manager, "BasePolarsUPathIOManager")


def sink_options(bound: BoundManager) -> Mapping[str, Any] | None:
    """What the Parquet manager of dagster-polars asks of `sink_parquet` (0.27.12); none of others."""
    if not bound.is_lazy or not _is_kind(written_to(bound.manager), "PolarsParquetIOManager"):
        return None
    said = bound.output.definition_metadata or {}
    return {
        "compression": said.get("compression", "zstd"),
        "compression_level": said.get("compression_level"),
        "statistics": said.get("statistics", False),
        "row_group_size": said.get("row_group_size"),
    }


def replaces_tables(bound: BoundManager) -> bool:
    """Whether the manager replaces what is stored as a whole, columns included."""
    manager = written_to(bound.manager)
    if (said := getattr(manager, "replaces_tables", None)) is not None:
        return bool(said)
    if storage_of(bound) == "Delta Lake" and not isinstance(manager, DbIOManager):
        options = bound.output.definition_metadata.get("delta_write_options") or {}
        mode = getattr(manager, "schema_mode", None) or options.get("schema_mode")
        return getattr(mode, "value", mode) == "overwrite"
    return storage_of(bound) == "files" or isinstance(manager, dg.InMemoryIOManager)


def _is_kind(manager: object, name: str) -> bool:
    """Whether a class of dagster-polars is among a manager's bases; it need not be installed."""
    return any(
        kind.__name__ == name and kind.__module__.startswith("dagster_polars.")
        for kind in type(manager).__mro__
    )


def addresses(bound: BoundManager) -> frozenset[str]:
    """Where the manager writes, in its own words; none where only the manager knows."""
    manager: Any = written_to(bound.manager)
    output = bound.output
    if isinstance(manager, DbIOManager):
        return frozenset({manager._db_client.get_table_name(_table_slice(manager, output))})
    if isinstance(manager, UPathIOManager):
        paths = (
            manager._get_paths_for_partitions(output).values()
            if output.has_asset_partitions
            else [manager._get_path(output)]
        )
        return frozenset(posixpath.normpath(str(path)) for path in paths)
    return frozenset()


def _table_slice(manager: Any, output: dg.OutputContext) -> Any:
    return manager._get_table_slice(output, output)


@contextmanager
def duckdb_table(bound: BoundManager) -> Iterator[tuple[Any, str, str]]:
    """A connection to the database, the name of the table, and what selects the partition's rows."""
    manager: Any = written_to(bound.manager)
    table_slice = _table_slice(manager, bound.output)
    with manager._db_client.connect(bound.output, table_slice) as connection:
        select = manager._db_client.get_select_statement(table_slice)
        yield connection, f"{table_slice.schema}.{table_slice.table}", select


def delta_dtypes(bound: BoundManager) -> Iterator[tuple[str, Mapping[str, pl.DataType]]]:
    """Yield the address and the columns of each Delta table that exists."""
    manager: Any = written_to(bound.manager)
    deltalake = importlib.import_module("deltalake")
    tables: list[tuple[str, Any]]
    if isinstance(manager, DbIOManager):
        table_slice = _table_slice(manager, bound.output)
        with manager._db_client.connect(bound.output, table_slice) as connection:
            tables = [(connection.table_uri, connection.storage_options)]
    else:
        tables = [(uri, manager.storage_options) for uri in sorted(addresses(bound))]
    for uri, options in tables:
        try:
            table = deltalake.DeltaTable(uri, storage_options=options)
        except deltalake.exceptions.TableNotFoundError:
            continue
        yield uri, pl.scan_delta(table).collect_schema()


def predicate_columns(bound: BoundManager) -> list[str]:
    """The columns by which dagster-deltalake finds the rows of a partition; none of other managers."""
    manager: Any = written_to(bound.manager)
    if not isinstance(manager, DbIOManager):
        return []
    return [
        dim.partition_expr for dim in _table_slice(manager, bound.output).partition_dimensions or ()
    ]


def iceberg_dtypes(bound: BoundManager) -> Iterator[tuple[str, Mapping[str, pl.DataType]]]:
    """Yield the name and the columns of the Iceberg table, if it exists."""
    manager: Any = written_to(bound.manager)
    exceptions = importlib.import_module("pyiceberg.exceptions")
    table_slice = _table_slice(manager, bound.output)
    name = f"{table_slice.schema}.{table_slice.table}"
    with manager._db_client.connect(bound.output, table_slice) as catalog:
        try:
            table = catalog.load_table(name)
        except exceptions.NoSuchTableError:
            return
        yield name, pl.scan_iceberg(table).collect_schema()
