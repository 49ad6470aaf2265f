"""Choose one of the seven exits, for one table or several, and yield its events in order."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from dagster_dataframely import _names
from dagster_dataframely._checks.descriptions import Fate
from dagster_dataframely._checks.results import column_schema_error, columns_check_result
from dagster_dataframely._quarantine.writers import ClearingWriter
from dagster_dataframely._run.context import Member
from dagster_dataframely._run.events import (
    AssetYield,
    materialize,
    record_quarantine,
    report_columns,
    report_rules,
    report_skip,
)
from dagster_dataframely._run.outcome import Outcome, look_at_storage, store_error_rows
from dagster_dataframely._run.return_value import Returned
from dagster_dataframely._run.summary import summarize
from dagster_dataframely._schema.collection import CollectionRules
from dagster_dataframely._upstream.steps import on_step_failure
from dagster_dataframely._validation.evaluate import evaluate_frame
from dagster_dataframely._validation.filters import apply_filters
from dagster_dataframely.errors import (
    NothingSurvivedError,
    TooManyErrorRowsError,
    ValidationAbortError,
)


def take_exit(
    members: Mapping[str, Member],
    results: Mapping[str, Returned],
    collection: CollectionRules | None = None,
) -> Iterator[AssetYield]:
    """Yield the events that follow from what a function returned, by member; one without skips.

    One table is one member, and has no collection. The error rows of all members are written before
    the exit is chosen, so that a run that fails keeps its evidence. Where one member must not be
    written, none is.
    """
    # After the function: a rule may compare its rows with the clock.
    schemas = {name: result.frame.collect_schema() for name, result in results.items()}
    members = {
        name: member.with_expressions(schemas.get(name, {})) for name, member in members.items()
    }
    skipped = [member for name, member in members.items() if name not in results]
    declared = {name: members[name].without_filters for name in results}
    checks = {name: columns_check_result(declared[name], schemas[name]) for name in results}
    drifted = [column_schema_error(declared[name], schemas[name]) for name in results]
    for error in filter(None, drifted):
        for name, check in checks.items():
            yield from report_columns(check, members[name].run)
        raise error
    # Staged rows have to be there until the IO managers have written them, after each `yield`.
    with ExitStack() as stack:
        on_step_failure(stack.close)
        verdicts = {
            name: stack.enter_context(
                evaluate_frame(
                    declared[name],
                    result.frame,
                    members[name].run.log,
                    members[name].run.sink_options,
                )
            )
            for name, result in results.items()
        }
        if collection is not None and verdicts:
            verdicts = apply_filters(collection, declared, verdicts)
        found = [
            Outcome(members[name].reporting(verdict.counts), results[name], checks[name], verdict)
            for name, verdict in verdicts.items()
        ]
        writes_table = not any(map(aborts, found))
        looked_at = [look_at_storage(outcome, writes_table=writes_table) for outcome in found]
        outcomes = [store_error_rows(outcome) for outcome in looked_at]
        errors = [error for error in map(find_error, outcomes) if error]
        for outcome in outcomes:
            if outcome.address is not None:
                record_quarantine(outcome)
            yield from abort(outcome) if errors else write_table(outcome)
        for member in skipped:
            yield from report_skip(member)
        if errors:
            raise errors[0]


def aborts(outcome: Outcome) -> bool:
    """Whether the table must not be written."""
    verdict, has_quarantine = outcome.verdict, outcome.run.writer is not None
    if verdict.failed(outcome.declaration.rules.table_error_rules):
        return True
    if has_quarantine and verdict.survivor_count:
        return has_too_many(outcome)
    return verdict.error_count > 0


def has_too_many(outcome: Outcome) -> bool:
    """Whether more rows are error rows than `max_error_share` allows."""
    verdict = outcome.verdict
    limit = outcome.declaration.settings.max_error_share
    return verdict.error_count > 0 and verdict.error_count / verdict.rows_in > limit


def find_error(
    outcome: Outcome,
) -> ValidationAbortError | NothingSurvivedError | TooManyErrorRowsError | None:
    """The reason why the table must not be written; `None` where it may."""
    if not aborts(outcome):
        return None
    verdict, address = outcome.verdict, outcome.address
    name, rules = outcome.declaration.asset_name, outcome.declaration.rules
    counts = verdict.failed(rules.error_rules)
    if address is not None and not verdict.survivor_count:
        return NothingSurvivedError(name, counts, rows=verdict.rows_in, address=address)
    if address is not None and has_too_many(outcome):
        return TooManyErrorRowsError(
            name,
            counts,
            error_rows=verdict.error_count,
            rows=verdict.rows_in,
            limit=outcome.declaration.settings.max_error_share,
            address=address,
        )
    return ValidationAbortError(
        name,
        counts,
        table_rules=tuple(verdict.failed(rules.table_error_rules)),
        error_rows=verdict.error_count,
        rows=verdict.rows_in,
        address=address,
    )


def write_table(outcome: Outcome) -> Iterator[AssetYield]:
    """Materialize the survivors, then report; a clean run clears the quarantine.

    It is cleared last: where the table cannot be written, the last one stays, with its error rows.
    """
    set_aside = outcome.address is not None
    yield from materialize(outcome)
    yield from report_rules(outcome, Fate.SET_ASIDE if set_aside else Fate.WRITTEN)
    writer = outcome.run.writer
    if not set_aside and isinstance(writer, ClearingWriter) and writer.clear(outcome.error_rows):
        record_quarantine(outcome)


def abort(outcome: Outcome) -> Iterator[AssetYield]:
    """Report the checks of a run that must not write the table, and where its error rows are."""
    outcome.run.log(summarize(outcome))
    if outcome.address is None:
        yield from report_rules(outcome, Fate.ABORTED)
    else:
        at = {_names.QUARANTINE_ADDRESS: outcome.address}
        yield from report_rules(outcome, Fate.HELD, at)
