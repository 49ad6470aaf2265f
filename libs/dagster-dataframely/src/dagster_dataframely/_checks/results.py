"""Build the results of the checks from findings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._cells import render_cell
from dagster_dataframely._checks.descriptions import Fate, describe_columns, describe_rules
from dagster_dataframely._metadata.budget import fit, fit_names, fit_tables, limit_each, share
from dagster_dataframely._metadata.tables import (
    Table,
    most_rows,
    rows_table,
    sample_table,
)
from dagster_dataframely._schema.cast import cast_advice
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.granularity import CheckGroup
from dagster_dataframely._schema.rules import Rule
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._schema.words import describe_expression
from dagster_dataframely._validation.verdict import Findings
from dagster_dataframely.errors import ColumnSchemaError


def worst_severity(rules: Iterable[Rule]) -> Severity:
    """The severity that these rules are declared with."""
    return "error" if any(rule.severity == "error" for rule in rules) else "warn"


def copy_result(result: dg.AssetCheckResult, **changes: Any) -> dg.AssetCheckResult:
    """A check result with some fields changed."""
    fields: dict[str, Any] = {
        "passed": result.passed,
        "asset_key": result.asset_key,
        "check_name": result.check_name,
        "metadata": result.metadata,
        "severity": result.severity,
        "description": result.description,
    }
    return dg.AssetCheckResult(**{**fields, **changes})


def column_schema_error(
    declaration: Declaration, found: pl.Schema, *, stored: bool = False
) -> ColumnSchemaError | None:
    """The error for a failed column check. `stored`: the frame was loaded, not returned."""
    if not (mismatches := declaration.rules.mismatches(found)):
        return None
    return ColumnSchemaError(
        declaration.asset_name,
        declaration.rules.name,
        mismatches,
        advice=cast_advice(declaration.rules, found),
        stored=stored,
    )


def columns_check_result(declaration: Declaration, found: pl.Schema | None) -> dg.AssetCheckResult:
    """Compare columns and dtypes; without a frame the check passes."""
    settings = declaration.settings
    metadata: dict[str, Any] = {_names.SEVERITY: "error"}
    mismatches = [] if found is None else declaration.rules.mismatches(found)
    if extra_columns := [name for name in found or () if name not in declaration.rules.row_columns]:
        names = dict.fromkeys(str(render_cell(name)) for name in extra_columns)
        shown = fit_names(names, "column", share(settings, "extra columns"))
        metadata[_names.EXTRA_COLUMNS] = dg.MetadataValue.json([*shown])
    if mismatches:
        rows = [{**m._asdict(), "found": m.found or "missing"} for m in mismatches]
        table = rows_table(rows, noun="column")
        metadata[_names.COLUMN_ERRORS] = fit(table, share(settings, "column errors"))
    return dg.AssetCheckResult(
        passed=not mismatches,
        asset_key=declaration.asset_key,
        check_name=_names.COLUMNS_CHECK,
        severity=dg.AssetCheckSeverity.ERROR,
        description=describe_columns(declaration.rules, found),
        metadata=metadata,
    )


def rule_check_results(
    declaration: Declaration,
    findings: Findings | None,
    fate: Fate = Fate.REPORTED,
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[dg.AssetCheckResult]:
    """One result for each group of rules; without findings every check passes, over no rows.

    `metadata` is added to each result. A check that stands for several rules has the severity of the
    worst of those that failed, or of the worst of all where it passes; in a run that set its error
    rows aside and went on, each check has WARN.
    """
    max_bytes = share(declaration.settings, "check samples")
    most = declaration.settings.max_failure_samples
    samples = _samples(declaration, findings, max_bytes) if findings and most else {}
    fitted = fit_tables(samples, max_bytes)
    for group in declaration.groups:
        failed = findings.failed(group.rules) if findings else {}
        relevant = [rule for rule in group.rules if rule.name in failed] or group.rules
        severity = worst_severity(relevant)
        warns = severity == "warn" or fate is Fate.SET_ASIDE
        tables = {
            key: fitted[group.check_name, key]
            for key in (_names.FAILED_SAMPLE, _names.DUPLICATED_SAMPLE)
            if (group.check_name, key) in fitted
        }
        yield dg.AssetCheckResult(
            passed=not failed,
            asset_key=declaration.asset_key,
            check_name=group.check_name,
            severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
            description=describe_rules(group, findings, fate),
            metadata={
                **_group_metadata(group, findings, failed),
                _names.SEVERITY: severity,
                **tables,
                **metadata,
            },
        )


def _samples(
    declaration: Declaration, findings: Findings, max_bytes: int
) -> dict[tuple[str, str], Table]:
    """Sample the rows that fail each check, by check name and metadata key, most failures first."""
    rules, most = declaration.rules, declaration.settings.max_failure_samples
    ranked = []
    for group in declaration.groups:
        if failed := [rule for rule in group.rules if rule.name in findings.samples]:
            failed.sort(key=lambda rule: -findings.counts[rule.name])
            ranked.append((sum(findings.counts[rule.name] for rule in failed), group, failed))
    ranked.sort(key=lambda item: -item[0])
    shown, max_bytes = limit_each(max_bytes, len(ranked))
    samples = {}
    for rank, (_, group, failed) in enumerate(ranked):
        # As many rows as the samples have, which are not gathered for it.
        rows = sum(min(_cases(rule, findings), most) for rule in failed)
        if rank >= shown:
            samples[group.check_name, _names.FAILED_SAMPLE] = Table({}, [], rows)
            continue
        # Not every column of a wide table may fit: what the rules look at is kept longest.
        looked_at = [name for rule in failed for name in rule.expression.meta.root_names()]
        samples[group.check_name, _names.FAILED_SAMPLE] = sample_table(
            _labelled(failed, findings, max_bytes)
            if group.collapsed
            else findings.samples[failed[0].name],
            rules.redacted,
            max_bytes,
            first=[_names.RULE, *looked_at, *rules.primary_key],
            rows=rows,
        )
        if not group.collapsed and failed[0].name in findings.duplicates:
            keys = findings.duplicates[failed[0].name].sample
            samples[group.check_name, _names.DUPLICATED_SAMPLE] = sample_table(
                keys, rules.redacted, max_bytes
            )
    return samples


def _cases(rule: Rule, findings: Findings) -> int:
    """How many rows a rule fails, or keys."""
    duplicates = findings.duplicates.get(rule.name)
    return findings.counts[rule.name] if duplicates is None else duplicates.keys


def _labelled(failed: Sequence[Rule], findings: Findings, max_bytes: int) -> pl.DataFrame:
    """Label failing rows with their rule; as many of each where not all can fit."""
    rows = most_rows(max_bytes, findings.samples[failed[0].name].width)
    for_each = max(1, rows // len(failed))
    return pl.concat(
        findings.samples[rule.name]
        .head(for_each)
        .select(pl.lit(rule.name).alias(_names.RULE), pl.all())
        for rule in failed[:rows]
    )


def _group_metadata(
    group: CheckGroup, findings: Findings | None, failed: Mapping[str, int]
) -> dict[str, Any]:
    if not group.collapsed:
        rule = group.rules[0]
        metadata: dict[str, Any] = {_names.FILTER: rule.name}
        if not rule.is_filter:
            expression = describe_expression(rule.expression)
            metadata = {_names.RULE: rule.name, _names.RULE_EXPR: expression}
        metadata[_names.FAILED_COUNT] = failed.get(rule.name, 0)
        duplicates = findings.duplicates if findings else {}
        if rule.name in duplicates:
            metadata[_names.DUPLICATED_KEYS] = duplicates[rule.name].keys
        elif rule.wants_unique and not failed:
            metadata[_names.DUPLICATED_KEYS] = 0
        return metadata
    rows = [
        {
            "rule": rule.name,
            "expression": describe_expression(rule.expression),
            "failures": failed.get(rule.name, 0),
            "severity": rule.severity,
        }
        for rule in group.rules
    ]
    return {_names.RULES: rows_table(rows).cut()}
