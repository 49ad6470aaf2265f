"""Polars values to the cells of a Dagster table, which must be strict JSON."""

import datetime as dt
import decimal
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

Cell = str | int | float | bool | None

_MAX_EXACT_INT = 2**53 - 1
"""Larger whole numbers lose digits where JSON is read as doubles, as in the Dagster UI."""


def render_frame(frame: pl.DataFrame) -> dg.TableMetadataValue:
    """Every row of a frame as a table; the caller bounds the rows."""
    names = frame.columns
    columns = [render_series(series) for series in frame.get_columns()]
    records = [
        dg.TableRecord(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)
    ]
    schema = dg.TableSchema(
        [dg.TableColumn(name, type=str(dtype)) for name, dtype in frame.schema.items()]
    )
    return dg.TableMetadataValue(records=records, schema=schema)


def render_series(series: pl.Series) -> list[Cell]:
    """Every value of a series; dates and times as Polars prints them.

    Python's own dates end at year 9999 and its times at microseconds; Polars' do not.
    """
    if series.dtype in (pl.Date, pl.Time, pl.Datetime):
        return series.dt.to_string("iso").to_list()
    if series.dtype == pl.Duration:
        return series.dt.to_string("polars").to_list()
    return [render_cell(value) for value in series.to_list()]


def render_rows(rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Rows that all have the same names, as a table; there must be one at least."""
    records = [
        dg.TableRecord({name: render_cell(value) for name, value in row.items()}) for row in rows
    ]
    return dg.TableMetadataValue(
        records=records, schema=dg.TableSchema([dg.TableColumn(name) for name in rows[0]])
    )


def render_cell(value: Any) -> Cell:
    """One value, exact: what JSON cannot hold becomes text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_EXACT_INT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _render_non_finite(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat(**({"sep": " "} if isinstance(value, dt.datetime) else {}))
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, (list, dict, pl.Series)):
        return json.dumps(_render_nested(value), ensure_ascii=False, allow_nan=False)
    return str(value)


def _render_nested(value: Any) -> Any:
    if isinstance(value, (list, pl.Series)):
        return [_render_nested(element) for element in value]
    if isinstance(value, dict):
        return {name: _render_nested(element) for name, element in value.items()}
    return render_cell(value)


def _render_non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
