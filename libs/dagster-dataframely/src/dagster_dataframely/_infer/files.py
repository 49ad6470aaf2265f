"""Read a file in batches: Parquet, CSV, or a table of a DuckDB database."""

import functools
import importlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from dagster_dataframely._infer.arguments import CSV_SUFFIXES, Files
from dagster_dataframely._infer.drops import BATCH_ROWS, Drops, Texts, find_meanings, open_drops
from dagster_dataframely._names import is_nameable
from dagster_dataframely._text import count, cut, list_within, quote_identifier
from dagster_dataframely.errors import UnreadableFileError

_MAX_REASON = 160
"""Characters of an error that Polars, DuckDB or the system raises, and of a list of tables."""


_MEMORY = "1GB"
"""What DuckDB may keep of a file in memory."""


_UNREADABLE = re.compile(r"\b(INTERVAL|UNION)\b")
"""DuckDB's types that Polars panics at (2.1)."""


_ERRORS = (OSError, EOFError, zlib.error, pl.exceptions.PolarsError, pl.exceptions.PanicException)


_TEXT = re.compile(r"""'[^']*'|"[^"]*\"""")


@dataclass(frozen=True)
class Options:
    """What the command's arguments say of how to read a file."""

    table: str | None = None
    rows: int | None = None
    separator: str | None = None
    nulls: Sequence[str] = ()
    encoding: str | None = None
    max_columns: int = 1000

    def limit(self, rows: int) -> int:
        """How many of these rows are wanted."""
        return rows if self.rows is None else min(rows, self.rows)


class ReadBatches(Protocol):
    """Reads all rows of a table, some at a time."""

    def __call__(self, columns: Sequence[str] | None = None, /) -> Iterator[pl.DataFrame]: ...


@dataclass(frozen=True)
class Table:
    """A table that a file holds."""

    schema: Mapping[str, pl.DataType]
    rows: int
    batches: ReadBatches
    name: str
    """Without folder and suffix."""
    title: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    """The columns that Polars cannot read, with their types."""
    texts: Mapping[str, Texts] = field(default_factory=dict)
    """What the texts of each column mean, where the files have text only."""
    drops: Drops | None = None
    files: Files | None = None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what Polars, DuckDB and the system raise for a file into an `UnreadableFileError`."""
    try:
        yield
    except _ERRORS as error:
        raise UnreadableFileError(str(path), _first_line(error)) from error


def open_table(path: Path, options: Options) -> Table:
    """Find out what a file is and which columns it has; raises what `reading` turns."""
    _reject_no_file(path)
    if any("\ud800" <= character <= "\udfff" for character in str(path)):
        raise UnreadableFileError(str(path), "its path is not UTF-8")
    for suffix, open_kind in KINDS.items():
        if path.name.lower().endswith(suffix):
            if options.table is not None and open_kind is not _open_duckdb:
                raise UnreadableFileError(str(path), "`--table` is for DuckDB")
            table = open_kind(path, options)
            reject_many_columns(path, len(table.schema), options)
            _reject_no_column(path, table)
            return table
    known = ", ".join(f"`{suffix}`" for suffix in KINDS)
    raise UnreadableFileError(str(path), f"its name ends with none of {known}")


def _reject_no_file(path: Path) -> None:
    if not path.is_file():
        problem = "it is a folder" if path.is_dir() else "there is no such file"
        raise UnreadableFileError(str(path), problem)


def _reject_no_column(path: Path, table: Table) -> None:
    if not any(map(is_nameable, table.schema)):
        raise UnreadableFileError(str(path), "it has no column that a schema can declare")


def open_files(files: Files, options: Options) -> Table:
    """Find out what files are and which columns they have; raises what `reading` turns."""
    if len(files.paths) == 1 and files.pattern is None:
        return open_table(files.paths[0], options)
    for path in files.paths:
        if not path.name.lower().endswith(CSV_SUFFIXES):
            raise UnreadableFileError(str(path), "several files have to be CSV files")
        _reject_no_file(path)
    if options.table is not None:
        raise UnreadableFileError(str(files.paths[0]), "`--table` is for DuckDB")
    table = open_csv_files(files, options)
    _reject_no_column(files.paths[0], table)
    return table


def _open_parquet(path: Path, options: Options) -> Table:
    frame = pl.scan_parquet(path, n_rows=options.rows, glob=False)
    rows = options.limit(frame.select(pl.len()).collect().item())
    batches = functools.partial(read_batches, frame, rows)
    return Table(frame.collect_schema(), rows, batches, path.stem, path.name)


def _open_csv(path: Path, options: Options) -> Table:
    return open_csv_files(Files([path], path.name.partition(".")[0]), options)


def open_csv_files(files: Files, options: Options) -> Table:
    """Find out what the texts of CSV files mean; they are read as `dd.parse` reads them."""
    drops = open_drops(
        files.paths,
        separator=options.separator,
        encoding=options.encoding,
        nulls=options.nulls,
        rows=options.rows,
    )
    reject_many_columns(files.paths[0], len(drops.columns), options)
    # Batches may end without an error (1.35), so that all columns are read first.
    counts = pl.len(), pl.all().null_count().name.suffix(" nulls")
    rows = drops.scan.select(*counts).collect(engine="streaming").item(0, 0)
    meanings = find_meanings(drops)
    places = {name: str(place) for place, name in enumerate(drops.columns)}

    def batches(columns: Sequence[str] | None = None, /) -> Iterator[pl.DataFrame]:
        wanted = list(places) if columns is None else list(columns)
        parsed = drops.scan.select(
            meanings[places[name]].meaning.parse(pl.col(places[name])).alias(places[name])
            for name in wanted
        )
        for batch in read_batches(parsed, rows):
            batch.columns = wanted
            yield batch

    schema = {name: meanings[place].meaning.dtype for name, place in places.items()}
    title = files.paths[0].name if len(files.paths) == 1 else f"{len(files.paths):,} files"
    texts = {name: meanings[place] for name, place in places.items()}
    return Table(schema, rows, batches, files.name, title, texts=texts, drops=drops, files=files)


def reject_many_columns(path: Path, columns: int, options: Options) -> None:
    """Raise where a table has more columns than were asked for."""
    if columns > options.max_columns:
        reason = f"it has {count(columns, 'column')}: `--max-columns {columns}` looks at them"
        raise UnreadableFileError(str(path), reason)


def read_batches(
    frame: pl.LazyFrame,
    rows: int,
    columns: Sequence[str] | None = None,
    /,
    *,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pl.DataFrame]:
    """The rows of a lazy frame, on the streaming engine."""
    frame = frame if columns is None else frame.select(columns)
    for batch in frame.collect_batches(chunk_size=batch_rows, engine="streaming"):
        rows -= batch.height
        yield batch
    # Polars may end without an error where it cannot go on (1.35).
    if rows > 0:
        message = f"its last {count(rows, 'row')} cannot be read"
        raise OSError(message)


def _open_duckdb(path: Path, options: Options) -> Table:
    with _connect(path) as connection:
        schema, name = _choose_table(path, connection, options.table)
        table = f"{quote_identifier(schema)}.{quote_identifier(name)}"
        # `describe` of the table itself refuses a name with a quotation mark (DuckDB 1.1).
        types = connection.sql(f"describe select * from {table}").fetchall()
        ((rows,),) = connection.sql(f"select count(*) from {table}").fetchall()
    left_out = {c: dtype for c, dtype, *_ in types if _UNREADABLE.search(_TEXT.sub("", dtype))}
    readable = [column for column, *_ in types if column not in left_out]
    limit = options.limit(rows)

    def batches(columns: Sequence[str] | None = None, /) -> Iterator[pl.DataFrame]:
        selected = ", ".join(map(quote_identifier, readable if columns is None else columns))
        with _connect(path) as connection:
            relation = connection.sql(f"select {selected} from {table} limit {limit}")
            # `fetch_arrow_reader` is deprecated (1.5), the other one newer than the lowest version.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            reader = read(BATCH_ROWS)
            yield pl.DataFrame(reader.schema.empty_table())
            yield from map(pl.DataFrame, reader)

    return Table(
        next(batches()).schema, limit, batches, name, f"{schema}.{name} of {path.name}", left_out
    )


@contextmanager
def _connect(path: Path) -> Iterator[Any]:
    """A connection that reads; DuckDB, and pyarrow, by which it hands rows over, are optional."""
    try:
        duckdb, _ = map(importlib.import_module, ("duckdb", "pyarrow"))
    except ImportError as error:
        install = f"`{error.name}` is missing: install duckdb and pyarrow"
        raise UnreadableFileError(str(path), install) from error
    config = {"memory_limit": _MEMORY}
    try:
        with duckdb.connect(str(path), read_only=True, config=config) as connection:
            yield connection
    except duckdb.Error as error:
        raise UnreadableFileError(str(path), _first_line(error)) from error


def _choose_table(path: Path, connection: Any, wanted: str | None) -> tuple[str, str]:
    """The schema and the name of a table, which may be told by its name alone or not at all."""
    tables = connection.sql(
        "select table_schema, table_name from information_schema.tables "
        "where table_catalog = current_database() order by all"
    ).fetchall()
    found = [
        (schema, name) for schema, name in tables if wanted in (None, name, f"{schema}.{name}")
    ]
    if len(found) == 1:
        return found[0]
    names = [f"`{schema}.{name}`" for schema, name in tables] or ["none"]
    problem = "`--table` names none" if wanted and not found else "`--table` has to name one"
    reason = list_within(_MAX_REASON, f"{problem} of its tables: ", names)
    raise UnreadableFileError(str(path), reason)


def _first_line(error: BaseException) -> str:
    return cut(str(error).partition("\n")[0], _MAX_REASON)


KINDS: Mapping[str, Callable[[Path, Options], Table]] = {
    ".parquet": _open_parquet,
    ".csv": _open_csv,
    ".csv.gz": _open_csv,
    ".tsv": _open_csv,
    ".duckdb": _open_duckdb,
    ".db": _open_duckdb,
}
