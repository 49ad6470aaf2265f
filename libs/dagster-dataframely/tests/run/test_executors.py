"""Steps in processes of their own record what steps in one process record."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from support.declare import declare

from dagster_dataframely.data import OrdersSchema, invalid_orders, valid_orders

ONLY_ERROR_ROWS = valid_orders().with_columns(amount=pl.lit(-1.0))
EXITS: Mapping[str, Callable[[], Any]] = {
    "another_column_schema": lambda: valid_orders().drop("amount").lazy(),
    "no_error_rows": lambda: valid_orders().lazy(),
    "abort": lambda: invalid_orders().lazy(),
    "quarantine": lambda: invalid_orders().lazy(),
    "nothing_survived": ONLY_ERROR_ROWS.lazy,
    "skip": lambda: None,
}
QUARANTINED = {"quarantine", "nothing_survived"}


def six_exits() -> dg.JobDefinition:
    assets = [
        declare(
            OrdersSchema,
            function,
            name=name,
            quarantine=name in QUARANTINED,
            check_granularity="schema",
        )
        for name, function in EXITS.items()
    ]
    job = dg.define_asset_job("six_exits", assets)
    return dg.Definitions(assets, jobs=[job]).resolve_job_def("six_exits")


def recorded(execution: Mapping[str, Any], files: Path) -> dict[str, list[str]]:
    """What a run of all exits stored, by step."""
    io_manager = {"base_dir": str(files)}
    events: dict[str, list[str]] = {name: [] for name in EXITS}
    with dg.instance_for_test() as instance:
        result = dg.execute_job(
            dg.reconstructable(six_exits),
            instance,
            run_config={
                "execution": {"config": execution},
                "resources": {"io_manager": {"config": io_manager}},
            },
            raise_on_error=False,
        )
        for entry in instance.all_logs(result.run_id):
            step = entry.step_key or ""
            if entry.dagster_event is not None and step in EXITS:
                events[step] += facts_of(entry.dagster_event)
    return events


def facts_of(event: dg.DagsterEvent) -> list[str]:
    match event.event_type:
        case dg.DagsterEventType.ASSET_MATERIALIZATION:
            return [str(event.step_materialization_data.materialization)]
        case dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            check = event.asset_check_evaluation_data
            return [f"{check.check_name} {check.passed} {check.severity} {check.metadata}"]
        case dg.DagsterEventType.STEP_FAILURE:
            error = event.step_failure_data.error
            return [str(error and (error.cause or error).message)]
    return []


def test_the_six_exits_are_the_same_on_another_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staging, files = tmp_path / "staging", tmp_path / "files"
    staging.mkdir()
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_TEMP_DIR", str(staging))
    in_one = recorded({"in_process": {}}, files)
    in_many = recorded({"multiprocess": {"start_method": {"forkserver": {}}}}, files)
    assert in_many == in_one
    assert all(in_one.values())
    assert list(staging.iterdir()) == []
