"""The code location loads and holds what it should."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster_duckdb_polars import DuckDBPolarsIOManager

from warehouse.definitions import defs
from warehouse.job import EXPECTED, planned_runs
from warehouse.storage import PROJECT, ParquetTables

SILVER = {"airlines", "airports", "departures", "flights", "planes", "weather"}
RAW = {"raw/airlines", "raw/airports", "raw/flights", "raw/planes", "raw/weather"}


def groups() -> dict[str, str]:
    graph = defs().resolve_asset_graph()
    return {key.to_user_string(): graph.get(key).group_name for key in graph.get_all_asset_keys()}


def test_definitions_are_loadable() -> None:
    dg.Definitions.validate_loadable(defs())


def test_dg_finds_no_fault_with_the_project() -> None:
    dg_command = Path(sys.executable).parent / "dg"
    environment = {**os.environ, "DG_CLI_DISABLE_TELEMETRY": "1"}
    environment.pop("VIRTUAL_ENV", None)
    subprocess.run(
        [dg_command, "check", "defs"], cwd=PROJECT, env=environment, check=True, timeout=120
    )


def test_every_table_is_pinned_and_the_graph_holds_drops_and_quarantines_too() -> None:
    graph = defs().resolve_asset_graph()
    materializable = {key.to_user_string() for key in graph.materializable_asset_keys}
    described = {key.to_user_string() for key in graph.get_all_asset_keys()} - materializable
    assert materializable == set(EXPECTED)
    assert described == {"flights_quarantine", "weather_quarantine", *RAW}


def test_drops_are_bronze_and_what_is_made_of_them_is_silver_or_gold() -> None:
    found = groups()
    assert {name for name, group in found.items() if group == "bronze"} == RAW
    quarantines = {"flights_quarantine", "weather_quarantine"}
    assert {name for name, group in found.items() if group == "silver"} - quarantines == SILVER
    assert {name for name, group in found.items() if group == "quality"} == {"quarantine_triage"}


def test_silver_is_in_parquet_and_gold_in_duckdb() -> None:
    resources = defs().resources or {}
    keys = {
        key.to_user_string(): assets_def.get_io_manager_key_for_asset_key(key)
        for assets_def in defs().resolve_asset_graph().assets_defs
        if assets_def.is_executable
        for key in assets_def.keys
    }
    assert {name for name, key in keys.items() if key == "io_manager"} == SILVER
    assert {name for name, key in keys.items() if key == "duckdb"} == set(EXPECTED) - SILVER
    assert isinstance(resources["io_manager"], ParquetTables)
    assert isinstance(resources["duckdb"], DuckDBPolarsIOManager)


@pytest.mark.parametrize(
    ("asset", "checks"),
    [
        (
            "flights",
            {"dy_schema__columns", "dy_schema__rules"}
            | {"dy_filter__plane_is_known", "dy_filter__dest_is_known"},
        ),
        (
            "departures",
            {"dy_schema__columns", "dy_rule__primary_key", "dy_rule__plane_is_known"}
            | {f"dy_col__{column}" for column in ("date", "origin", "carrier", "flight", "dest")}
            | {f"dy_col__{column}" for column in ("time_hour", "cancelled", "seats", "temp")}
            | {f"dy_col__{column}" for column in ("wind_speed", "precip", "visib")},
        ),
        (
            "airlines",
            {"dy_schema__columns", "dy_rule__primary_key"}
            | {f"dy_rule__carrier__{rule}" for rule in ("nullability", "regex")}
            | {f"dy_rule__name__{rule}" for rule in ("nullability", "min_length", "unique")},
        ),
    ],
    ids=["schema", "column", "rule"],
)
def test_each_granularity_is_there(asset: str, checks: set[str]) -> None:
    graph = defs().resolve_asset_graph()
    key = dg.AssetKey(asset)
    assert {check.name for check in graph.get_check_keys_for_assets({key})} == checks


def test_flights_have_a_run_for_each_month_and_origin_and_one_for_all() -> None:
    runs = [run for run in planned_runs() if run.asset == "flights"]
    months = [f"2013-{month:02}" for month in range(1, 13)] + ["2014-01", "2014-02"]
    cells = [f"{month}|{origin}" for month in months for origin in ("EWR", "JFK", "LGA")]
    assert [run.partition for run in runs] == [*cells, None]
    jobs = [run.job for run in runs]
    assert jobs == [*["flights_cell"] * 42, "flight_references"]
    order = [run.asset for run in planned_runs() if run.job == "flight_references" or not run.job]
    assert set(order[: order.index("flights")]) >= {"airports", "planes"}
