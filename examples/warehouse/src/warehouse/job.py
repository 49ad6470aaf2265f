"""The main job: every table from the raw drops, and what has to come of it."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

import dagster as dg

from warehouse.definitions import defs


@dataclass(frozen=True)
class AssetRun:
    """One run: one table, or one cell of it."""

    asset: str
    partition: str | None
    seconds: float
    rows_written: int | None
    """`None` where the run skipped."""
    rows_quarantined: int
    failed_checks: tuple[str, ...]


@dataclass(frozen=True)
class Totals:
    """What came of all runs of an asset."""

    rows_written: int
    rows_quarantined: int = 0
    failed_checks: Mapping[str, int] = field(default_factory=dict)
    """The number of runs in which a check failed, by the check's name."""
    skipped_partitions: int = 0


EXPECTED: Mapping[str, Totals] = {
    "airlines": Totals(rows_written=16),
    "airports": Totals(rows_written=1_458),
    "flights": Totals(
        rows_written=336_597,
        rows_quarantined=179,
        failed_checks={"dy_col__arr_time": 35, "dy_col__dep_time": 15, "dy_col__tailnum": 4},
        skipped_partitions=6,
    ),
    "weather": Totals(
        rows_written=26_108,
        rows_quarantined=7,
        failed_checks={"dy_rule__primary_key": 1, "dy_rule__wind_speed__max": 1},
    ),
    "route_delays": Totals(rows_written=439),
}


def planned_runs() -> list[tuple[str, str | None]]:
    """Every asset, upstream first, with every one of its partitions."""
    graph = defs().resolve_asset_graph()
    return [
        (key.to_user_string(), partition)
        for key in graph.toposorted_asset_keys
        if key in graph.materializable_asset_keys
        for partition in _partition_keys(graph.get(key).partitions_def)
    ]


def run_all(instance: dg.DagsterInstance) -> Iterator[AssetRun]:
    """Materialize every asset, one run after the other, and read each run's events back.

    In one process: most of the time goes into writing events to SQLite, where a second process mostly
    waits for the first.
    """
    job = defs().resolve_implicit_global_asset_job_def()
    for asset, partition in planned_runs():
        start = time.perf_counter()
        result = job.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(asset)],
            partition_key=partition,
            run_config={"loggers": {"console": {"config": {"log_level": "WARNING"}}}},
        )
        yield read_run(instance, result.run_id, asset, partition, time.perf_counter() - start)


def read_run(
    instance: dg.DagsterInstance, run_id: str, asset: str, partition: str | None, seconds: float
) -> AssetRun:
    """Read what the instance recorded of a run."""
    entries = instance.all_logs(
        run_id,
        of_type={
            dg.DagsterEventType.ASSET_MATERIALIZATION,
            dg.DagsterEventType.ASSET_CHECK_EVALUATION,
        },
    )
    rows_written, rows_quarantined, failed_checks = None, 0, []
    for event in (entry.get_dagster_event() for entry in entries):
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            metadata = event.step_materialization_data.materialization.metadata
            rows_written = int(str(metadata["dataframely/rows_written"].value))
            rows_quarantined = int(str(metadata["dataframely/error_rows"].value))
        elif not (check := event.asset_check_evaluation_data).passed:
            failed_checks.append(check.check_name)
    return AssetRun(asset, partition, seconds, rows_written, rows_quarantined, tuple(failed_checks))


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
            skipped_partitions=sum(run.rows_written is None for run in runs),
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


def _partition_keys(
    partitions_def: dg.PartitionsDefinition[str] | None,
) -> list[str] | list[None]:
    return [None] if partitions_def is None else list(partitions_def.get_partition_keys())
