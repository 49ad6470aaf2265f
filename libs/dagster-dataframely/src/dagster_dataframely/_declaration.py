"""What one asset declares, and what one run of it brings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dagster as dg

from dagster_dataframely._checks import CheckGroup, SeverityOf, group_rules, rule_check_results
from dagster_dataframely._handover import HandOver, choose_hand_over, takes_lists, to_data_frame
from dagster_dataframely._ranges import PartitionRange
from dagster_dataframely._rules import SchemaRules
from dagster_dataframely._settings import Settings
from dagster_dataframely._upstream import is_partitioned
from dagster_dataframely._validation import Verdict
from dagster_dataframely._writers import QuarantineWriter

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
