"""Build a materialization's metadata: row counts, samples, statistics and the report."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._metadata.budget import fit_tables, share
from dagster_dataframely._metadata.report import count_failures, read_earlier, write_report
from dagster_dataframely._metadata.statistics import describe_families
from dagster_dataframely._metadata.tables import (
    Table,
    given_schema,
    given_table,
    most_rows,
    rows_table,
    sample_table,
)
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._schema.table_schema import table_schema
from dagster_dataframely._settings import Settings
from dagster_dataframely._validation.verdict import Verdict, rule_combinations


def fit_manager_metadata(
    metadata: Mapping[str, Any], rules: SchemaRules, settings: Settings, copies: int
) -> dict[str, Any]:
    """Redact and cut the tables that an IO manager records.

    The managers of dagster-polars record rows and minima and maxima of a data frame (0.27.12), which
    the settings are about too. Where columns are redacted, a table without these columns tells of them
    in a way that is not known, and is left out.
    """
    wanted = {
        _names.POLARS_ROWS: settings.row_sample > 0,
        _names.POLARS_STATISTICS: settings.statistics,
    }
    kept = {key: value for key, value in metadata.items() if wanted.get(key, True)}
    for key, value in kept.items():
        if isinstance(value, dg.TableMetadataValue):
            if rules.redacted <= {column.name for column in value.schema.columns}:
                kept[key] = given_table(value, rules.redacted)
            else:
                kept[key] = "Left out, since columns are redacted."
        elif isinstance(value, (dg.TableSchema, dg.TableSchemaMetadataValue)):
            schema = value if isinstance(value, dg.TableSchema) else value.schema
            kept[key] = given_schema(schema, rules.redacted)
    return fit_tables(kept, share(settings, "manager", copies))


def valid_metadata(
    rules: SchemaRules, settings: Settings, verdict: Verdict[Any], *, partitioned: bool
) -> dict[str, Any]:
    """Describe the rows that are written, on clean runs too; tables are still to be fitted."""
    metadata: dict[str, Any] = {_names.COLUMN_SCHEMA: table_schema(rules), **row_counts(verdict)}
    if partitioned:
        metadata[_names.PARTITION_ROW_COUNT] = verdict.survivor_count
    metadata |= _sample(_names.VALID_SAMPLE, verdict.survivors, rules, settings)
    if settings.statistics:
        for family, rows in describe_families(verdict.survivors, rules.redacted).items():
            metadata[f"{_names.VALID_STATS}/{family}"] = rows_table(rows, noun="column")
    return metadata


def row_counts(verdict: Verdict[Any]) -> dict[str, int | float]:
    """Count the rows that came in, were written and set aside: plain numbers, which Dagster plots."""
    return {
        _names.ROW_COUNT: verdict.survivor_count,
        _names.ROWS_IN: verdict.rows_in,
        _names.ROWS_WRITTEN: verdict.survivor_count,
        _names.ERROR_ROWS: verdict.error_count,
        _names.ERROR_SHARE: verdict.error_count / verdict.rows_in if verdict.rows_in else 0.0,
    }


def report_metadata(
    rules: SchemaRules,
    settings: Settings,
    verdict: Verdict[Any],
    copies: int,
    combinations: Table | None = None,
    earlier: dg.AssetMaterialization | None = None,
    empty_partitions: Sequence[str] = (),
) -> dict[str, Any]:
    """Report the run in words, and in numbers that the next run compares itself with."""
    max_bytes = share(settings, "report", copies)
    report = write_report(
        rules, verdict, combinations, read_earlier(earlier), max_bytes, empty_partitions
    )
    max_bytes = share(settings, "failures", copies)
    if not rules.parsed:
        failed = count_failures(verdict.failed(rules.rules), max_bytes)
        return {_names.REPORT: report, _names.FAILURES_BY_RULE: dg.MetadataValue.json(failed)}
    failed = count_failures(verdict.failed(rules.rules), max_bytes // 2)
    by_column = {str(rule.column): verdict.counts[rule.name] for rule in rules.dtype_rules}
    lost = count_failures(by_column, max_bytes // 2, "column")
    return {
        _names.REPORT: report,
        _names.FAILURES_BY_RULE: dg.MetadataValue.json(failed),
        _names.CAST_FAILURES: dg.MetadataValue.json(lost),
    }


def invalid_metadata(
    rules: SchemaRules,
    settings: Settings,
    verdict: Verdict[Any],
    quarantined: pl.DataFrame | pl.LazyFrame,
    address: str,
) -> dict[str, Any]:
    """Describe the error rows that are in the quarantine; tables are still to be fitted."""
    combinations = rule_combinations(verdict.error_rows, rules)
    shown = [
        {"rules": ", ".join(names), "rows": rows}
        for names, rows in combinations[: most_rows(settings.max_metadata_bytes, 2)]
    ]
    return {
        _names.QUARANTINE_ADDRESS: dg.MetadataValue.text(address),
        _names.INVALID_COUNT: verdict.error_count,
        _names.INVALID_BY_RULES: rows_table(
            shown,
            more_rows=len(combinations) - len(shown),
            noun="combination",
            total=("rows", verdict.error_count),
        ),
        **_sample(_names.INVALID_SAMPLE, quarantined, rules, settings),
    }


def _sample(
    key: str, frame: pl.DataFrame | pl.LazyFrame, rules: SchemaRules, settings: Settings
) -> dict[str, Any]:
    rows = frame.lazy().head(settings.row_sample).collect(engine="streaming")
    if rows.is_empty():
        return {}
    # A wide table may not fit: its key and what is wrong with the rows are kept longest.
    rule_columns = {rule.check_name for rule in rules.rules}
    failed = [
        name
        for name in rows.columns
        if name not in rules.columns and (name not in rule_columns or _names.INVALID in rows[name])
    ]
    first = [*rules.primary_key, *failed]
    return {key: sample_table(rows, rules.redacted, share(settings, "tables"), first)}
