"""Write the error rows of a verdict, before the exit is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._io_managers.stored import look_at_table
from dagster_dataframely._quarantine.frame import quarantine_frame
from dagster_dataframely._quarantine.writers import DelegatingWriter
from dagster_dataframely._run.context import Member, RunContext
from dagster_dataframely._run.partition_range import Parts
from dagster_dataframely._run.replacement import replacing_in_one_step
from dagster_dataframely._run.return_value import Returned
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.table_schema import table_schema
from dagster_dataframely._text import printable
from dagster_dataframely._typing import Frame
from dagster_dataframely._upstream.steps import latest_materialization
from dagster_dataframely._upstream.storages import storage_of
from dagster_dataframely._validation.verdict import StagedFile, Verdict
from dagster_dataframely.errors import StoredTableError


@dataclass(frozen=True)
class Outcome:
    """A verdict whose error rows are stored, and what it is about."""

    member: Member
    result: Returned
    columns_check: dg.AssetCheckResult
    verdict: Verdict[Any]
    quarantined: Frame | None = None
    address: str | None = None
    """Where the error rows are; `None` where nothing was written."""
    table_columns: Sequence[str] = ()
    """The order of the stored table's columns, where it keeps them; else the schema's is written."""

    @property
    def declaration(self) -> Declaration:
        """What the asset declares."""
        return self.member.declaration

    @property
    def run(self) -> RunContext:
        """What the run brings."""
        return self.member.run

    @cached_property
    def parts(self) -> Parts:
        """The verdict on each partition of a run over several."""
        partition_range = self.run.partition_range
        if partition_range is None:
            return []
        return partition_range.parts(self.verdict, self.declaration.rules)

    @property
    def table(self) -> Frame:
        """The surviving rows as the IO manager takes them."""
        survivors: Frame = self.verdict.survivors
        if self.table_columns:
            return in_one_step(self, self.run.hand_over(survivors.select(self.table_columns)))
        return in_one_step(self, self.run.hand_over(survivors), self.verdict.staged_file)

    @cached_property
    def error_rows(self) -> Frame:
        """The error rows as the quarantine's layout has them and its IO manager takes them."""
        frame: Frame = quarantine_frame(
            self.verdict.error_rows,
            self.declaration.rules,
            self.declaration.settings.quarantine_layout,
            run_id=self.run.run_id,
            lists=self.run.lists,
        )
        return in_one_step(self, self.run.hand_over_error_rows(frame))


def in_one_step(outcome: Outcome, frame: Frame, staged: StagedFile | None = None) -> Frame:
    """Return a lazy frame as one that replaces a local file in one step."""
    if isinstance(frame, pl.DataFrame):
        return frame
    temp_dir = outcome.declaration.settings.temp_dir
    return replacing_in_one_step(frame, staged, temp_dir, outcome.run.log)


def look_at_storage(outcome: Outcome, *, writes_table: bool) -> Outcome:
    """Look at what a run is about to replace, before the first write of all its assets.

    The table is looked at where it is going to be written; its columns are put in the stored order.

    Raises:
        StoredTableError: The stored table would misplace, change or drop values.
    """
    declaration, run = outcome.declaration, outcome.run
    if isinstance(run.writer, DelegatingWriter):
        found = outcome.error_rows.collect_schema()
        run.writer.look(found, writes=outcome.verdict.error_count > 0)
    if run.bound is None or not writes_table:
        return outcome
    found = outcome.verdict.survivors.collect_schema()
    table = None if _is_known(outcome) else look_at_table(run.bound, found, run.warn)
    if table is None:
        return outcome
    if table.differences:
        name = declaration.asset_name
        raise StoredTableError(name, table.table, table.differences, table.way_out)
    return replace(outcome, table_columns=list(table.dtypes))


def _is_known(outcome: Outcome) -> bool:
    """Whether an unknown manager wrote the last table with the same columns, so need not load it."""
    bound, declaration = outcome.run.bound, outcome.declaration
    if bound is None or storage_of(bound) not in ("a database", "unknown"):
        return False
    record = latest_materialization(bound.step.instance, declaration.asset_key, None)
    if record is None or record.asset_materialization is None:
        return False
    said = record.asset_materialization.metadata.get(_names.COLUMN_SCHEMA)
    known = said.value.columns if isinstance(said, dg.TableSchemaMetadataValue) else []
    declared = table_schema(declaration.rules).columns
    return [(c.name, c.type) for c in known] == [(c.name, c.type) for c in declared]


def store_error_rows(outcome: Outcome) -> Outcome:
    """Write the error rows, where there are any and something takes them."""
    verdict, run = outcome.verdict, outcome.run
    if not verdict.error_count or run.writer is None:
        return outcome
    address = run.writer(outcome.error_rows)
    run.log(f"Error rows written to {printable(address)}: {verdict.error_count:,}.")
    return replace(outcome, quarantined=outcome.error_rows, address=address)
