"""The order of events in one run: the policy of the six exits, and nothing else."""

from collections.abc import Iterator

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._declaration import AssetYield, Declaration, Surroundings
from dagster_dataframely._judging import (
    Judged,
    check_columns,
    column_schema_error,
    judge,
    quarantined_rows,
    verdict_of,
)
from dagster_dataframely._reporting import (
    always_warn,
    materialize,
    own_severity,
    report_columns,
    report_rules,
    report_skip,
)
from dagster_dataframely._returned import unpack
from dagster_dataframely._writers import ClearingWriter
from dagster_dataframely.errors import NothingSurvivedError, ValidationAbortError


def process(
    declaration: Declaration, returned: object, surroundings: Surroundings
) -> Iterator[AssetYield]:
    """Turn what the function returned into events: one of the six exits.

    Error rows are written before the outcome is chosen, so that a run that fails keeps its evidence.
    """
    result = unpack(declaration.asset_name, returned)
    if result is None:
        yield from report_skip(declaration, surroundings)
        return
    columns_check = check_columns(declaration, result.frame)
    if not columns_check.passed:
        yield from report_columns(columns_check, surroundings)
        raise column_schema_error(declaration, result.frame)
    # Staged rows have to be there until the IO manager has written them, after the `yield`.
    with verdict_of(declaration, result.frame, surroundings) as verdict:
        judged = judge(declaration, result, columns_check, verdict, surroundings)
        error = find_error(judged)
        yield from refuse(judged) if error else accept(judged)
        if error:
            raise error


def find_error(judged: Judged) -> ValidationAbortError | NothingSurvivedError | None:
    """Why the table must not be written; `None` where it may."""
    verdict, address = judged.verdict, judged.address
    name, rules = judged.declaration.asset_name, judged.declaration.rules
    table_rules = tuple(verdict.failed(rules.table_error_rules))
    set_aside = address is not None and verdict.survivor_count > 0
    if not table_rules and (set_aside or not verdict.error_count):
        return None
    counts = verdict.failed(rules.error_rules)
    if address is not None and not verdict.survivor_count:
        return NothingSurvivedError(name, counts, rows=verdict.rows_in, address=address)
    return ValidationAbortError(
        name,
        counts,
        table_rules=table_rules,
        error_rows=verdict.error_count,
        rows=verdict.rows_in,
        address=address,
    )


def accept(judged: Judged) -> Iterator[AssetYield]:
    """The exits that write the table."""
    set_aside = judged.address is not None
    yield from materialize(judged)
    yield from report_rules(judged, always_warn if set_aside else own_severity)
    if not set_aside:
        _clear(judged)


def _clear(judged: Judged) -> None:
    """Take away the error rows of the table that this run has just replaced.

    Not earlier: where the table cannot be written, the last one stays, and its error rows with it.
    """
    surroundings = judged.surroundings
    if isinstance(surroundings.writer, ClearingWriter):
        rows = quarantined_rows(judged.declaration, judged.verdict, surroundings)
        surroundings.writer.clear(rows)


def refuse(judged: Judged) -> Iterator[AssetYield]:
    """The checks of a run that must not write the table; they say where its error rows are."""
    at = {}
    if judged.address is not None:
        at = {_names.QUARANTINE_ADDRESS: dg.MetadataValue.text(judged.address)}
    yield from report_rules(judged, own_severity, at)


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
