"""Write the error rows of a verdict, before the exit is chosen."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dagster as dg

from dagster_dataframely._quarantine.frame import quarantine_frame
from dagster_dataframely._run.context import Member, RunContext
from dagster_dataframely._run.partition_range import Parts
from dagster_dataframely._run.return_value import Returned
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._text import printable
from dagster_dataframely._typing import Frame
from dagster_dataframely._validation.verdict import Verdict


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
        return self.run.hand_over(frame)


def store_error_rows(outcome: Outcome) -> Outcome:
    """Write the error rows, where there are any and something takes them."""
    verdict, run = outcome.verdict, outcome.run
    if not verdict.error_count or run.writer is None:
        return outcome
    address = run.writer(outcome.error_rows)
    run.log(f"Error rows written to {printable(address)}: {verdict.error_count:,}.")
    return replace(outcome, quarantined=outcome.error_rows, address=address)
