"""The whole main job, on the real drops."""

import io
import re
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import dagster as dg
import duckdb
import polars as pl
import pytest
from rich.console import Console

from warehouse import report
from warehouse.job import EXPECTED, AssetRun, add_up, differences, run_all
from warehouse.storage import clear, create_dagster_home

RAN_AT_MIDNIGHT = (pl.col("dep_time") == 2400) | (pl.col("arr_time") == 2400)


@dataclass(frozen=True)
class Finished:
    """What one run of the main job left."""

    runs: list[AssetRun]
    directory: Path
    recorded: str
    """The event log of all runs, as text."""

    def silver(self, table: str) -> pl.DataFrame:
        path = self.directory / "tables" / table
        return pl.read_parquet(path / "**/*.parquet" if path.is_dir() else f"{path}.parquet")

    def gold(self, table: str) -> pl.DataFrame:
        with duckdb.connect(str(self.directory / "warehouse.duckdb"), read_only=True) as connection:
            return connection.sql(f"select * from gold.{table}").pl()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    directory = tmp_path_factory.mktemp("warehouse")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAREHOUSE_DIR", str(directory))
        # In memory, storing an event takes a fraction of the time it takes in SQLite files.
        with dg.DagsterInstance.ephemeral() as instance:
            runs = list(run_all(instance))
            entries = [instance.all_logs(run.run_id) for run in instance.get_runs()]
            recorded = "".join(repr(entry) for of_run in entries for entry in of_run)
    return Finished(runs, directory, recorded)


def test_every_total_is_the_pinned_one(finished: Finished) -> None:
    assert differences(add_up(finished.runs)) == []


def test_totals_are_those_of_the_stored_tables(finished: Finished) -> None:
    silver = {path.name.partition(".")[0] for path in (finished.directory / "tables").iterdir()}
    heights = {
        asset: (finished.silver if asset in silver else finished.gold)(asset).height
        for asset in EXPECTED
    }
    assert heights == {asset: totals.rows_written for asset, totals in EXPECTED.items()}


def test_the_cells_without_a_drop_are_skipped(finished: Finished) -> None:
    skipped = [run.part for run in finished.runs if run.asset == "flights" and run.skipped]
    origins = ("EWR", "JFK", "LGA")
    assert skipped == [
        f"{month}|{origin}" for month in ("2014-01", "2014-02") for origin in origins
    ]
    assert not [*finished.directory.glob("tables/flights*/2014-*")]


def test_the_flights_quarantine_holds_exactly_the_flights_at_2400(finished: Finished) -> None:
    quarantine = finished.silver("flights_quarantine")
    assert quarantine.filter(RAN_AT_MIDNIGHT).height == quarantine.height == 179
    assert finished.silver("flights").filter(RAN_AT_MIDNIGHT).is_empty()
    failed = quarantine["dy_failed_rules"].explode(empty_as_null=False).value_counts().rows()
    assert dict(failed) == {"dep_time|check__clock_time": 29, "arr_time|check__clock_time": 150}


def test_the_weather_quarantine_holds_the_repeated_hour_and_the_impossible_wind(
    finished: Finished,
) -> None:
    quarantine = finished.silver("weather_quarantine")
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
    assert finished.silver("flights").filter(tailnum="D942DN").height == 4


def test_route_delays_count_every_flight_once(finished: Finished) -> None:
    flights, routes = finished.silver("flights"), finished.gold("route_delays")
    assert routes["flights"].sum() == flights.height
    assert routes["cancelled"].sum() == flights["dep_time"].null_count()


def test_flights_of_unknown_planes_are_counted(finished: Finished) -> None:
    flights, planes = finished.silver("flights"), finished.silver("planes")
    assert flights.join(planes, on="tailnum", how="anti").height == 52_594
    assert finished.silver("departures")["seats"].null_count() == 52_594


def test_flights_whose_plane_or_destination_is_unknown_are_counted_by_cell_and_together(
    finished: Finished,
) -> None:
    flights, aside = finished.silver("flights"), finished.silver("flights_quarantine")
    planes, airports = finished.silver("planes"), finished.silver("airports")

    def unknown(rows: pl.DataFrame) -> list[int]:
        with_plane = rows.join(planes, on="tailnum", how="semi")
        with_destination = rows.join(airports, left_on="dest", right_on="faa", how="semi")
        return [rows.height - with_plane.height, rows.height - with_destination.height]

    assert unknown(flights) == [52_594, 7_578]
    assert [sum(both) for both in zip(unknown(flights), unknown(aside), strict=True)] == [
        52_606,
        7_602,
    ]
    (run,) = [run for run in finished.runs if "dy_filter__plane_is_known" in run.failed_checks]
    assert [*run.failed_rows.values()] == unknown(flights)


def test_a_blizzard_leaves_the_table_of_the_month_before(finished: Finished) -> None:
    months = [run for run in finished.runs if run.asset == "usual_cancellations"]
    assert [(run.part, run.error) for run in months] == [
        ("2013-01", None),
        ("2013-02", "ValidationAbortError"),
    ]
    assert finished.gold("usual_cancellations")["month"].unique().to_list() == [date(2013, 1, 1)]


def test_no_cell_comes_near_the_limit_of_error_rows(finished: Finished) -> None:
    cell = ["month", "origin"]
    lost = finished.silver("flights_quarantine").group_by(cell).len("lost")
    kept = finished.silver("flights").group_by(cell).len("kept")
    share = pl.col("lost") / (pl.col("lost") + pl.col("kept"))
    worst = kept.join(lost, on=cell).select(*cell, share=share).sort("share").tail(1)
    assert worst.select(cell).rows() == [(12, "JFK")]
    assert worst["share"].item() == pytest.approx(0.002, abs=0.0005)


def test_triage_counts_what_is_in_the_quarantines(finished: Finished) -> None:
    assert finished.gold("quarantine_triage").rows() == [
        ("flights", "arr_time|check__clock_time", 150),
        ("flights", "dep_time|check__clock_time", 29),
        ("weather", "primary_key", 6),
        ("weather", "wind_speed|max", 1),
    ]


def test_months_add_up_to_the_totals_to_the_hundredth(finished: Finished) -> None:
    months = finished.gold("carrier_months").group_by("carrier").agg(pl.col("hours_late").sum())
    ranking = finished.gold("carrier_ranking").select("carrier", "hours_late")
    assert sorted(months.rows()) == sorted(ranking.rows())
    assert months["hours_late"].sum() > 0


def test_no_registration_is_in_the_event_log(finished: Finished) -> None:
    tables = (finished.silver(table) for table in ("planes", "flights", "departures"))
    registrations = set(pl.concat(table["tailnum"] for table in tables).drop_nulls())
    words = set(re.findall(r"\w+", finished.recorded))
    assert {"N10156", "D942DN"} <= registrations
    assert {"redacted", "EMBRAER", "dy_rule__time_hour__resolution"} <= words
    assert registrations & words == set()


def test_a_difference_names_the_asset_and_the_total() -> None:
    runs = [
        AssetRun("airlines", "", 0.1, 16),
        AssetRun("trains", "2013", 0.1, None, 0, ("dy_rule__primary_key",)),
    ]
    found = add_up(runs)
    expected = {
        "airlines": replace(EXPECTED["airlines"], rows_written=15),
        "airports": EXPECTED["airports"],
    }
    assert differences(found, expected) == [
        "trains: not pinned",
        "airlines: rows_written 16, expected 15",
        "airports: not run",
    ]


@pytest.mark.parametrize(("off", "code"), [([], 0), (["airlines: rows_written 15"], 1)])
def test_the_main_job_shows_runs_and_totals_and_fails_where_a_total_is_off(
    off: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        AssetRun("airlines", "", 0.1, 16),
        AssetRun("flights", "2014-01|EWR", 0.2, None),
        AssetRun("usual_cancellations", "2013-02", 0.3, None, error="ValidationAbortError"),
    ]
    monkeypatch.setenv("WAREHOUSE_DIR", str(tmp_path / "warehouse"))
    monkeypatch.setattr(report, "run_all", lambda instance: iter(runs))
    monkeypatch.setattr(report, "differences", lambda totals: off)
    printed = io.StringIO()
    assert report.run(Console(file=printed, width=80)) == code
    lines = printed.getvalue().splitlines()
    squeezed = [" ".join(line.split()) for line in lines]
    assert squeezed[:3] == [
        "airlines 16 rows 0.1 s",
        "flights 2014-01|EWR skipped 0.2 s",
        "usual_cancellations 2013-02 ValidationAbortError 0.3 s",
    ]
    assert "airlines 16 0 0 0.1" in squeezed
    assert "usual_cancellations 0 0 ValidationAbortError 1 0 0.3" in squeezed
    assert [line for line in lines if line in off] == off
    assert ("What is red, and why" in printed.getvalue()) == (not off)


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
