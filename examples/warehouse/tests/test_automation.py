"""What runs by itself, and when."""

import gzip
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from warehouse.definitions import defs
from warehouse.defs.automation import last_months_flights, new_flight_drops
from warehouse.defs.gold.carriers import carrier_months, carrier_ranking, carrier_totals
from warehouse.defs.gold.route_delays import route_delays
from warehouse.storage import RawDrops


def materialized(instance: dg.DagsterInstance, asset: str, partition: str | None = None) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=partition))


@pytest.mark.parametrize(
    ("day", "cells"),
    [
        (datetime(2013, 3, 1, 6), ["2013-02|EWR", "2013-02|JFK", "2013-02|LGA"]),
        (datetime(2026, 3, 1, 6), []),
    ],
)
@pytest.mark.filterwarnings("ignore:Non-compliant tag keys:DeprecationWarning")
def test_each_month_the_schedule_runs_the_cells_of_the_last(
    day: datetime, cells: list[str]
) -> None:
    context = dg.build_schedule_context(
        scheduled_execution_time=day, repository_def=defs().get_repository_def()
    )
    tick = last_months_flights.evaluate_tick(context)
    assert last_months_flights.cron_schedule == "0 6 1 * *"
    assert [request.partition_key for request in tick.run_requests or []] == cells
    assert bool(tick.skip_message) == (not cells)


# Dagster's own tags for a cell of a grid (1.13).
@pytest.mark.filterwarnings("ignore:Non-compliant tag keys:DeprecationWarning")
def test_the_sensor_runs_each_new_and_each_changed_drop_once(tmp_path: Path) -> None:
    def write(cell: str, text: bytes) -> None:
        month, origin = cell.split("|")
        path = tmp_path / "flights" / month / f"{origin}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text))

    cursor: str | None = None

    def look() -> list[str]:
        nonlocal cursor
        context = dg.build_sensor_context(
            cursor=cursor,
            resources={"drops": RawDrops(directory=str(tmp_path))},
            definitions=defs(),
        )
        tick = new_flight_drops.evaluate_tick(context)
        cursor = tick.cursor or cursor
        requested = [str(request.partition_key) for request in tick.run_requests or []]
        arrived = [str(event.partition) for event in tick.asset_events]
        assert arrived == requested
        return requested

    assert look() == []
    write("2013-01|EWR", b"one")
    write("2013-01|JFK", b"one")
    assert look() == ["2013-01|EWR", "2013-01|JFK"]
    assert look() == []
    write("2013-01|JFK", b"two")
    assert look() == ["2013-01|JFK"]


def test_a_month_is_recomputed_when_one_of_its_cells_is_although_others_were_skipped() -> None:
    downstream = [carrier_months, carrier_totals, carrier_ranking]
    definitions = defs()
    selection = dg.AssetSelection.assets(*downstream)
    with dg.DagsterInstance.ephemeral() as instance:
        before = dg.evaluate_automation_conditions(definitions, instance, asset_selection=selection)
        materialized(instance, "flights", "2013-05|JFK")
        after = dg.evaluate_automation_conditions(
            definitions, instance, asset_selection=selection, cursor=before.cursor
        )
    assert before.total_requested == 0
    assert after.get_requested_partitions(carrier_months.key) == {"2013-05"}


def test_totals_follow_the_months() -> None:
    downstream = [carrier_totals, carrier_ranking]
    definitions = defs()
    selection = dg.AssetSelection.assets(*downstream)
    with dg.DagsterInstance.ephemeral() as instance:
        before = dg.evaluate_automation_conditions(definitions, instance, asset_selection=selection)
        materialized(instance, "carrier_months", "2013-05")
        after = dg.evaluate_automation_conditions(
            definitions, instance, asset_selection=selection, cursor=before.cursor
        )
    assert after.get_num_requested(carrier_totals.key) == 1
    assert after.get_num_requested(carrier_ranking.key) == 1


def test_route_delays_turn_stale_when_a_month_brings_no_flights() -> None:
    (spec,) = route_delays.specs
    assert spec.freshness_policy == dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=40), warn_window=timedelta(days=33)
    )
