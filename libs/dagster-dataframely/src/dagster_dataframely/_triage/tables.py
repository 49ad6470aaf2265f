"""Lay cells out as text for a terminal."""

from collections.abc import Collection, Iterator, Sequence

import polars as pl

from dagster_dataframely._cells import render_redacted, render_series
from dagster_dataframely._text import cut, printable

_GAP = "  "


def text_cells(frame: pl.DataFrame, redacted: Collection[str]) -> list[tuple[str, ...]]:
    """The rows of a frame as text that cannot move the cursor, without the values of some columns."""
    columns = [
        render_redacted(series) if series.name in redacted else render_series(series)
        for series in frame.get_columns()
    ]
    return [
        tuple("" if cell is None else printable(str(cell)) for cell in row)
        for row in zip(*columns, strict=True)
    ]


def write_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str] = ()
) -> list[str]:
    """Lines with columns as wide as their widest cell; those of numbers end alike."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.rjust(width) if name in numbers else cell.ljust(width)
            for name, cell, width in zip(header, cells, widths, strict=True)
        ]
        return _GAP.join(aligned).rstrip()

    return [line(cells) for cells in lines]


def write_rows(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """A table where that is not wider than the terminal, else a line for each value."""
    lines = write_table(header, rows)
    if max(map(len, lines)) <= width:
        yield from lines
        return
    longest = max(map(len, header))
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(header, row, strict=True):
            yield f"{name.ljust(longest)}{_GAP}{cut(cell, max(20, width - longest - 2))}".rstrip()
