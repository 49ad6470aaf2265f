"""Turn an outcome into Dagster's events: the materialization and a result for every check."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import dagster as dg

from dagster_dataframely import _names
from dagster_dataframely._checks.descriptions import Fate
from dagster_dataframely._checks.lost_values import add_lost_values, count_lost_values
from dagster_dataframely._checks.results import (
    columns_check_result,
    rule_check_results,
)
from dagster_dataframely._metadata.budget import fit_tables, share
from dagster_dataframely._metadata.materialization import (
    fit_manager_metadata,
    invalid_metadata,
    report_metadata,
    valid_metadata,
)
from dagster_dataframely._quarantine.writers import DelegatingWriter
from dagster_dataframely._run.context import Member, RunContext
from dagster_dataframely._run.outcome import Outcome
from dagster_dataframely._run.summary import summarize
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._text import count, cut, printable
from dagster_dataframely._upstream.io_managers import rewriting_manager_metadata
from dagster_dataframely._upstream.steps import (
    current_run_context,
    is_partitioned,
    latest_materialization,
)
from dagster_dataframely._validation.verdict import Verdict

_MAX_LISTED = 500
"""Characters of a list of partitions in the log."""

AssetYield = dg.MaterializeResult[Any] | dg.AssetCheckResult


def report_skip(member: Member) -> Iterator[dg.AssetCheckResult]:
    """Pass every check, over no rows: the run has no table."""

    def results(_verdict: None) -> Iterator[dg.AssetCheckResult]:
        yield columns_check_result(member.declaration, None)
        yield from rule_check_results(member.declaration, None)

    yield from results(None)
    if (partition_range := member.run.partition_range) is not None:
        partition_range.record_evaluations(partition_range.undivided, results)


def report_columns(
    columns_check: dg.AssetCheckResult, run: RunContext
) -> Iterator[dg.AssetCheckResult]:
    """Report the only check of a frame on whose rows there is no verdict."""
    yield columns_check
    if (partition_range := run.partition_range) is not None:
        partition_range.record_evaluations(partition_range.undivided, lambda _: [columns_check])


def report_rules(
    outcome: Outcome, fate: Fate, metadata: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[dg.AssetCheckResult]:
    """Report every check, with this metadata added.

    In a run over several partitions, also an evaluation for each of them.
    """
    columns_check = outcome.columns_check
    lost = {**count_lost_values(outcome.declaration, outcome.verdict), **metadata}

    def results(verdict: Verdict[Any]) -> Iterator[dg.AssetCheckResult]:
        yield add_lost_values(columns_check, outcome.declaration, verdict, fate, lost)
        yield from rule_check_results(outcome.declaration, verdict, fate, metadata)

    yield from results(outcome.verdict)
    if (partition_range := outcome.run.partition_range) is not None:
        partition_range.record_evaluations(outcome.parts, results)


def record_quarantine(outcome: Outcome) -> None:
    """Record that error rows were written, or cleared, as a materialization of the quarantine."""
    declaration, writer = outcome.declaration, outcome.run.writer
    if not declaration.settings.quarantine_events or not isinstance(writer, DelegatingWriter):
        return
    said = fit_manager_metadata(writer.logged, declaration.rules, declaration.settings, 1)
    whole: list[tuple[str | None, Verdict[Any]]] = [(outcome.run.partition_key, outcome.verdict)]
    parts = outcome.parts or whole
    for partition, verdict in parts:
        counts = {_names.ROW_COUNT: verdict.error_count}
        if partition is not None:
            counts[_names.PARTITION_ROW_COUNT] = verdict.error_count
        metadata = {**said, **counts, _names.QUARANTINE_OF: declaration.asset_key}
        writer.context.log_event(
            dg.AssetMaterialization(writer.key, partition=partition, metadata=metadata)
        )


def materialize(outcome: Outcome) -> Iterator[dg.MaterializeResult[Any]]:
    """Goes before the check results: Dagster ties each to the latest materialization (1.13)."""
    declaration, result, run = outcome.declaration, outcome.result, outcome.run
    partition_range = run.partition_range
    # Dagster stores it with the output too, and for each of several partitions (1.13).
    copies = 2 if partition_range is None else 1 + len(partition_range.keys)
    own = _recorded(outcome, copies)
    start = time.monotonic()
    with _beside_the_manager(declaration, own, copies):
        yield dg.MaterializeResult(
            asset_key=declaration.asset_key,
            value=outcome.table,
            metadata={**result.metadata, **own},
            tags=result.tags,
            data_version=result.data_version,
        )
    # Dagster comes back for the next event when the IO manager has written.
    run.log(summarize(outcome, seconds=time.monotonic() - start))


def _recorded(outcome: Outcome, copies: int) -> dict[str, Any]:
    """Build the metadata that Dagster stores this many times; record that of single partitions."""
    rules, settings, verdict = (
        outcome.declaration.rules,
        outcome.declaration.settings,
        outcome.verdict,
    )
    partition_range = outcome.run.partition_range
    partitioned = outcome.run.partition_key is not None
    own = valid_metadata(rules, settings, verdict, partitioned=partitioned)
    if outcome.quarantined is not None and outcome.address is not None:
        own |= invalid_metadata(rules, settings, verdict, outcome.quarantined, outcome.address)
    combinations = own.get(_names.INVALID_BY_RULES)
    if empty := [key for key, part in outcome.parts if not part.rows_in]:
        listed = cut(", ".join(map(printable, empty)), _MAX_LISTED)
        outcome.run.warn(f"No rows for {count(len(empty), 'partition')} of the range: {listed}.")
    report = report_metadata(
        rules, settings, verdict, copies, combinations, _earlier(outcome), empty
    )
    if partition_range is not None:
        # It is of all partitions: the next run of one of them must not be compared with it.
        del report[_names.FAILURES_BY_RULE]
        partition_range.record_row_counts(outcome.parts, rules, settings, copies)
    return {**report, **fit_tables(own, share(settings, "tables", copies))}


def _earlier(outcome: Outcome) -> dg.AssetMaterialization | None:
    """The last materialization of what this run is about to materialize; none outside a run."""
    asset_key, run = outcome.declaration.asset_key, outcome.run
    context = current_run_context(asset_key)
    if context is None or run.partition_range is not None:
        return None
    partition_key = run.partition_key if is_partitioned(context, asset_key) else None
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
