"""Build the tables of the metadata, which can be shown in full or cut."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from dagster_dataframely._text import count, cut

_COLUMN, _ROW, _CELL = 180, 38, 8
"""Bytes: a column, a row and a cell take more than this in the event log."""


@dataclass(frozen=True)
class Table:
    """Rows of cells, and how many rows and columns there are of which these are the first."""

    columns: Sequence[dg.TableColumn]
    rows: Sequence[Sequence[Cell]]
    all_rows: int
    all_columns: int
    first: Collection[str] = ()
    """The columns that are kept longest, in this order."""
    noun: str = "row"
    """What a row stands for."""
    total: tuple[str, int] | None = None
    """A column of counts and their sum, which notes preserve."""

    def whole(self) -> dg.TableMetadataValue:
        """Every row and column."""
        return self.cut(len(self.rows))

    def note(self) -> dg.MetadataValue[Any]:
        """Stand for the table where nothing of it fits."""
        return dg.MetadataValue.text(
            f"{count(self.all_rows, self.noun)} left out (max_metadata_bytes)"
        )

    def cut(self, rows: int, columns: int | None = None) -> dg.TableMetadataValue:
        """The first rows, under the columns that are kept longest; notes count what is left out."""
        positions = sorted(self.order[:columns])
        schema = [self.columns[position] for position in positions]
        names = [column.name for column in schema]
        records = [
            {name: row[position] for name, position in zip(names, positions, strict=True)}
            for row in self.rows[:rows]
        ]
        if hidden := self.all_rows - len(records):
            records.append(self.note_row(names, hidden, records))
        if hidden := self.all_columns - len(schema):
            schema.append(dg.TableColumn(left_out(hidden, "column")))
        return dg.TableMetadataValue(
            records=[dg.TableRecord(record) for record in records], schema=dg.TableSchema(schema)
        )

    @cached_property
    def order(self) -> list[int]:
        """Sort the positions of the columns: those kept longest come first."""
        positions = {column.name: position for position, column in enumerate(self.columns)}
        first = [positions[name] for name in self.first if name in positions]
        return list(dict.fromkeys([*first, *range(len(self.columns))]))

    def note_row(
        self, names: list[str], hidden: int, records: list[dict[str, Cell]]
    ) -> dict[str, Cell]:
        # Dagster wants the fields of the other rows (1.13).
        note: dict[str, Cell] = dict.fromkeys(names)
        column, total = self.total or (None, 0)
        note[next(name for name in names if name != column)] = left_out(hidden, self.noun)
        if column in note:
            note[column] = total - sum(int(record[column] or 0) for record in records)
        return note


def left_out(number: int, noun: str) -> str:
    """A note on what does not fit."""
    return f"… {count(number, f'more {noun}')} (max_metadata_bytes)"


def sample_table(
    frame: pl.DataFrame,
    redacted: Collection[str],
    max_bytes: int,
    first: Collection[str] = (),
    all_rows: int | None = None,
) -> Table:
    """Render the rows of a frame, without the values of redacted columns.

    Nothing is rendered that cannot fit. `all_rows`: how many there are, where the frame has only some.
    """
    names = dict.fromkeys(frame.columns)
    longest_first = dict.fromkeys([*(name for name in first if name in names), *names])
    chosen = set(list(longest_first)[: max(1, max_bytes // _COLUMN)])
    rows = frame.select(name for name in names if name in chosen)
    rows = rows.head(most_rows(max_bytes, rows.width))
    cells = [
        render_redacted(series) if series.name in redacted else render_series(series)
        for series in rows.get_columns()
    ]
    return Table(
        columns=[
            dg.TableColumn(name, render_dtype(dtype, redacted=name in redacted))
            for name, dtype in rows.schema.items()
        ],
        rows=list(zip(*cells, strict=True)),
        all_rows=frame.height if all_rows is None else all_rows,
        all_columns=frame.width,
        first=first,
    )


def most_rows(max_bytes: int, columns: int) -> int:
    """More rows than this cannot fit, but one is tried."""
    return max(1, max_bytes // (_ROW + _CELL * min(columns, max(1, max_bytes // _COLUMN))))


def rows_table(
    rows: Sequence[Mapping[str, Any]],
    noun: str = "row",
    all_rows: int | None = None,
    total: tuple[str, int] | None = None,
) -> Table:
    """Render rows that all have the same names; there must be one at least."""
    return Table(
        columns=[dg.TableColumn(name) for name in rows[0]],
        rows=[[render_cell(value) for value in row.values()] for row in rows],
        all_rows=len(rows) if all_rows is None else all_rows,
        all_columns=len(rows[0]),
        noun=noun,
        total=total,
    )


def given_table(value: dg.TableMetadataValue, redacted: Collection[str]) -> Table:
    """Take over a table that something else made, without the values of redacted columns."""
    schema = given_schema(value.schema, redacted)
    names = [column.name for column in schema.columns]
    rows = [
        [
            REDACTED if name in redacted and cell is not None else render_cell(cell)
            for name, cell in ((name, record.data.get(name)) for name in names)
        ]
        for record in value.records
    ]
    columns = [dg.TableColumn(column.name, column.type) for column in schema.columns]
    return Table(columns, rows, len(rows), len(columns))


def given_schema(schema: dg.TableSchema, redacted: Collection[str]) -> dg.TableSchema:
    """Take over columns that something else describes, with short dtypes.

    Of redacted columns only the name of the dtype stays: what is inside can be values, as of an Enum.
    """
    columns = [
        dg.TableColumn(
            column.name,
            column.type.partition("(")[0]
            if column.name in redacted
            else cut(column.type, MAX_CHARACTERS),
            column.description,
            column.constraints,
            column.tags,
        )
        for column in schema.columns
    ]
    return dg.TableSchema(columns, schema.constraints)
