"""The main job: every table from the raw drops, and what has to come of it."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import dagster as dg

from warehouse.definitions import defs
from warehouse.partitions import MONTH_AND_ORIGIN


@dataclass(frozen=True)
class PlannedRun:
    """One run: one table, one cell of it, or its checks alone."""

    asset: str
    partition: str | None = None
    job: str | None = None
    """A job of the code location; without one, the asset is materialized with all of its checks."""
    config: Mapping[str, str] = field(default_factory=dict)
    aborts: bool = False
    """Whether the data has to fail the run."""

    @property
    def part(self) -> str:
        """What of the asset the run is about, in a word; empty where it is all of it."""
        return self.partition or next(iter(self.config.values()), "")


@dataclass(frozen=True)
class AssetRun:
    """What a run recorded."""

    asset: str
    part: str
    seconds: float
    rows_written: int | None
    """`None` where nothing was written."""
    rows_quarantined: int = 0
    failed_checks: tuple[str, ...] = ()
    failed_rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows failed a check of one rule or filter, where it looks at the whole table."""
    error: str | None = None
    """The class of the error that failed the run."""

    @property
    def skipped(self) -> bool:
        return self.rows_written is None and self.error is None and self.part != CHECKS_ALONE


@dataclass(frozen=True)
class Totals:
    """What came of all runs of an asset."""

    rows_written: int
    rows_quarantined: int = 0
    failed_checks: Mapping[str, int] = field(default_factory=dict)
    """The number of runs in which a check failed, by the check's name."""
    failed_rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows failed a check of one rule or filter, where it looks at the whole table."""
    skipped_partitions: int = 0
    errors: tuple[str, ...] = ()
    """The classes of the errors that failed a run."""


CHECKS_ALONE = "checks"

EXPECTED: Mapping[str, Totals] = {
    "airlines": Totals(rows_written=16),
    "airports": Totals(
        rows_written=1_458,
        failed_checks={"dy_rule__lat__max": 1, "dy_rule__tz__max": 1},
        failed_rows={"dy_rule__lat__max": 1, "dy_rule__tz__max": 2},
    ),
    "planes": Totals(rows_written=3_322),
    "flights": Totals(
        rows_written=336_597,
        rows_quarantined=179,
        failed_checks={
            "dy_filter__dest_is_known": 1,
            "dy_filter__plane_is_known": 1,
            "dy_schema__rules": 35,
        },
        # Of all flights it is 52,606 and 7,602: 12 and 24 of them are in the quarantine.
        failed_rows={
            "dy_filter__plane_is_known": 52_594,
            "dy_filter__dest_is_known": 7_578,
        },
        skipped_partitions=6,
    ),
    "weather": Totals(
        rows_written=26_108,
        rows_quarantined=7,
        failed_checks={
            "dy_rule__primary_key": 1,
            "dy_rule__wind_speed__max": 1,
            "every_hour": 1,
        },
        failed_rows={"dy_rule__primary_key": 6, "dy_rule__wind_speed__max": 1},
    ),
    "departures": Totals(
        rows_written=336_597,
        failed_checks={"dy_rule__plane_is_known": 1},
        failed_rows={"dy_rule__plane_is_known": 52_594},
    ),
    "route_delays": Totals(rows_written=439),
    "laguardia_routes": Totals(rows_written=68),
    "carrier_months": Totals(rows_written=399, skipped_partitions=2),
    "carrier_totals": Totals(rows_written=16),
    "carrier_ranking": Totals(rows_written=16),
    "usual_cancellations": Totals(
        rows_written=3,
        failed_checks={"dy_rule__share__max": 1},
        failed_rows={"dy_rule__share__max": 3},
        errors=("ValidationAbortError",),
    ),
    "quarantine_triage": Totals(rows_written=4),
}

# What is not one run for each partition.
_SPECIAL: Mapping[str, list[PlannedRun]] = {
    # The blizzard of February is no base for a plan: January's table has to stay.
    "usual_cancellations": [
        PlannedRun("usual_cancellations", config={"month": "2013-01"}),
        PlannedRun("usual_cancellations", config={"month": "2013-02"}, aborts=True),
    ],
    "flights": [
        PlannedRun("flights", cell, job="flights_cell")
        for cell in MONTH_AND_ORIGIN.get_partition_keys()
    ],
    # The last of the tables that flights refer to.
    "planes": [PlannedRun("planes"), PlannedRun("flights", job="flight_references")],
}


def planned_runs() -> list[PlannedRun]:
    """Every asset, upstream first, with every one of its partitions."""
    graph = defs().resolve_asset_graph()
    return [
        run
        for key in graph.toposorted_asset_keys
        if key in graph.materializable_asset_keys
        for run in _runs_of(key.to_user_string(), graph.get(key).partitions_def)
    ]


def _runs_of(asset: str, partitions_def: dg.PartitionsDefinition[str] | None) -> list[PlannedRun]:
    if asset in _SPECIAL:
        return _SPECIAL[asset]
    if partitions_def is None:
        return [PlannedRun(asset)]
    return [PlannedRun(asset, partition) for partition in partitions_def.get_partition_keys()]


def run_all(instance: dg.DagsterInstance) -> Iterator[AssetRun]:
    """Do every planned run, one after the other, and read each run's events back.

    In one process: most of the time goes into writing events to SQLite, where a second process mostly
    waits for the first.
    """
    definitions = defs()
    everything = definitions.resolve_implicit_global_asset_job_def()
    for planned in planned_runs():
        start = time.perf_counter()
        ops = {planned.asset: {"config": dict(planned.config)}} if planned.config else {}
        level = "CRITICAL" if planned.aborts else "ERROR"
        result = (
            definitions.resolve_job_def(planned.job) if planned.job else everything
        ).execute_in_process(
            instance=instance,
            asset_selection=None if planned.job else [dg.AssetKey(planned.asset)],
            partition_key=planned.partition,
            run_config={"ops": ops, "loggers": {"console": {"config": {"log_level": level}}}},
            raise_on_error=False,
        )
        yield read_run(instance, result.run_id, planned, time.perf_counter() - start)


def read_run(
    instance: dg.DagsterInstance, run_id: str, planned: PlannedRun, seconds: float
) -> AssetRun:
    """Read what the instance recorded of one asset in a run."""
    asset_key = dg.AssetKey(planned.asset)
    entries = instance.all_logs(
        run_id,
        of_type={
            dg.DagsterEventType.ASSET_MATERIALIZATION,
            dg.DagsterEventType.ASSET_CHECK_EVALUATION,
            dg.DagsterEventType.STEP_FAILURE,
        },
    )
    rows_written, rows_quarantined, error = None, 0, None
    failed_checks: dict[str, int] = {}
    for event in (entry.get_dagster_event() for entry in entries):
        match event.event_type:
            case dg.DagsterEventType.ASSET_MATERIALIZATION if event.asset_key == asset_key:
                metadata = event.step_materialization_data.materialization.metadata
                rows_written = _number(metadata, "dagster/row_count")
                rows_quarantined = _number(metadata, "dataframely/error_rows")
            case dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                check = event.asset_check_evaluation_data
                if check.asset_key == asset_key and not check.passed:
                    # One run can evaluate a check for many partitions, then for all of them.
                    rows = 0 if check.partition else _number(check.metadata, "dy_failed_count")
                    failed_checks[check.check_name] = rows
            case dg.DagsterEventType.STEP_FAILURE if event.step_key == planned.asset:
                error = _class_of_error(event)
    return AssetRun(
        planned.asset,
        CHECKS_ALONE if planned.job == "flight_references" else planned.part,
        seconds,
        rows_written,
        rows_quarantined,
        tuple(failed_checks),
        {check: rows for check, rows in failed_checks.items() if rows},
        error,
    )


def _number(metadata: Mapping[str, dg.MetadataValue[Any]], key: str) -> int:
    return int(str(metadata[key].value)) if key in metadata else 0


def _class_of_error(event: dg.DagsterEvent) -> str:
    found = event.step_failure_data.error
    while found is not None and found.cause is not None:
        found = found.cause
    return "" if found is None or found.cls_name is None else found.cls_name


def add_up(runs: Iterable[AssetRun]) -> dict[str, Totals]:
    """The totals of each asset, in the order of the runs."""
    by_asset: dict[str, list[AssetRun]] = {}
    for run in runs:
        by_asset.setdefault(run.asset, []).append(run)
    return {
        asset: Totals(
            rows_written=sum(run.rows_written or 0 for run in runs),
            rows_quarantined=sum(run.rows_quarantined for run in runs),
            failed_checks=dict(
                sorted(Counter(check for run in runs for check in run.failed_checks).items())
            ),
            failed_rows=dict(sum((Counter(run.failed_rows) for run in runs), Counter())),
            skipped_partitions=sum(run.skipped for run in runs),
            errors=tuple(run.error for run in runs if run.error is not None),
        )
        for asset, runs in by_asset.items()
    }


def differences(
    found: Mapping[str, Totals], expected: Mapping[str, Totals] = EXPECTED
) -> list[str]:
    """Every total that is off, in words."""
    lines = [f"{asset}: not pinned" for asset in found if asset not in expected]
    for asset, totals in expected.items():
        if asset not in found:
            lines.append(f"{asset}: not run")
            continue
        for name in (attribute.name for attribute in fields(Totals)):
            was, should = getattr(found[asset], name), getattr(totals, name)
            if was != should:
                lines.append(f"{asset}: {name} {was}, expected {should}")
    return lines
