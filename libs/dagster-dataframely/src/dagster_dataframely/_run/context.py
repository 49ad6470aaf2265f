"""Gather what one run brings for an asset."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from dagster_dataframely._io_managers.output import (
    HandOver,
    choose_hand_over,
    reject_declared,
    takes_lists,
    to_data_frame,
)
from dagster_dataframely._quarantine.writers import QuarantineWriter, delegating_writer
from dagster_dataframely._run.direct_invocation import (
    DirectWriter,
    current_keys_by_output,
    partition_of_call,
)
from dagster_dataframely._run.partition_range import PartitionRange
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.read import build_expressions
from dagster_dataframely._typing import Log
from dagster_dataframely._upstream.steps import is_partitioned


@dataclass(frozen=True)
class RunContext:
    """What one run or direct invocation brings for one asset."""

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
    log: Log = lambda _message: None

    @classmethod
    def of_step(
        cls,
        step: dg.AssetExecutionContext,
        asset_key: dg.AssetKey,
        writer: QuarantineWriter | None,
        partition_key: str | None,
    ) -> "RunContext":
        """Gather what a step brings for one of its assets."""
        has_range = step.has_partition_key_range and is_partitioned(step, asset_key)
        return cls(
            writer=writer,
            partition_key=partition_key,
            hand_over=choose_hand_over(step, asset_key),
            lists=takes_lists(step, asset_key),
            run_id=step.run.run_id,
            partition_range=PartitionRange(step, asset_key) if has_range else None,
            log=step.log.info,
        )


@dataclass(frozen=True)
class Member:
    """One asset of a run: what it declares, and what the run brings for it."""

    declaration: Declaration
    run: RunContext

    def with_expressions(self) -> "Member":
        """The member with expressions of its rules that are built now."""
        rules = build_expressions(self.declaration.rules)
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
    key = declaration.asset_key
    reject_declared(step, key, declaration.rules)
    writer = delegating_writer(step, key) if quarantine else None
    has_partition = step.has_partition_key and is_partitioned(step, key)
    return RunContext.of_step(step, key, writer, step.partition_key if has_partition else None)
