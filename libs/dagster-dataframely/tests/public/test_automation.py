"""Automation sees the checks of an asset, and nothing of its quarantine."""

import datetime as dt
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.storage import FileIOManager

import dagster_dataframely as dd


class Orders(dy.Schema):
    """One rule."""

    id = dy.Int64(nullable=True, min=0)


CLEAN = pl.DataFrame({"id": [1, 2]})
"""The rule passes."""

SOME = pl.DataFrame({"id": [1, -2]})
"""The rule fails for one row of two."""

RULE_FAILED = dg.AutomationCondition.any_deps_match(
    dg.AutomationCondition.any_checks_match(dg.AutomationCondition.check_failed())
)


def evaluate(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    cursor: Any = None,
) -> Any:
    # Without a selection Dagster 1.13 builds one with an argument that is in beta, and warns.
    return dg.evaluate_automation_conditions(
        defs, instance=instance, cursor=cursor, asset_selection=dg.AssetSelection.all()
    )


class Source:
    """An asset whose next frame a test decides."""

    def __init__(self, **arguments: Any) -> None:
        self.frame = CLEAN

        @dd.asset(Orders, **arguments)
        def orders() -> pl.DataFrame:
            return self.frame

        self.asset = orders


@pytest.fixture(params=[False, True], ids=["abort", "quarantine"])
def source(request: pytest.FixtureRequest) -> Source:
    return Source(quarantine=request.param)


def test_a_downstream_asset_reacts_to_a_failing_rule(
    source: Source, files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    @dg.asset(deps=[source.asset], automation_condition=RULE_FAILED)
    def alert() -> None: ...

    defs = dg.Definitions(assets=[source.asset, alert], resources={"io_manager": files})
    requested = []
    cursor = None
    for frame in (CLEAN, SOME, CLEAN):
        source.frame = frame
        defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance, asset_selection=[source.asset.key], raise_on_error=False
        )
        result = evaluate(defs, instance=instance, cursor=cursor)
        cursor = result.cursor
        requested.append(result.get_num_requested(alert.key))
    assert requested == [0, 1, 0]


def test_a_condition_on_the_assets_own_checks_sees_them(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    condition = dg.AutomationCondition.any_checks_match(dg.AutomationCondition.check_failed())
    source = Source(quarantine=True, automation_condition=condition)
    defs = dg.Definitions(assets=[source.asset], resources={"io_manager": files})
    requested = []
    for frame in (CLEAN, SOME):
        source.frame = frame
        dg.materialize([source.asset], instance=instance, resources={"io_manager": files})
        result = evaluate(defs, instance=instance)
        requested.append(result.get_num_requested(source.asset.key))
    assert requested == [0, 1]


@pytest.mark.parametrize(
    ("blocking_failure", "expected"), [(False, 1), (True, 0)], ids=["rule", "columns"]
)
def test_eager_downstream_waits_for_the_blocking_check_alone(
    files: FileIOManager, instance: dg.DagsterInstance, expected: int, *, blocking_failure: bool
) -> None:
    source = Source(quarantine=True)
    condition = (
        dg.AutomationCondition.any_deps_updated()
        & dg.AutomationCondition.all_deps_blocking_checks_passed()
    )

    @dg.asset(deps=[source.asset], automation_condition=condition)
    def report() -> None: ...

    defs = dg.Definitions(assets=[source.asset, report], resources={"io_manager": files})
    job = defs.resolve_implicit_global_asset_job_def()

    def run(frame: pl.DataFrame) -> None:
        source.frame = frame
        job.execute_in_process(
            instance=instance, asset_selection=[source.asset.key], raise_on_error=False
        )

    first = evaluate(defs, instance=instance)
    run(SOME)
    if blocking_failure:
        run(SOME.with_columns(pl.col("id").cast(pl.String)))
    result = evaluate(defs, instance=instance, cursor=first.cursor)
    assert result.get_num_requested(report.key) == expected


def test_condition_and_freshness_policy_are_those_given() -> None:
    condition = dg.AutomationCondition.on_cron("@daily")
    policy = dg.FreshnessPolicy.time_window(
        fail_window=dt.timedelta(hours=2), warn_window=dt.timedelta(hours=1)
    )
    asset = Source(automation_condition=condition, freshness_policy=policy).asset
    (spec,) = asset.specs
    assert spec.automation_condition == condition
    assert spec.freshness_policy == policy


def test_the_quarantine_emits_no_event_and_is_never_requested(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    source = Source(quarantine=True)
    source.frame = SOME
    spec = dd.build_quarantine_spec(Orders, source.asset)

    @dg.asset(deps=[spec], automation_condition=dg.AutomationCondition.any_deps_updated())
    def report() -> None: ...

    defs = dg.Definitions(assets=[source.asset, spec, report], resources={"io_manager": files})
    first = evaluate(defs, instance=instance)
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, asset_selection=[source.asset.key]
    )
    assert files.files == ["orders.parquet", "orders_quarantine.parquet"]
    events = [log.dagster_event for log in instance.all_logs(result.run_id) if log.dagster_event]
    keys = {event.asset_key for event in events if event.asset_key is not None}
    assert keys == {source.asset.key}
    assert instance.get_asset_keys() == [source.asset.key]
    second = evaluate(defs, instance=instance, cursor=first.cursor)
    assert second.total_requested == 0
