"""What a materialization records: row counts, samples, statistics, and where the error rows are."""

from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._cells import render_frame, render_rows
from dagster_dataframely._columns import table_schema
from dagster_dataframely._rules import SchemaRules
from dagster_dataframely._settings import Settings
from dagster_dataframely._statistics import describe_families
from dagster_dataframely._validation import Verdict, rule_combinations


def materialization_metadata(
    rules: SchemaRules, settings: Settings, verdict: Verdict[Any], *, partitioned: bool
) -> dict[str, Any]:
    """What is recorded about the rows that are written, on clean runs too."""
    metadata: dict[str, Any] = {_names.COLUMN_SCHEMA: table_schema(rules), **row_counts(verdict)}
    if partitioned:
        metadata[_names.PARTITION_ROW_COUNT] = verdict.survivor_count
    metadata |= _sample(_names.VALID_SAMPLE, verdict.survivors, settings)
    if settings.statistics:
        for family, rows in describe_families(verdict.survivors).items():
            metadata[f"{_names.VALID_STATS}/{family}"] = render_rows(rows)
    return metadata


def row_counts(verdict: Verdict[Any]) -> dict[str, int | float]:
    """How many rows came in, were written and set aside: plain numbers, which Dagster plots."""
    return {
        _names.ROW_COUNT: verdict.survivor_count,
        _names.ROWS_IN: verdict.rows_in,
        _names.ROWS_WRITTEN: verdict.survivor_count,
        _names.ERROR_ROWS: verdict.error_count,
        _names.ERROR_SHARE: verdict.error_count / verdict.rows_in if verdict.rows_in else 0.0,
    }


def quarantine_metadata(
    rules: SchemaRules,
    settings: Settings,
    verdict: Verdict[Any],
    quarantined: pl.DataFrame | pl.LazyFrame,
    address: str,
) -> dict[str, Any]:
    """What is recorded about error rows that are in the quarantine."""
    combinations = [
        {"rules": ", ".join(names), "rows": rows}
        for names, rows in rule_combinations(verdict.error_rows, rules)
    ]
    return {
        _names.QUARANTINE_ADDRESS: dg.MetadataValue.text(address),
        _names.INVALID_COUNT: verdict.error_count,
        _names.INVALID_BY_RULES: render_rows(combinations),
        **_sample(_names.INVALID_SAMPLE, quarantined, settings),
    }


def _sample(key: str, frame: pl.DataFrame | pl.LazyFrame, settings: Settings) -> dict[str, Any]:
    rows = frame.lazy().head(settings.row_sample).collect(engine="streaming")
    return {} if rows.is_empty() else {key: render_frame(rows)}
