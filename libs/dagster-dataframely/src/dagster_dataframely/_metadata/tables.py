"""Build the tables of the metadata, which can be shown in full or cut."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely._cells import (
    MAX_CHARACTERS,
    REDACTED,
    Cell,
    render_cell,
    render_dtype,
    render_redacted,
    render_series,
)
from dagster_dataframely._names import ORIGINAL
from dagster_dataframely._schema.original import redact_original
from dagster_dataframely._text import count, cut

_COLUMN, _CELL = 180, 8
"""Bytes: a column and a cell take more than this in the event log."""


@dataclass(frozen=True)
class Table:
    """Rows of cells, of which only the first may be shown."""

    columns: Mapping[str, str]
    """Names and types."""
    rows: Sequence[Mapping[str, Cell]]
    more_rows: int = 0
    more_columns: int = 0
    """How many there are after these."""
    first: Collection[str] = ()
    """The columns that are kept longest, in this order."""
    noun: str = "row"
    """What a row stands for."""
    total: tuple[str, int] | None = None
    """A column of counts and their sum: a note has what the rows above it lack."""

    def note(self) -> dg.MetadataValue[Any]:
        """Stand for the table where nothing of it fits."""
        rows = count(len(self.rows) + self.more_rows, self.noun)
        return dg.MetadataValue.text(f"{rows} left out (max_metadata_bytes)")

    def cut(self, rows: int | None = None, columns: int | None = None) -> dg.TableMetadataValue:
        """Show the first rows and the columns that are kept longest; notes count the others."""
        names = _kept(self.columns, self.first, columns)
        records = [{name: row[name] for name in names} for row in self.rows[:rows]]
        hidden = len(self.rows) + self.more_rows - len(records)
        if hidden and names:
            note: dict[str, Cell] = dict.fromkeys(names)  # Dagster wants every field (1.13).
            counted, total = self.total or ("", 0)
            note[next(name for name in names if name != counted)] = left_out(hidden, self.noun)
            if counted in note:
                note[counted] = total - sum(int(record[counted] or 0) for record in records)
            records.append(note)
        schema = [dg.TableColumn(name, self.columns[name]) for name in names]
        if hidden := len(self.columns) + self.more_columns - len(names):
            schema.append(dg.TableColumn(left_out(hidden, "column")))
        return dg.TableMetadataValue(
            records=[dg.TableRecord(record) for record in records], schema=dg.TableSchema(schema)
        )


def left_out(number: int, noun: str) -> str:
    """A note on what does not fit."""
    return f"… {count(number, f'more {noun}')} (max_metadata_bytes)"


def sample_table(
    frame: pl.DataFrame,
    redacted: Collection[str],
    max_bytes: int,
    first: Collection[str] = (),
    rows: int | None = None,
) -> Table:
    """Render a frame, without the values of redacted columns; nothing that cannot fit.

    `rows`: how many there are, where the frame has only some.
    """
    shown = frame.select(_kept(frame.columns, first, max(1, max_bytes // _COLUMN)))
    shown = shown.head(most_rows(max_bytes, shown.width))
    cells = [_cells(series, redacted) for series in shown.get_columns()]
    return Table(
        {
            name: render_dtype(dtype, redacted=name in redacted)
            for name, dtype in shown.schema.items()
        },
        [dict(zip(shown.columns, row, strict=True)) for row in zip(*cells, strict=True)],
        more_rows=(frame.height if rows is None else rows) - shown.height,
        more_columns=frame.width - shown.width,
        first=first,
    )


def most_rows(max_bytes: int, columns: int) -> int:
    """More rows than this cannot fit, but one is tried."""
    return max(1, max_bytes // (_CELL * (min(columns, max_bytes // _COLUMN) or 1)))


def rows_table(rows: Sequence[Mapping[str, Any]], **more: Any) -> Table:
    """Render rows that all have the same names; there must be one at least."""
    rendered = [{name: render_cell(value) for name, value in row.items()} for row in rows]
    return Table(dict.fromkeys(rows[0], "string"), rendered, **more)


def given_table(value: dg.TableMetadataValue, redacted: Collection[str]) -> Table:
    """Take over a table that something else made, without the values of redacted columns."""
    columns = {c.name: c.type for c in given_schema(value.schema, redacted).columns}
    found = [{name: record.data.get(name) for name in columns} for record in value.records]
    rows = [
        {
            name: REDACTED
            if name in redacted and cell is not None
            else render_cell(_shown(cell, redacted) if name == ORIGINAL else cell)
            for name, cell in row.items()
        }
        for row in found
    ]
    return Table(columns, rows)


def given_schema(schema: dg.TableSchema, redacted: Collection[str]) -> dg.TableSchema:
    """Take over columns that something else describes, with short dtypes.

    Of redacted columns only the name of the dtype stays: what is inside can be values, as of an Enum.
    """
    types = [
        c.type.partition("(")[0] if c.name in redacted else cut(c.type, MAX_CHARACTERS)
        for c in schema.columns
    ]
    columns = [
        dg.TableColumn(c.name, type_, c.description, c.constraints, c.tags)
        for c, type_ in zip(schema.columns, types, strict=True)
    ]
    return dg.TableSchema(columns, schema.constraints)


def _cells(series: pl.Series, redacted: Collection[str]) -> list[Cell]:
    if series.name in redacted:
        return render_redacted(series)
    if series.name == ORIGINAL:
        texts = [_shown(text, redacted) for text in series]
        return render_series(pl.Series(ORIGINAL, texts, pl.String))
    return render_series(series)


def _shown(text: object, redacted: Collection[str]) -> str | None:
    """What `dy_original` holds of a row, without what is redacted."""
    return None if text is None else redact_original(str(text), redacted)


def _kept(names: Collection[str], first: Collection[str], number: int | None) -> list[str]:
    """The columns that are kept longest, in their own order."""
    known = dict.fromkeys(names)
    longest_first = dict.fromkeys([*(name for name in first if name in known), *known])
    kept = set(list(longest_first)[:number])
    return [name for name in names if name in kept]
