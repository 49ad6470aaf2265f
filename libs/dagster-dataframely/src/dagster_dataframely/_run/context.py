"""Gather what one run brings for an asset."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely._io_managers.output import (
    HandOver,
    choose_hand_over,
    look_at_declared,
    takes_lists,
    to_data_frame,
)
from dagster_dataframely._quarantine.writers import (
    DelegatingWriter,
    QuarantineWriter,
    delegating_writer,
)
from dagster_dataframely._run.direct_invocation import (
    DirectWriter,
    current_keys_by_output,
    partition_of_call,
)
from dagster_dataframely._run.partition_range import PartitionRange
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.parsed import judge_parsed, without_passing
from dagster_dataframely._schema.read import build_expressions
from dagster_dataframely._typing import Log
from dagster_dataframely._upstream.io_managers import BoundManager, bound_manager
from dagster_dataframely._upstream.steps import is_partitioned
from dagster_dataframely._upstream.storages import sink_options
from dagster_dataframely._validation.staging import UNPUBLISHED


@dataclass(frozen=True)
class RunContext:
    """What one run or direct invocation brings for one asset."""

    writer: QuarantineWriter | None = None
    """Stores error rows; without one they abort."""
    partition_key: str | None = None
    hand_over: HandOver = to_data_frame
    """Turns the table's rows into what its IO manager takes."""
    hand_over_error_rows: HandOver = to_data_frame
    """Turns error rows into what theirs takes."""
    lists: bool = True
    """Whether the quarantine's storage has lists."""
    sink_options: Mapping[str, Any] = UNPUBLISHED
    """How the IO manager is going to ask for the table's file, where that is known."""
    run_id: str | None = None
    partition_range: PartitionRange | None = None
    """Of a run over several partitions."""
    bound: BoundManager | None = None
    """The IO manager of the table; none outside a run."""
    log: Log = lambda _message: None
    warn: Log = lambda _message: None

    @classmethod
    def of_step(
        cls,
        step: dg.AssetExecutionContext,
        declaration: Declaration,
        writer: QuarantineWriter | None,
        partition_key: str | None,
    ) -> "RunContext":
        """Gather what a step brings for one of its assets."""
        key, name = declaration.asset_key, declaration.asset_name
        unstorable, log = declaration.settings.unstorable, step.log.info
        bound = bound_manager(step, key)
        of_errors = writer.bound if isinstance(writer, DelegatingWriter) else bound
        has_range = step.has_partition_key_range and is_partitioned(step, key)
        return cls(
            writer=writer,
            partition_key=partition_key,
            hand_over=choose_hand_over(bound, name, unstorable, log),
            hand_over_error_rows=choose_hand_over(of_errors, name, unstorable, log),
            lists=takes_lists(of_errors),
            sink_options=sink_options(bound) or UNPUBLISHED,
            run_id=step.run.run_id,
            partition_range=PartitionRange(step, key) if has_range else None,
            bound=bound,
            log=log,
            warn=step.log.warning,
        )


@dataclass(frozen=True)
class Member:
    """One asset of a run: what it declares, and what the run brings for it."""

    declaration: Declaration
    run: RunContext

    def with_expressions(self, found: Mapping[str, pl.DataType]) -> "Member":
        """The member with expressions of its rules that are built now, for a frame's columns."""
        rules = judge_parsed(build_expressions(self.declaration.rules), found)
        return replace(self, declaration=replace(self.declaration, rules=rules))

    def reporting(self, counts: Mapping[str, int]) -> "Member":
        """The member without the rules on dtypes that no row fails."""
        rules = without_passing(self.declaration.rules, counts)
        return replace(self, declaration=replace(self.declaration, rules=rules))

    @property
    def without_filters(self) -> Declaration:
        """What is declared without a collection's filters, which need the other members."""
        return replace(self.declaration, rules=self.declaration.rules.without_filters)


def prepare_members(
    declarations: Mapping[str, Declaration],
    partitions_def: dg.PartitionsDefinition[Any] | None,
    step: dg.AssetExecutionContext | None,
    context: Any,
    *,
    quarantine: bool,
) -> dict[str, Member]:
    """Prepare a run of the assets that one function makes, by output; what cannot work raises here.

    Without a `step`, `context` is that of a direct invocation.
    """
    keys = current_keys_by_output(step)
    call_partition = None if step else partition_of_call(context, partitions_def)
    members = {}
    for output, declared in declarations.items():
        key = keys.get(output, declared.asset_key)
        declaration = replace(declared, asset_key=key)
        if step is None:
            run = RunContext(
                DirectWriter(key, call_partition) if quarantine else None, call_partition
            )
        else:
            run = _prepare_step(step, declaration, quarantine=quarantine)
        members[output] = Member(declaration, run)
    return members


def _prepare_step(
    step: dg.AssetExecutionContext, declaration: Declaration, *, quarantine: bool
) -> RunContext:
    key, settings = declaration.asset_key, declaration.settings
    writer = None
    if quarantine:
        writer = delegating_writer(step, key, io_manager_key=settings.quarantine_io_manager_key)
    has_partition = step.has_partition_key and is_partitioned(step, key)
    partition_key = step.partition_key if has_partition else None
    run = RunContext.of_step(step, declaration, writer, partition_key)
    for bound in [run.bound, writer.bound if writer else None]:
        if bound is not None:
            look_at_declared(bound, declaration, run.warn)
    return run
