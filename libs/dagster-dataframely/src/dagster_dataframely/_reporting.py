"""A verdict to Dagster's events: the materialization, and a result for every check."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import dagster as dg

from dagster_dataframely import _names
from dagster_dataframely._checks import SeverityOf, columns_check_result
from dagster_dataframely._declaration import Declaration, Surroundings
from dagster_dataframely._judging import Judged
from dagster_dataframely._materialization import (
    fit_manager_metadata,
    fit_metadata,
    materialization_metadata,
    quarantine_metadata,
    report_metadata,
    room_for,
)
from dagster_dataframely._rules import Rule
from dagster_dataframely._upstream import (
    current_run_context,
    is_partitioned,
    latest_materialization,
    rewriting_manager_metadata,
)
from dagster_dataframely._validation import Verdict


def own_severity(rule: Rule) -> dg.AssetCheckSeverity:
    """The severity the rule is declared with."""
    return dg.AssetCheckSeverity.ERROR if rule.severity == "error" else dg.AssetCheckSeverity.WARN


def always_warn(_rule: Rule) -> dg.AssetCheckSeverity:
    """For a run that set its error rows aside and went on."""
    return dg.AssetCheckSeverity.WARN


def report_skip(
    declaration: Declaration, surroundings: Surroundings
) -> Iterator[dg.AssetCheckResult]:
    """The checks of a run that has no table: every one passes, over no rows."""
    passed = columns_check_result(declaration.asset_key, [], [], declaration.settings)

    def results(_verdict: None) -> Iterator[dg.AssetCheckResult]:
        yield passed
        yield from declaration.rule_checks(None, own_severity)

    yield from results(None)
    if (together := surroundings.partition_range) is not None:
        together.record_evaluations(together.undivided, results)


def report_columns(
    columns_check: dg.AssetCheckResult, surroundings: Surroundings
) -> Iterator[dg.AssetCheckResult]:
    """The only check of a frame on whose rows there is no verdict."""
    yield columns_check
    if (together := surroundings.partition_range) is not None:
        together.record_evaluations(together.undivided, lambda _: [columns_check])


def report_rules(
    judged: Judged, severity_of: SeverityOf, metadata: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[dg.AssetCheckResult]:
    """A result for every check, with this metadata added.

    In a run over several partitions, also an evaluation for each of them.
    """
    columns_check = judged.columns_check

    def results(verdict: Verdict[Any]) -> Iterator[dg.AssetCheckResult]:
        yield columns_check._replace(metadata={**columns_check.metadata, **metadata})
        yield from judged.declaration.rule_checks(verdict, severity_of, metadata)

    yield from results(judged.verdict)
    if (together := judged.surroundings.partition_range) is not None:
        together.record_evaluations(judged.parts, results)


def materialize(judged: Judged) -> Iterator[dg.MaterializeResult[Any]]:
    """Goes before the check results: Dagster ties each to the latest materialization (1.13)."""
    declaration, result = judged.declaration, judged.result
    verdict, surroundings = judged.verdict, judged.surroundings
    together = surroundings.partition_range
    # Dagster stores it with the output too, and for each of several partitions (1.13).
    copies = 2 if together is None else 1 + len(together.keys)
    own = _recorded(judged, room_for(declaration.settings, copies))
    start = time.monotonic()
    with _beside_the_manager(declaration, own, copies):
        yield dg.MaterializeResult(
            asset_key=declaration.asset_key,
            value=surroundings.hand_over(verdict.survivors),
            metadata={**result.metadata, **own},
            tags=result.tags,
            data_version=result.data_version,
        )
    # Dagster comes back for the next event when the IO manager has written.
    seconds = time.monotonic() - start
    surroundings.log(f"Surviving rows handed over: {verdict.survivor_count:,}, in {seconds:.1f} s.")


def _recorded(judged: Judged, room: int) -> dict[str, Any]:
    """The metadata of the materialization in so many bytes; that of single partitions is recorded."""
    rules, settings, verdict = judged.declaration.rules, judged.declaration.settings, judged.verdict
    together = judged.surroundings.partition_range
    partitioned = judged.surroundings.partition_key is not None
    own = materialization_metadata(rules, settings, verdict, partitioned=partitioned)
    if judged.quarantined is not None and judged.address is not None:
        own |= quarantine_metadata(rules, settings, verdict, judged.quarantined, judged.address)
    reasons = own.get(_names.INVALID_BY_RULES)
    report = report_metadata(rules, verdict, room, reasons, _earlier(judged))
    reports = [report]
    if together is not None:
        # It is of all partitions: the next run of one of them must not be compared with it.
        del report[_names.FAILURES_BY_RULE]
        reports += together.record_row_counts(judged.parts, rules, room)
    return fit_metadata(own, reports, room)


def _earlier(judged: Judged) -> dg.AssetMaterialization | None:
    """The last materialization of what this run is about to materialize; none outside of a run."""
    asset_key, surroundings = judged.declaration.asset_key, judged.surroundings
    context = current_run_context(asset_key)
    if context is None or surroundings.partition_range is not None:
        return None
    partition_key = surroundings.partition_key if is_partitioned(context, asset_key) else None
    record = latest_materialization(context.instance, asset_key, partition_key)
    return None if record is None else record.asset_materialization


@contextmanager
def _beside_the_manager(
    declaration: Declaration, own: Mapping[str, Any], copies: int
) -> Iterator[None]:
    """In a run, keep the column schema over the IO manager's, and the tables it records in bounds."""
    context, asset_key = current_run_context(declaration.asset_key), declaration.asset_key
    if context is None:
        yield
        return

    def fit(metadata: Mapping[str, Any]) -> dict[str, Any]:
        return fit_manager_metadata(metadata, declaration.rules, declaration.settings, copies)

    # An IO manager's own column schema, which has no constraints, would replace the one in a
    # `MaterializeResult`; nothing replaces what the context is told (1.13).
    column_schema = {_names.COLUMN_SCHEMA: own[_names.COLUMN_SCHEMA]}
    context.add_asset_metadata(column_schema, asset_key=asset_key)
    with rewriting_manager_metadata(context, asset_key, fit):
        yield
