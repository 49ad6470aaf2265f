"""Filters are evaluated on the partitions that fit together."""

from typing import Any

import dagster as dg
import pytest
from support.storage import Store
from support.stored_shop import (
    CITIES,
    DAYS,
    LINES,
    ORDERS,
    REMOVED,
    Shop,
    removed,
    table,
)

import dagster_dataframely as dd

ORDERS_BY_DAY = {"mon": ORDERS, "tue": ORDERS[:1], "wed": ORDERS[1:2]}


LINES_BY_DAY = {"mon": LINES, "tue": LINES[:1]}
"""On Wednesday there is an order and no line."""


def partitioned_shop(store: Store) -> dict[str, Any]:
    members = {
        "orders": table("orders", ORDERS_BY_DAY, DAYS),
        "lines": table("lines", LINES_BY_DAY, DAYS),
        "cities": table("cities", CITIES),
    }
    store.materialize(members["cities"])
    for day in DAYS.get_partition_keys():
        assert store.materialize(members["orders"], members["lines"], partition_key=day).success
    return members


NO_LINE = {"dy_filter__has_lines": 1}


def test_a_run_with_a_partition_checks_the_members_in_it(store: Store) -> None:
    members = partitioned_shop(store)
    checks = dd.build_collection_checks(Shop, members=members)
    assert {spec.partitions_def for spec in checks.check_specs} == {DAYS}
    assets = members["orders"], members["lines"], checks
    for day, expected in {"mon": REMOVED, "tue": {"orders": {}, "lines": {}}}.items():
        result = store.materialize(*assets, partition_key=day)
        assert (removed(store, result, day), store.found(result)) == (expected, {})


def test_a_run_without_a_partition_checks_each(store: Store) -> None:
    members = partitioned_shop(store)
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.check(checks, *members.values())
    assert removed(store, result, "mon") == REMOVED
    assert removed(store, result, "tue") == {"orders": {}, "lines": {}}
    # No line was written, so there are none.
    assert removed(store, result, "wed") == {"orders": NO_LINE, "lines": {}}
    assert store.found(result, asset="orders")["dy_filter__has_lines"] == (
        False,
        "ERROR",
        {
            "dy_partitions": 3,
            "dy_failed_partitions": 2,
            "dy_failed_count": 2,
            "dy_severity": "error",
        },
    )
    assert store.statuses("lines", "dy_filter__has_lines") == {
        None: "FAILED",
        "mon": "FAILED",
        "tue": "SUCCEEDED",
        "wed": "SUCCEEDED",
    }


@pytest.mark.parametrize("tags", [{}, {"partition": "mon"}], ids=["no partition", "partition"])
def test_a_member_without_partitions_is_checked_against_all_of_the_others(
    store: Store, tags: dict[str, str]
) -> None:
    by_day = {"mon": LINES[:2], "wed": LINES[2:3]}
    members = {
        "orders": table("orders", ORDERS),
        "lines": table("lines", by_day, DAYS),
        "cities": table("cities", CITIES),
    }
    store.materialize(members["orders"], members["cities"])
    for day in DAYS.get_partition_keys():
        store.materialize(members["lines"], partition_key=day)
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.check(checks, *members.values(), only="dy_filter__has_lines", **tags)
    assert store.failures(result, asset="orders") == NO_LINE
    assert store.failures(result, "mon", asset="lines") == {}


def test_a_member_of_which_no_partition_is_known_is_read_nevertheless(store: Store) -> None:
    members: dict[str, Any] = {
        "orders": table("orders", ORDERS_BY_DAY, DAYS),
        "lines": dg.AssetSpec("lines", partitions_def=DAYS),
        "cities": table("cities", CITIES),
    }
    store.materialize(members["cities"])
    store.materialize(members["orders"], partition_key="mon")
    path = store.files.path(dg.AssetKey("lines"), "mon")
    path.parent.mkdir(parents=True, exist_ok=True)
    LINES.write_parquet(path)
    checks = dd.build_collection_checks(Shop, members=members)
    result = store.check(checks, *members.values())
    assert removed(store, result, "mon") == REMOVED
