"""Look at a stored table before rows are put into it, so that none is misplaced or changed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import polars as pl

from dagster_dataframely._io_managers.holds import holds
from dagster_dataframely._names import COLUMN_PREFIX
from dagster_dataframely._text import quote_identifier
from dagster_dataframely._typing import Frame, Log
from dagster_dataframely._upstream.io_managers import BoundManager
from dagster_dataframely._upstream.storages import (
    addresses,
    delta_dtypes,
    duckdb_table,
    iceberg_dtypes,
    predicate_columns,
    replaces_tables,
    storage_of,
    storage_of_manager,
)
from dagster_dataframely.errors import StoredColumn

_NOT_THERE = frozenset(
    {
        *("CatalogException", "FileNotFoundError", "KeyError", "NoSuchKey", "NoSuchNamespaceError"),
        *("NoSuchTableError", "NotFound", "NotFoundError", "ResourceNotFoundError"),
        *("TableNotFoundError", "ObjectNotFoundError"),
    }
)
"""What storages raise for something that is not there, by the names of the classes."""

_PARENT = re.compile(r"[^/\s]+/\.\./")
_PREDICATES = (pl.String, pl.Date, pl.Datetime)
_OTHER_PARTITIONS = "dagster-deltalake would replace the other partitions too"
"""It builds no predicate for columns of other dtypes (0.29)."""


def is_not_there(manager: object, error: BaseException) -> bool:
    """Whether an error of an IO manager means that nothing is stored.

    A table of Delta Lake or Iceberg is there without its files, but broken. A manager that cannot load
    at all says nothing.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    if storage_of_manager(manager) in ("Delta Lake", "Iceberg"):
        names -= {"FileNotFoundError"}
    return bool(names & _NOT_THERE) or isinstance(error, NotImplementedError)


def frames_of(loaded: object) -> list[Frame]:
    """The frames among what an IO manager loaded: one, or one for each partition."""
    values = loaded.values() if isinstance(loaded, Mapping) else [loaded]
    return [value for value in values if isinstance(value, (pl.DataFrame, pl.LazyFrame))]


class SharedAddressError(Exception):
    """A table and its quarantine have one address, which the message has if it is known."""


@dataclass(frozen=True)
class StoredTable:
    """The columns of a stored table that keeps them when rows are replaced."""

    table: str
    """Its name or its place, as the storage calls it."""
    dtypes: Mapping[str, Any]
    """Its columns in their order, with Polars' dtypes or DuckDB's names of types."""
    differences: Sequence[StoredColumn]
    """The columns that would lose something."""
    way_out: str
    """What to do about them, in words."""
    has_rows: bool = True


def look_at_table(
    bound: BoundManager, found: Mapping[str, pl.DataType], warn: Log
) -> StoredTable | None:
    """Compare a stored table with the columns that are about to be written to it.

    `None` where there is none, or where it is replaced as a whole. Any manager that is not known is
    asked to load what it has.
    """
    if replaces_tables(bound):
        return None
    match storage_of(bound):
        case "DuckDB":
            return _look_at_duckdb(bound, found)
        case "Delta Lake":
            way_out = (
                'Drop it, or write once with the metadata `delta_write_options={"schema_mode": '
                '"overwrite"}`'
            )
            for table, dtypes in delta_dtypes(bound):
                columns = [name for name in predicate_columns(bound) if name in found]
                lost = [name for name in columns if not isinstance(found[name], _PREDICATES)]
                if lost:
                    differences = [
                        StoredColumn(n, str(dtypes.get(n)), "text, a day or a time") for n in lost
                    ]
                    return StoredTable(table, dtypes, differences, _OTHER_PARTITIONS)
                return _compare(table, dtypes, found, way_out, "Delta Lake")
        case "Iceberg":
            way_out = 'Drop it, or let it follow: metadata `schema_update_mode="update"`'
            updates = bound.output.definition_metadata.get("schema_update_mode") == "update"
            for table, dtypes in iceberg_dtypes(bound):
                shared = {name: dtypes[name] for name in found if name in dtypes}
                kept = {name: found[name] for name in shared}
                stored, new = (shared, kept) if updates else (dtypes, found)
                compared = _compare(table, stored, new, way_out, "Iceberg")
                return None if updates and not compared.differences else compared
        case _:
            return _look_at_loaded(bound, found, warn)
    return None


def _look_at_duckdb(bound: BoundManager, found: Mapping[str, pl.DataType]) -> StoredTable | None:
    """By DuckDB's own names of types: those of the table, and those it would give the frame."""
    with duckdb_table(bound) as (connection, table, _):
        try:
            stored = dict(row[:2] for row in connection.execute(f"describe {table}").fetchall())
        except import_module("duckdb").CatalogException:
            return None
        connection.register("dy_columns", pl.DataFrame(schema=found).to_arrow())
        described = connection.execute("describe select * from dy_columns").fetchall()
        fresh = dict(row[:2] for row in described)
    alter = f"`alter table {table} "
    differences = [
        StoredColumn(name, None, word, f"{alter}add column {quote_identifier(name)} {word}`")
        for name, word in fresh.items()
        if name not in stored
    ]
    differences += [
        StoredColumn(name, word, None, f"{alter}drop column {quote_identifier(name)}`")
        for name, word in stored.items()
        if name not in fresh
    ]
    differences += [
        StoredColumn(
            name, stored[name], word, f"{alter}alter {quote_identifier(name)} type {word}`"
        )
        for name, word in fresh.items()
        if stored.get(name, word) != word
    ]
    return StoredTable(table, stored, differences, "Or drop it")


def _look_at_loaded(
    bound: BoundManager, found: Mapping[str, pl.DataType], warn: Log
) -> StoredTable | None:
    try:
        schemas = [frame.collect_schema() for frame in frames_of(bound.load()[0])]
    except Exception as error:
        if not is_not_there(bound.manager, error):
            # The run may be about to repair it.
            warn(f"{bound.name} cannot load what is stored, so it is not compared: {error}")
        return None
    table = ", ".join(sorted(addresses(bound))) or bound.output.asset_key.to_user_string()
    way_out = f"Drop it; or, if {bound.name} replaces tables, give it `replaces_tables = True`"
    schema = next(filter(None, schemas), None)
    return None if schema is None else _compare(table, schema, found, way_out)


def _compare(
    table: str,
    stored: Mapping[str, Any],
    found: Mapping[str, Any],
    way_out: str,
    storage: str = "",
) -> StoredTable:
    differences = [
        StoredColumn(name, None, str(dtype)) for name, dtype in found.items() if name not in stored
    ]
    differences += [
        StoredColumn(name, str(dtype), None) for name, dtype in stored.items() if name not in found
    ]
    differences += [
        StoredColumn(name, str(stored[name]), str(dtype))
        for name, dtype in found.items()
        if name in stored and not holds(stored[name], dtype, storage)
    ]
    return StoredTable(table, stored, differences, way_out)


def look_at_quarantine(
    bound: BoundManager, table: BoundManager, found: Mapping[str, pl.DataType]
) -> StoredTable | None:
    """Look at what error rows would replace, which has to be a quarantine; `None` for nothing.

    Raises:
        SharedAddressError: It is the table, or something else that is not a quarantine.
    """
    if bound.manager is table.manager and (shared := addresses(bound) & addresses(table)):
        raise SharedAddressError(min(shared))
    if storage_of(bound) == "DuckDB":
        stored = _look_at_duckdb(bound, found)
        if stored is not None:
            with duckdb_table(bound) as (connection, _, select):
                has_rows = connection.execute(f"{select} LIMIT 1").fetchone() is not None
            stored = replace(stored, has_rows=has_rows)
    else:
        stored = _look_at_loaded_quarantine(bound, table, found)
    if stored is not None and not _is_quarantine(stored.dtypes):
        raise SharedAddressError(", ".join(sorted(addresses(bound))))
    return stored


def _look_at_loaded_quarantine(
    bound: BoundManager, table: BoundManager, found: Mapping[str, pl.DataType]
) -> StoredTable | None:
    try:
        loaded, identified = bound.load()
        schemas = [frame.collect_schema() for frame in frames_of(loaded)]
    except Exception as error:
        if not is_not_there(bound.manager, error):
            raise
        _reject_same_error(error, table)
        return None
    if not identified:
        _reject_quarantine_under(table)
    schema = next(filter(None, schemas), None)
    if schema is None:
        return None
    has_rows = any(f.lazy().head(1).collect().height for f in frames_of(loaded))
    compared = _compare("", schema, found, "", storage_of(bound))
    differences = [] if replaces_tables(bound) else compared.differences
    return replace(compared, differences=differences, has_rows=has_rows)


def _reject_same_error(error: Exception, table: BoundManager) -> None:
    """Reject an address that does not depend on the key: the table is missing at the same one.

    A manager that cannot load says the same of everything.
    """
    text = str(error)
    escapes = "/../" in text
    if isinstance(error, NotImplementedError) or (
        getattr(error, "identified", True) and not escapes
    ):
        return
    try:
        table.load()
    except Exception as other:
        if type(other) is type(error) and _without_parents(str(other)) == _without_parents(text):
            raise SharedAddressError(_without_parents(text)) from error


def _reject_quarantine_under(table: BoundManager) -> None:
    """Reject an address that does not depend on the key: error rows are stored as the table."""
    frames = frames_of(table.load()[0])
    if any(_is_quarantine(frame.collect_schema()) for frame in frames):
        raise SharedAddressError


def _is_quarantine(columns: Iterable[str]) -> bool:
    """Whether a stored table has columns of this library, which no schema may declare."""
    return any(name.startswith(COLUMN_PREFIX) for name in columns)


def _without_parents(text: str) -> str:
    """A text whose paths go through no parent folder: `a/b/../c` is `a/c`."""
    while (shorter := _PARENT.sub("", text)) != text:
        text = shorter
    return text
