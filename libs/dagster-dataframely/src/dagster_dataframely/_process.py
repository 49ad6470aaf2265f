"""The order of events in one run: the policy of the six exits, and nothing else."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._checks import (
    CheckGroup,
    SeverityOf,
    columns_check_result,
    group_rules,
    rule_check_results,
)
from dagster_dataframely._handover import (
    HandOver,
    choose_hand_over,
    takes_lists,
    to_data_frame,
)
from dagster_dataframely._materialization import (
    fit_manager_metadata,
    fit_metadata,
    materialization_metadata,
    quarantine_metadata,
    report_metadata,
    room_for,
)
from dagster_dataframely._quarantine import quarantine_frame
from dagster_dataframely._ranges import PartitionRange
from dagster_dataframely._returned import Returned, unpack
from dagster_dataframely._rules import Rule, SchemaRules
from dagster_dataframely._settings import Engine, Settings
from dagster_dataframely._staging import stage_rows, staging_folder
from dagster_dataframely._storage import refuse_unstorable
from dagster_dataframely._streaming import evaluate_plan
from dagster_dataframely._upstream import current_run_context, rewriting_manager_metadata
from dagster_dataframely._validation import Verdict, evaluate, in_one_chunk
from dagster_dataframely._writers import ClearingWriter, QuarantineWriter
from dagster_dataframely.errors import (
    ColumnSchemaError,
    NothingSurvivedError,
    ValidationAbortError,
)

AssetYield = dg.MaterializeResult[Any] | dg.AssetCheckResult


@dataclass(frozen=True)
class Declaration:
    """What one asset declares, fixed when it is defined."""

    asset_key: dg.AssetKey
    rules: SchemaRules
    settings: Settings

    @cached_property
    def groups(self) -> tuple[CheckGroup, ...]:
        """The rules as checks."""
        return group_rules(self.rules, self.settings)

    @property
    def asset_name(self) -> str:
        """The key as a user writes it."""
        return self.asset_key.to_user_string()

    def rule_checks(
        self,
        verdict: Verdict[Any] | None,
        severity_of: SeverityOf,
        metadata: Mapping[str, Any] | None = None,
    ) -> Iterator[dg.AssetCheckResult]:
        """A result for every rule check."""
        return rule_check_results(
            self.groups,
            self.asset_key,
            self.rules,
            self.settings,
            verdict,
            severity_of,
            metadata or {},
        )


@dataclass(frozen=True)
class Surroundings:
    """What one run or direct invocation brings."""

    writer: QuarantineWriter | None = None
    """Stores error rows; without one they abort."""
    partition_key: str | None = None
    hand_over: HandOver = to_data_frame
    """Turns rows into what the IO manager takes."""
    lists: bool = True
    """Whether the IO manager's storage has lists."""
    run_id: str | None = None
    partition_range: PartitionRange | None = None
    """Of a run over several partitions."""
    log: Callable[[str], None] = lambda _message: None
    """Says how far a long run has come."""

    @classmethod
    def of_step(
        cls,
        step: dg.AssetExecutionContext,
        asset_key: dg.AssetKey,
        writer: QuarantineWriter | None,
        partition_key: str | None,
    ) -> "Surroundings":
        """What a run brings for one of the assets of its step."""
        return cls(
            writer=writer,
            partition_key=partition_key,
            hand_over=choose_hand_over(step, asset_key),
            lists=takes_lists(step, asset_key),
            run_id=step.run.run_id,
            partition_range=PartitionRange(step, asset_key)
            if step.has_partition_key_range
            else None,
            log=step.log.info,
        )


def process(
    declaration: Declaration, returned: object, surroundings: Surroundings
) -> Iterator[AssetYield]:
    """Turn what the function returned into events: one of the six exits.

    Error rows are written before the outcome is chosen, so that a run that fails keeps its evidence.
    """
    result = unpack(declaration.asset_name, returned)
    if result is None:
        yield from skip(declaration, surroundings)
        return
    columns_check = check_columns(declaration, result.frame)
    if not columns_check.passed:
        yield from report_columns(columns_check, surroundings)
        raise column_schema_error(declaration, result.frame)
    # Staged rows have to be there until the IO manager has written them, after the `yield`.
    with verdict_of(declaration, result.frame, surroundings) as verdict:
        judged = judge(declaration, result, columns_check, verdict, surroundings)
        if judged.error is None:
            yield from accept(judged)
        else:
            yield from refuse(judged)
            raise judged.error


def skip(declaration: Declaration, surroundings: Surroundings) -> Iterator[AssetYield]:
    """The exit of a run that has no table: every check passes, over no rows."""
    passed = columns_check_result(declaration.asset_key, [], [], declaration.settings)
    yield from _report(declaration, passed, None, surroundings, own_severity)


def report_columns(
    columns_check: dg.AssetCheckResult, surroundings: Surroundings
) -> Iterator[AssetYield]:
    """The only check of a frame on whose rows there is no verdict."""
    yield columns_check
    if (together := surroundings.partition_range) is not None:
        together.record_evaluations(together.undivided, lambda _: [columns_check])


@dataclass(frozen=True)
class Judged:
    """A verdict whose error rows are stored, and the exit that it leads to."""

    declaration: Declaration
    result: Returned
    columns_check: dg.AssetCheckResult
    verdict: Verdict[Any]
    surroundings: Surroundings
    quarantined: pl.DataFrame | pl.LazyFrame | None = None
    address: str | None = None
    """Where the error rows are; `None` where nothing was written."""

    @property
    def error(self) -> ValidationAbortError | NothingSurvivedError | None:
        """Why the table must not be written; `None` where it may."""
        verdict, rules = self.verdict, self.declaration.rules
        set_aside = self.address is not None and verdict.survivor_count > 0
        rejected = verdict.failed(rules.table_error_rules)
        if not rejected and (set_aside or not verdict.error_count):
            return None
        return _abort(self.declaration, verdict, self.address)


def judge(
    declaration: Declaration,
    result: Returned,
    columns_check: dg.AssetCheckResult,
    verdict: Verdict[Any],
    surroundings: Surroundings,
) -> Judged:
    """Write the error rows, where there are any and something takes them."""
    judged = Judged(declaration, result, columns_check, verdict, surroundings)
    if not verdict.error_count or surroundings.writer is None:
        return judged
    quarantined = _quarantined(declaration, verdict, surroundings)
    address = surroundings.writer(quarantined)
    surroundings.log(f"Error rows written to {address}: {verdict.error_count:,}.")
    return replace(judged, quarantined=quarantined, address=address)


def accept(judged: Judged) -> Iterator[AssetYield]:
    """The exits that write the table."""
    declaration, verdict = judged.declaration, judged.verdict
    surroundings = judged.surroundings
    metadata: Mapping[str, Any] = {}
    if judged.quarantined is not None and judged.address is not None:
        metadata = quarantine_metadata(
            declaration.rules, declaration.settings, verdict, judged.quarantined, judged.address
        )
    yield from _materialize(judged, metadata)
    severity_of = always_warn if metadata else own_severity
    yield from _report(declaration, judged.columns_check, verdict, surroundings, severity_of)
    if not metadata:
        _clear(declaration, verdict, surroundings)


def refuse(judged: Judged) -> Iterator[AssetYield]:
    """The checks of a run that must not write the table."""
    at = {}
    if judged.address is not None:
        at = {_names.QUARANTINE_ADDRESS: dg.MetadataValue.text(judged.address)}
    yield from _report(
        judged.declaration,
        judged.columns_check,
        judged.verdict,
        judged.surroundings,
        own_severity,
        at,
    )


def evaluate_checks(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame
) -> Iterator[dg.AssetCheckResult]:
    """Report on a frame without a policy; only another column schema raises."""
    columns_check = check_columns(declaration, frame)
    yield columns_check
    if not columns_check.passed:
        raise column_schema_error(declaration, frame)
    with verdict_of(declaration, frame, Surroundings()) as verdict:
        yield from declaration.rule_checks(verdict, own_severity)


@contextmanager
def verdict_of(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame, surroundings: Surroundings
) -> Iterator[Verdict[Any]]:
    """Evaluate the rules where the engine says.

    A lazy plan runs once, into a file, since it may not give the same rows twice.
    """
    rules, settings = declaration.rules, declaration.settings
    sample, log = settings.max_failure_samples, surroundings.log
    streams = settings.engine is Engine.STREAMING
    if isinstance(frame, pl.DataFrame) and not streams:
        yield evaluate(frame, rules, sample=sample)
        return
    plan = in_one_chunk(frame).lazy() if isinstance(frame, pl.DataFrame) else frame
    staged = plan.select(rules.column_names)
    refuse_unstorable(declaration.asset_name, "a staging file", staged.collect_schema())
    with staging_folder(settings.temp_dir) as folder:
        if streams or settings.engine is Engine.AUTO:
            yield evaluate_plan(staged, rules, folder, sample=sample, log=log)
        else:
            rows = stage_rows(staged, folder, log)
            yield evaluate(rows.collect(), rules, sample=sample)


def _report(
    declaration: Declaration,
    columns_check: dg.AssetCheckResult,
    verdict: Verdict[Any] | None,
    surroundings: Surroundings,
    severity_of: SeverityOf,
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[dg.AssetCheckResult]:
    """A result for every check, with this metadata added.

    In a run over several partitions, also an evaluation for each of them.
    """

    def results(found: Verdict[Any] | None) -> Iterator[dg.AssetCheckResult]:
        yield columns_check._replace(metadata={**columns_check.metadata, **metadata})
        yield from declaration.rule_checks(found, severity_of, metadata)

    yield from results(verdict)
    if (together := surroundings.partition_range) is not None:
        together.record_evaluations(together.split(verdict, declaration.rules), results)


def _quarantined(
    declaration: Declaration, verdict: Verdict[Any], surroundings: Surroundings
) -> pl.DataFrame | pl.LazyFrame:
    frame: pl.DataFrame | pl.LazyFrame = quarantine_frame(
        verdict.error_rows,
        declaration.rules,
        declaration.settings.quarantine_layout,
        run_id=surroundings.run_id,
        lists=surroundings.lists,
    )
    return surroundings.hand_over(frame)


def _clear(declaration: Declaration, verdict: Verdict[Any], surroundings: Surroundings) -> None:
    """Take away the error rows of the table that this run has just replaced.

    Not earlier: where the table cannot be written, the last one stays, and its error rows with it.
    """
    if isinstance(surroundings.writer, ClearingWriter):
        surroundings.writer.clear(_quarantined(declaration, verdict, surroundings))


def _materialize(
    judged: Judged, metadata: Mapping[str, Any]
) -> Iterator[dg.MaterializeResult[Any]]:
    """Goes before the check results: Dagster ties each to the latest materialization (1.13)."""
    declaration, result = judged.declaration, judged.result
    verdict, surroundings = judged.verdict, judged.surroundings
    together = surroundings.partition_range
    # Dagster stores it with the output too, and for each of several partitions (1.13).
    copies = 2 if together is None else 1 + len(together.keys)
    own = _recorded(judged, metadata, room_for(declaration.settings, copies))
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


def _recorded(judged: Judged, metadata: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The metadata of the materialization in so many bytes; that of single partitions is recorded."""
    declaration, surroundings = judged.declaration, judged.surroundings
    rules, verdict = declaration.rules, judged.verdict
    together, partitioned = surroundings.partition_range, surroundings.partition_key is not None
    own = materialization_metadata(rules, declaration.settings, verdict, partitioned=partitioned)
    reasons = metadata.get(_names.INVALID_BY_RULES)
    report = report_metadata(rules, verdict, room, reasons, _earlier(judged))
    reports = [report]
    if together is not None:
        # It is of all partitions: the next run of one of them must not be compared with it.
        del report[_names.FAILURES_BY_RULE]
        reports += together.record_row_counts(verdict, rules, room)
    return fit_metadata({**own, **metadata}, reports, room)


def _earlier(judged: Judged) -> dg.AssetMaterialization | None:
    """The last materialization of what this run is about to materialize; none outside of a run."""
    asset_key, surroundings = judged.declaration.asset_key, judged.surroundings
    context = current_run_context(asset_key)
    if context is None or surroundings.partition_range is not None:
        return None
    partitions = None
    if surroundings.partition_key is not None and context.assets_def.partitions_def is not None:
        partitions = [surroundings.partition_key]
    wanted = dg.AssetRecordsFilter(asset_key, asset_partitions=partitions)
    records = context.instance.fetch_materializations(wanted, limit=1).records
    return records[0].asset_materialization if records else None


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


def _abort(
    declaration: Declaration, verdict: Verdict[Any], address: str | None = None
) -> ValidationAbortError | NothingSurvivedError:
    """The error of a run that must not write its table; `address` is where the error rows are."""
    name, rules = declaration.asset_name, declaration.rules
    counts = verdict.failed(rules.error_rules)
    if address is not None and not verdict.survivor_count:
        return NothingSurvivedError(name, counts, rows=verdict.rows_in, address=address)
    return ValidationAbortError(
        name,
        counts,
        table_rules=tuple(verdict.failed(rules.table_error_rules)),
        error_rows=verdict.error_count,
        rows=verdict.rows_in,
        address=address,
    )


def own_severity(rule: Rule) -> dg.AssetCheckSeverity:
    """The severity the rule is declared with."""
    return dg.AssetCheckSeverity.ERROR if rule.severity == "error" else dg.AssetCheckSeverity.WARN


def always_warn(_rule: Rule) -> dg.AssetCheckSeverity:
    """For a run that set its error rows aside and went on."""
    return dg.AssetCheckSeverity.WARN


def check_columns(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame
) -> dg.AssetCheckResult:
    """The column-schema check; reads only the frame's schema, so a lazy plan does not run."""
    found = frame.collect_schema()
    return columns_check_result(
        declaration.asset_key,
        declaration.rules.mismatches(found),
        [name for name in found if name not in declaration.rules.columns],
        declaration.settings,
    )


def column_schema_error(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame, *, stored: bool = False
) -> ColumnSchemaError:
    """What a column-schema check that fails raises; `stored` where no function returned the frame."""
    found = frame.collect_schema()
    return ColumnSchemaError(
        declaration.asset_name,
        declaration.rules.name,
        declaration.rules.mismatches(found),
        castable=declaration.rules.is_castable(found),
        stored=stored,
    )
