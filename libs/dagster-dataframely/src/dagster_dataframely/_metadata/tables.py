"""Build the tables of the metadata."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely._cells import (
    REDACTED,
    Cell,
    render_cell,
    render_dtype,
    render_redacted,
    render_series,
)

_REASON = "(max_metadata_bytes)"


_LEAST_COLUMN, _LEAST_CELL = 200, 8
"""Bytes: a column takes more in the header, and a cell more in a row."""


_LEAST = 1_500
"""Bytes: a table gets so many, if it needs them, or none; mostly, a row of some columns fits."""


_NOTE = 150
"""Bytes: the note in place of a table that gets none takes no more."""


_KEY = 40
"""Bytes: a metadata key, with the JSON around it, takes no more."""


@dataclass(frozen=True)
class Table:
    """Rows of cells that become a Dagster table, as far as there is room for them."""

    columns: Sequence[tuple[str, str]]
    """Names and types."""
    rows: Sequence[Sequence[Cell]]
    more_rows: int = 0
    more_columns: int = 0
    """How many there are beside these."""
    first: Collection[str] = ()
    """The columns that are kept longest, in this order."""
    noun: str = "row"
    """What a row stands for."""
    total: str | None = None
    """A column of counts: those of the rows that are left out are added up."""
    weight: int = 0
    """Where not every table can be shown, heavier ones are."""

    @property
    def size(self) -> int:
        """Bytes of the whole table in the event log, its key included, or slightly more."""
        return self.size_of(len(self.rows), len(self.columns))

    @property
    def least(self) -> int:
        """Bytes of the smallest part that is worth showing."""
        return min(self.size, max(_LEAST, self.size_of(1, 1)))

    def whole(self) -> dg.TableMetadataValue:
        """All of it, whatever it takes."""
        return self.build(len(self.rows), len(self.columns))

    def fit(self, room: int) -> dg.MetadataValue[Any]:
        """The table in at most so many bytes: first with fewer rows, then with fewer columns."""
        if self.size <= room:
            return self.whole()
        columns = _most(len(self.columns), lambda number: self.size_of(1, number) <= room)
        if not columns:
            rows = len(self.rows) + self.more_rows
            return dg.MetadataValue.text(f"{_count(rows, self.noun)} left out {_REASON}")
        rows = _most(len(self.rows), lambda number: self.size_of(number, columns) <= room)
        return self.build(rows, columns)

    def build(self, rows: int, columns: int) -> dg.TableMetadataValue:
        """So many rows and columns, and notes that stand for the others."""
        positions = sorted(self.order[:columns])
        records = [
            dg.TableRecord({self.columns[position][0]: row[position] for position in positions})
            for row in self.rows[:rows]
        ]
        schema = [dg.TableColumn(*self.columns[position]) for position in positions]
        return dg.TableMetadataValue(
            records=[*records, *self.last_record(rows, columns)],
            schema=dg.TableSchema([*schema, *self.last_column(columns)]),
        )

    def size_of(self, rows: int, columns: int) -> int:
        """What so many rows and columns take, with the notes."""
        header, *records = self.widths
        notes: list[Any] = [*self.last_record(rows, columns), *self.last_column(columns)]
        return (
            _FRAME
            + header[columns]
            + sum(_ROW + record[columns] for record in records[:rows])
            + sum(len(dg.serialize_value(note)) + 2 for note in notes)
        )

    @cached_property
    def widths(self) -> list[list[int]]:
        """For the header and each row, the bytes of no column, of the first one, of two, ..."""
        columns = [self.columns[position] for position in self.order]
        names = [len(json.dumps(name)) + 4 for name, _ in columns]
        lines = [[_column_size(*column) for column in columns]]
        for row in self.rows:
            cells = [len(json.dumps(row[position])) for position in self.order]
            lines.append([cell + name for cell, name in zip(cells, names, strict=True)])
        return [list(accumulate(line, initial=0)) for line in lines]

    @cached_property
    def order(self) -> list[int]:
        """The positions of the columns, those kept longest first."""
        names = [name for name, _ in self.columns]
        first = [names.index(name) for name in self.first if name in names]
        return list(dict.fromkeys([*first, *range(len(names))]))

    def last_record(self, rows: int, columns: int) -> list[dg.TableRecord]:
        """Stands for the rows after so many, if there are any."""
        hidden = self.rows[rows:]
        number = len(hidden) + self.more_rows
        if not number:
            return []
        names = [name for name, _ in self.columns]
        shown = [names[position] for position in sorted(self.order[:columns])]
        label = next(name for name in shown if name != self.total)
        record: dict[str, Cell] = dict.fromkeys(
            shown
        )  # Dagster wants the fields of the others (1.13).
        record[label] = f"… {_count(number, f'more {self.noun}')} {_REASON}"
        if self.total in record:
            record[self.total] = sum(int(row[names.index(self.total)] or 0) for row in hidden)
        return [dg.TableRecord(record)]

    def last_column(self, columns: int) -> list[dg.TableColumn]:
        """Stands for the columns after so many, if there are any."""
        hidden = len(self.columns) - columns + self.more_columns
        return [dg.TableColumn(f"… {_count(hidden, 'more column')} {_REASON}")] if hidden else []


def sample_table(
    frame: pl.DataFrame,
    redacted: Collection[str],
    room: int,
    first: Collection[str] = (),
    weight: int = 0,
) -> Table:
    """The rows of a frame, without the values of redacted columns.

    What could not fit in so many bytes is not rendered. `first` are the columns that are kept longest.
    """
    most_columns = max(1, room // _LEAST_COLUMN)
    kept = frame.columns
    if len(kept) > most_columns:
        order = dict.fromkeys([name for name in first if name in frame.columns])
        chosen = set([*order, *(name for name in kept if name not in order)][:most_columns])
        kept = [name for name in kept if name in chosen]
    rows = frame.select(kept).head(most_rows(room, len(kept)))
    cells = [
        render_redacted(series) if series.name in redacted else render_series(series)
        for series in rows.get_columns()
    ]
    return Table(
        columns=[
            (name, render_dtype(dtype, redacted=name in redacted))
            for name, dtype in rows.schema.items()
        ],
        rows=list(zip(*cells, strict=True)),
        more_rows=frame.height - rows.height,
        more_columns=frame.width - len(kept),
        first=first,
        weight=weight,
    )


def most_rows(room: int, columns: int) -> int:
    """More rows than these do not fit in so many bytes, but one is tried."""
    shown = min(columns, max(1, room // _LEAST_COLUMN))
    return max(1, room // (_ROW + _LEAST_CELL * shown))


def most_room(room: int, tables: int) -> int:
    """No table of so many gets more bytes than this."""
    return min(room, max(_LEAST, 4 * room // max(tables, 1)))


def rows_table(
    rows: Sequence[Mapping[str, Any]], noun: str = "row", total: str | None = None
) -> Table:
    """Rows that all have the same names; there must be one at least."""
    return Table(
        columns=[(name, "string") for name in rows[0]],
        rows=[[render_cell(value) for value in row.values()] for row in rows],
        noun=noun,
        total=total,
    )


def given_table(value: dg.TableMetadataValue, redacted: Collection[str]) -> Table:
    """A table that something else made, without the values of redacted columns."""
    names = [column.name for column in value.schema.columns]
    rows = [
        [
            REDACTED if name in redacted and cell is not None else render_cell(cell)
            for name, cell in ((name, record.data.get(name)) for name in names)
        ]
        for record in value.records
    ]
    schema = given_schema(value.schema, redacted)
    return Table([(column.name, column.type) for column in schema.columns], rows)


def given_schema(schema: dg.TableSchema, redacted: Collection[str]) -> dg.TableSchema:
    """Columns that something else describes, without what is inside the dtypes of redacted ones.

    It can be values: an Enum's are its categories.
    """
    columns = [
        dg.TableColumn(column.name, column.type.partition("(")[0])
        if column.name in redacted
        else column
        for column in schema.columns
    ]
    return dg.TableSchema(columns, schema.constraints)


def fit_tables[Key](tables: Mapping[Key, Table], room: int) -> dict[Key, dg.MetadataValue[Any]]:
    """All tables in at most so many bytes together, by their keys.

    None is cut unless the others get as much. Where there is not even enough for a row of each, those
    that weigh most are shown, and in place of each other one a note, which may exceed the room.
    """
    sizes = {key: table.size for key, table in tables.items()}
    if sum(sizes.values()) <= room:
        return {key: table.whole() for key, table in tables.items()}
    most = most_room(room, len(tables))
    left = room - _NOTE * len(tables)
    least = {}
    for key in sorted(tables, key=lambda key: -tables[key].weight):
        if (need := tables[key].least - _NOTE) <= left:
            least[key] = tables[key].least
            left -= need
    more = _share({key: min(sizes[key], most) - least[key] for key in least}, left)
    return {
        key: table.fit(least[key] + more[key] if key in least else 0)
        for key, table in tables.items()
    }


def fit_names(names: Sequence[str], room: int) -> dg.JsonMetadataValue:
    """Names in at most so many bytes, the first ones; a note at the end counts the others."""
    shown = [render_cell(name) for name in names]
    taken = list(accumulate(len(json.dumps(name)) + 2 for name in shown))
    if taken[-1] > room:
        number = bisect_right(taken, room - _NOTE)
        hidden = _count(len(shown) - number, "more column")
        shown = [*shown[:number], f"… {hidden} {_REASON}"]
    return dg.MetadataValue.json(shown)


def _share[Key](sizes: Mapping[Key, int], room: int) -> dict[Key, int]:
    """What each gets: small ones all they need, the others equally much."""
    shares = {}
    smallest_first = sorted(sizes, key=lambda key: sizes[key])
    for number, key in enumerate(smallest_first):
        shares[key] = min(sizes[key], room // (len(smallest_first) - number))
        room -= shares[key]
    return shares


def _most(highest: int, fits: Callable[[int], bool]) -> int:
    """The most that fits, where less fits too; 0 where not even one does."""
    return bisect_left(range(1, highest + 1), 1, key=lambda number: 0 if fits(number) else 1)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@lru_cache(maxsize=10_000)
def _column_size(name: str, type_: str) -> int:
    return len(dg.serialize_value(dg.TableColumn(name, type_))) + 2


_ROW = len(dg.serialize_value(dg.TableRecord({}))) + 2


_FRAME = _KEY + len(
    dg.serialize_value(dg.TableMetadataValue(records=[], schema=dg.TableSchema([])))
)
