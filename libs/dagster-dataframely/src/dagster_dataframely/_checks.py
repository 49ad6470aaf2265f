"""Check specs and check results, made from the same groups of rules so that they cannot disagree."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._constraints import describe_expression
from dagster_dataframely._rules import Rule, SchemaRules
from dagster_dataframely._schemas import reject_collisions
from dagster_dataframely._settings import Granularity, MultiColumnRules, Settings
from dagster_dataframely._tables import (
    Table,
    fit_names,
    fit_tables,
    most_room,
    most_rows,
    rows_table,
    sample_table,
)
from dagster_dataframely._upstream import disable_dagster_warnings
from dagster_dataframely._validation import Findings
from dagster_dataframely.errors import ColumnMismatch, ManyChecksWarning

MANY_CHECKS = 200
"""More than these are warned of: they take a run a second in memory, and six in SQLite."""

SeverityOf = Callable[[Rule], dg.AssetCheckSeverity]


@dataclass(frozen=True)
class CheckGroup:
    """The rules that one asset check reports on."""

    check_name: str
    original: str
    """The rule, column or schema that the check is named after, spelled as its author did."""
    rules: tuple[Rule, ...]
    collapsed: bool
    """Whether the check stands for several rules, even where there happens to be one."""

    @property
    def description(self) -> str:
        if not self.collapsed:
            return self.rules[0].description
        return f"{self.original}: {'; '.join(rule.constraint for rule in self.rules)}"


def group_rules(rules: SchemaRules, settings: Settings) -> tuple[CheckGroup, ...]:
    """The checks the rules become, in the schema's order; none for a schema without rules."""
    groups = _all_groups(rules, settings)
    reject_collisions(rules.schema, ((group.check_name, group.original) for group in groups))
    return groups


def _all_groups(rules: SchemaRules, settings: Settings) -> tuple[CheckGroup, ...]:
    """A filter of a collection has its own check, whatever the granularity."""
    filters = [rule for rule in rules.rules if rule.is_filter]
    others = replace(rules, rules=tuple(rule for rule in rules.rules if not rule.is_filter))
    return (*_groups(others, settings), *map(single_group, filters))


def _groups(rules: SchemaRules, settings: Settings) -> Iterator[CheckGroup]:
    if settings.check_granularity is Granularity.RULE:
        yield from map(single_group, rules.rules)
        return
    if settings.check_granularity is Granularity.SCHEMA:
        if rules.rules:
            yield CheckGroup(_names.RULES_CHECK, rules.name, rules.rules, collapsed=True)
        return
    for column in rules.columns:
        if own := tuple(rule for rule in rules.rules if rule.column == column):
            yield CheckGroup(_names.column_check_name(column), column, own, collapsed=True)
    others = tuple(rule for rule in rules.rules if rule.column is None)
    if settings.multi_column_rules is MultiColumnRules.PER_RULE:
        yield from map(single_group, others)
    elif others:
        yield CheckGroup(_names.RULES_CHECK, rules.name, others, collapsed=True)


def single_group(rule: Rule) -> CheckGroup:
    """A check of one rule."""
    return CheckGroup(rule.check_name, rule.name, (rule,), collapsed=False)


def build_check_specs(
    rules: SchemaRules,
    groups: Sequence[CheckGroup],
    asset_key: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    settings: Settings,
) -> list[dg.AssetCheckSpec]:
    """The blocking check of columns and dtypes, then one spec for each group.

    Warns where there are so many that they decide what a run costs.
    """
    if (checks := len(groups) + 1) > MANY_CHECKS:
        warn_of_many_checks(rules, asset_key, checks, settings)
    # Dagster 1.13 warns that `partitions_def` on a check spec is in preview.
    with disable_dagster_warnings():
        return [
            dg.AssetCheckSpec(
                _names.COLUMNS_CHECK,
                asset=asset_key,
                description=f"The frame has the columns and dtypes of schema `{rules.name}`.",
                blocking=True,
                partitions_def=partitions_def,
            ),
            *(build_group_spec(group, asset_key, partitions_def) for group in groups),
        ]


def warn_of_many_checks(
    rules: SchemaRules, asset_key: dg.AssetKey, checks: int, settings: Settings
) -> None:
    """Say which granularity makes fewer; the warning points at the user's code."""
    fewer = {}
    for granularity in (Granularity.COLUMN, Granularity.SCHEMA):
        count = 1 + len(_all_groups(rules, replace(settings, check_granularity=granularity)))
        if count < checks:
            fewer[granularity.value] = count
    warning = ManyChecksWarning(asset_key.to_user_string(), checks, fewer)
    warnings.warn(warning, skip_file_prefixes=(os.path.dirname(__file__),))


def build_group_spec(
    group: CheckGroup, asset_key: dg.AssetKey, partitions_def: dg.PartitionsDefinition[Any] | None
) -> dg.AssetCheckSpec:
    """The spec of a check of rules; Dagster warns as in `build_check_specs`."""
    return dg.AssetCheckSpec(
        group.check_name,
        asset=asset_key,
        description=group.description,
        partitions_def=partitions_def,
    )


def columns_check_result(
    asset_key: dg.AssetKey,
    mismatches: Sequence[ColumnMismatch],
    extra_columns: Sequence[str],
    settings: Settings,
) -> dg.AssetCheckResult:
    """The result of the column-schema check; it passes where nothing mismatches.

    Its metadata takes an eighth of the budget.
    """
    room = settings.max_metadata_bytes // 16
    metadata: dict[str, Any] = {}
    if extra_columns:
        metadata[_names.EXTRA_COLUMNS] = fit_names(extra_columns, room)
    if mismatches:
        rows = [{**m._asdict(), "found": m.found or "missing"} for m in mismatches]
        metadata |= fit_tables({_names.COLUMN_ERRORS: rows_table(rows, "column")}, room)
    return dg.AssetCheckResult(
        passed=not mismatches,
        asset_key=asset_key,
        check_name=_names.COLUMNS_CHECK,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def rule_check_results(
    groups: Sequence[CheckGroup],
    asset_key: dg.AssetKey,
    rules: SchemaRules,
    settings: Settings,
    verdict: Findings | None,
    severity_of: SeverityOf,
    metadata: Mapping[str, Any],
) -> Iterator[dg.AssetCheckResult]:
    """One result for each group; without a verdict every check passes, over no rows.

    `metadata` is added to each result. A check that stands for several rules has the severity of the
    worst of those that failed, or of the worst of all where it passes. The samples of all checks take
    three eighths of the budget.
    """
    room = settings.max_metadata_bytes * 3 // 8
    most = settings.max_failure_samples
    fitted = fit_tables(
        _samples(groups, rules, verdict, room, most) if verdict and most else {}, room
    )
    for group in groups:
        failed = verdict.failed(group.rules) if verdict else {}
        relevant = [rule for rule in group.rules if rule.name in failed] or group.rules
        severities = {severity_of(rule) for rule in relevant}
        error = dg.AssetCheckSeverity.ERROR
        tables = {
            key: fitted[group.check_name, key]
            for key in (_names.FAILED_SAMPLE, _names.DUPLICATED_SAMPLE)
            if (group.check_name, key) in fitted
        }
        yield dg.AssetCheckResult(
            passed=not failed,
            asset_key=asset_key,
            check_name=group.check_name,
            severity=error if error in severities else dg.AssetCheckSeverity.WARN,
            metadata={**_group_metadata(group, verdict, failed), **tables, **metadata},
        )


def _samples(
    groups: Sequence[CheckGroup],
    rules: SchemaRules,
    verdict: Findings,
    room: int,
    most_samples: int,
) -> dict[tuple[str, str], Table]:
    """The first rows that fail, by check and metadata key; those of the most failures weigh most."""
    sampled = {group.check_name: _sampled(group, verdict) for group in groups}
    most = most_room(room, sum(map(bool, sampled.values())))
    samples = {}
    for group in groups:
        if not (found := sampled[group.check_name]):
            continue
        weight = sum(verdict.counts[rule.name] for rule in found)
        # Not every column of a wide table may fit: what the rules look at is kept longest.
        looked_at = [name for rule in found for name in rule.expression.meta.root_names()]
        first = [_names.RULE, *looked_at, *rules.primary_key]
        frame = (
            _labelled(found, verdict, most) if group.collapsed else verdict.samples[found[0].name]
        )
        table = sample_table(frame, rules.redacted, most, first, weight)
        # As many rows as the samples have, which are not gathered for it.
        rows = sum(min(_cases(rule, verdict), most_samples) for rule in found)
        samples[group.check_name, _names.FAILED_SAMPLE] = replace(
            table, more_rows=rows - len(table.rows)
        )
        if not group.collapsed and found[0].name in verdict.duplicates:
            keys = verdict.duplicates[found[0].name].sample
            samples[group.check_name, _names.DUPLICATED_SAMPLE] = sample_table(
                keys, rules.redacted, most, weight=weight
            )
    return samples


def _sampled(group: CheckGroup, verdict: Findings) -> list[Rule]:
    """The rules of a check that there are failing rows of, the one that most rows fail first."""
    rules = [rule for rule in group.rules if rule.name in verdict.samples]
    return sorted(rules, key=lambda rule: -verdict.counts[rule.name])


def _cases(rule: Rule, verdict: Findings) -> int:
    """How many rows a rule fails, or keys."""
    duplicates = verdict.duplicates.get(rule.name)
    return verdict.counts[rule.name] if duplicates is None else duplicates.keys


def _labelled(found: Sequence[Rule], verdict: Findings, room: int) -> pl.DataFrame:
    """Failing rows of several rules, with the rule; as many of each where not all can fit."""
    rows = most_rows(room, verdict.samples[found[0].name].width)
    for_each = max(1, rows // len(found))
    return pl.concat(
        verdict.samples[rule.name]
        .head(for_each)
        .select(pl.lit(rule.name).alias(_names.RULE), pl.all())
        for rule in found[:rows]
    )


def _group_metadata(
    group: CheckGroup, verdict: Findings | None, failed: Mapping[str, int]
) -> dict[str, Any]:
    if not group.collapsed:
        rule = group.rules[0]
        metadata: dict[str, Any] = {_names.FILTER: rule.name}
        if not rule.is_filter:
            expression = describe_expression(rule.expression)
            metadata = {_names.RULE: rule.name, _names.RULE_EXPR: expression}
        metadata[_names.FAILED_COUNT] = failed.get(rule.name, 0)
        duplicates = verdict.duplicates if verdict else {}
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
    return {_names.RULES: rows_table(rows).whole()}
