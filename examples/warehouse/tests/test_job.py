"""The whole main job, on the real drops."""

from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from warehouse.job import EXPECTED, AssetRun, add_up, differences, run_all
from warehouse.storage import clear, create_dagster_home

RAN_AT_MIDNIGHT = (pl.col("dep_time") == 2400) | (pl.col("arr_time") == 2400)


@dataclass(frozen=True)
class Finished:
    """What one run of the main job left."""

    runs: list[AssetRun]
    tables: Path

    def read(self, table: str) -> pl.DataFrame:
        path = self.tables / table
        return pl.read_parquet(path / "**/*.parquet" if path.is_dir() else f"{path}.parquet")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    directory = tmp_path_factory.mktemp("warehouse")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAREHOUSE_DIR", str(directory))
        # In memory, storing an event takes a fraction of the time it takes in SQLite files.
        with dg.DagsterInstance.ephemeral() as instance:
            return Finished(list(run_all(instance)), directory / "tables")


def test_every_total_is_the_pinned_one(finished: Finished) -> None:
    assert differences(add_up(finished.runs)) == []


def test_totals_are_those_of_the_stored_tables(finished: Finished) -> None:
    tables = {asset: totals.rows_written for asset, totals in EXPECTED.items()}
    assert {asset: finished.read(asset).height for asset in tables} == tables


def test_the_cells_without_a_drop_are_skipped(finished: Finished) -> None:
    skipped = [run.partition for run in finished.runs if run.rows_written is None]
    origins = ("EWR", "JFK", "LGA")
    assert skipped == [
        f"{month}|{origin}" for month in ("2014-01", "2014-02") for origin in origins
    ]
    assert not [*finished.tables.glob("flights*/2014-*")]


def test_the_flights_quarantine_holds_exactly_the_flights_at_2400(finished: Finished) -> None:
    quarantine = finished.read("flights_quarantine")
    assert quarantine.filter(RAN_AT_MIDNIGHT).height == quarantine.height == 179
    assert finished.read("flights").filter(RAN_AT_MIDNIGHT).is_empty()
    invalid = quarantine.select((pl.col("^dy_rule__.*$") == "invalid").sum()).row(0, named=True)
    assert {rule: rows for rule, rows in invalid.items() if rows} == {
        "dy_rule__dep_time__check__clock_time": 29,
        "dy_rule__arr_time__check__clock_time": 150,
    }


def test_the_weather_quarantine_holds_the_repeated_hour_and_the_impossible_wind(
    finished: Finished,
) -> None:
    quarantine = finished.read("weather_quarantine")
    columns = "origin", "month", "day", "hour", "wind_speed"
    assert quarantine.filter(pl.col("wind_speed") > 253).select(columns).rows() == [
        ("EWR", 2, 12, 3, 1048.36058)
    ]
    repeated = quarantine.filter(pl.col("dy_rule__primary_key") == "invalid")
    assert repeated.select("origin", "month", "day", "hour").rows() == [
        (origin, 11, 3, 1) for origin in ("EWR", "JFK", "LGA") for _ in range(2)
    ]
    assert quarantine.height == 7


def test_foreign_registrations_warn_and_stay(finished: Finished) -> None:
    assert finished.read("flights").filter(tailnum="D942DN").height == 4


def test_route_delays_count_every_flight_once(finished: Finished) -> None:
    flights, routes = finished.read("flights"), finished.read("route_delays")
    assert routes["flights"].sum() == flights.height
    assert routes["cancelled"].sum() == flights["dep_time"].null_count()


def test_a_difference_names_the_asset_and_the_total() -> None:
    runs = [
        AssetRun("airlines", None, 0.1, 16, 0, ()),
        AssetRun("planes", "2013", 0.1, None, 0, ("dy_rule__primary_key",)),
    ]
    found = add_up(runs)
    expected = {
        "airlines": replace(EXPECTED["airlines"], rows_written=15),
        "airports": EXPECTED["airports"],
    }
    assert differences(found, expected) == [
        "planes: not pinned",
        "airlines: rows_written 16, expected 15",
        "airports: not run",
    ]


def test_clear_removes_a_warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE_DIR", str(tmp_path / "mine"))
    clear()
    create_dagster_home()
    clear()
    assert not (tmp_path / "mine").exists()


def test_clear_refuses_any_other_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE_DIR", str(tmp_path))
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(FileExistsError, match="is no warehouse"):
        clear()
    assert (tmp_path / "thesis.txt").exists()
