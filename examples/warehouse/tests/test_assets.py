"""Each asset on a few rows, without a run: `dd.testing.invoke` calls it and collects the outcome."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

import dagster_dataframely as dd
from warehouse.defs.bronze.flights import flights
from warehouse.defs.bronze.reference import airlines
from warehouse.defs.bronze.weather import weather
from warehouse.defs.gold.route_delays import route_delays
from warehouse.schemas import Flights
from warehouse.storage import RawDrops

WriteDrop = Callable[[str, list[dict[str, object]]], str]

CELL = "2013-01|EWR"

FLIGHT = {
    "year": 2013,
    "month": 1,
    "day": 1,
    "dep_time": 517,
    "sched_dep_time": 515,
    "dep_delay": 2,
    "arr_time": 830,
    "sched_arr_time": 819,
    "arr_delay": 11,
    "carrier": "UA",
    "flight": 1545,
    "tailnum": "N14228",
    "origin": "EWR",
    "dest": "IAH",
    "air_time": 227,
    "distance": 1400,
    "hour": 5,
    "minute": 15,
    "time_hour": "2013-01-01T10:00:00Z",
}
CANCELLED = dict.fromkeys(["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"])

WEATHER = {
    "origin": "EWR",
    "year": 2013,
    "month": 1,
    "day": 1,
    "hour": 1,
    "temp": 39.02,
    "dewp": 26.06,
    "humid": 59.37,
    "wind_dir": 270,
    "wind_speed": 10.36,
    "wind_gust": None,
    "precip": 0,
    "pressure": 1012,
    "visib": 10,
    "time_hour": "2013-01-01T06:00:00Z",
}


@pytest.fixture
def write_drop(tmp_path: Path) -> WriteDrop:
    """Write rows as a gzipped CSV; returns the directory of the drops."""

    def write(drop: str, rows: list[dict[str, object]]) -> str:
        path = tmp_path / f"{drop}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame(rows, infer_schema_length=None).write_csv(path, compression="gzip")
        return str(tmp_path)

    return write


def invoke_flights(write_drop: WriteDrop, *differences: dict[str, object]) -> dd.testing.Invocation:
    """Call `flights` on one flight for each mapping, which says how it differs from `FLIGHT`."""
    rows = [{**FLIGHT, "flight": n, **row} for n, row in enumerate(differences, start=1)]
    drops = RawDrops(directory=write_drop("flights/2013-01/EWR", rows))
    return dd.testing.invoke(flights, partition_key=CELL, resources={"drops": drops})


def test_flights_are_read_with_the_schemas_dtypes(write_drop: WriteDrop) -> None:
    result = invoke_flights(write_drop, {}, CANCELLED)
    assert result.table is not None
    assert result.table.schema == Flights.create_empty().schema
    assert (result.table.height, result.quarantine, result.failed) == (2, None, [])


@pytest.mark.parametrize("column", ["dep_time", "arr_time", "sched_dep_time", "sched_arr_time"])
@pytest.mark.parametrize("hhmm", [-1, 1260, 2400])
def test_a_flight_at_no_clock_time_goes_to_the_quarantine(
    write_drop: WriteDrop, column: str, hhmm: int
) -> None:
    hour = {"hour": hhmm // 100, "minute": hhmm % 100} if column == "sched_dep_time" else {}
    result = invoke_flights(write_drop, {}, {column: hhmm, **hour})
    assert result.table is not None
    assert result.quarantine is not None
    assert result.table["flight"].to_list() == [1]
    assert result.quarantine[column].to_list() == [hhmm]
    assert f"dy_col__{column}" in result.failed


def test_a_foreign_registration_warns_and_stays(write_drop: WriteDrop) -> None:
    result = invoke_flights(write_drop, {"tailnum": "D942DN"})
    assert result.table is not None
    assert result.table["tailnum"].to_list() == ["D942DN"]
    assert result.failed == ["dy_col__tailnum"]
    assert result.checks["dy_col__tailnum"].severity is dg.AssetCheckSeverity.WARN


@pytest.mark.parametrize(
    "difference",
    [
        {"dep_time": None},
        {"minute": 16},
        {"time_hour": "2013-01-01T05:00:00Z"},
    ],
)
def test_a_flight_that_contradicts_itself_goes_to_the_quarantine(
    write_drop: WriteDrop, difference: dict[str, object]
) -> None:
    result = invoke_flights(write_drop, {}, difference)
    assert result.quarantine is not None
    assert result.quarantine["flight"].to_list() == [2]
    assert result.failed == ["dy_schema__rules"]


def test_a_drop_without_a_declared_column_fails(write_drop: WriteDrop) -> None:
    rows = [{name: value for name, value in FLIGHT.items() if name != "distance"}]
    drops = RawDrops(directory=write_drop("flights/2013-01/EWR", rows))
    with pytest.raises(dd.errors.ColumnSchemaError, match="distance"):
        dd.testing.invoke(flights, partition_key=CELL, resources={"drops": drops})


def test_a_cell_without_a_drop_is_skipped(write_drop: WriteDrop) -> None:
    drops = RawDrops(directory=write_drop("flights/2013-01/EWR", [FLIGHT]))
    result = dd.testing.invoke(flights, partition_key="2014-01|EWR", resources={"drops": drops})
    assert (result.table, result.quarantine, result.failed) == (None, None, [])


def test_a_repeated_hour_and_an_impossible_wind_go_to_the_quarantine(
    write_drop: WriteDrop,
) -> None:
    rows = [
        WEATHER,
        {**WEATHER, "hour": 2},
        {**WEATHER, "hour": 2},
        {**WEATHER, "hour": 3, "wind_speed": 1048.36},
    ]
    drops = RawDrops(directory=write_drop("weather", rows))
    result = dd.testing.invoke(weather, resources={"drops": drops})
    assert result.table is not None
    assert result.quarantine is not None
    assert result.table["hour"].to_list() == [1]
    assert result.quarantine["hour"].to_list() == [2, 2, 3]
    assert result.failed == ["dy_rule__wind_speed__max", "dy_rule__primary_key"]


def test_a_repeated_carrier_aborts(write_drop: WriteDrop) -> None:
    rows: list[dict[str, object]] = [{"carrier": "UA", "name": name} for name in ("United", "Uni")]
    drops = RawDrops(directory=write_drop("airlines", rows))
    with pytest.raises(dd.errors.ValidationAbortError) as raised:
        dd.testing.invoke(airlines, resources={"drops": drops})
    assert raised.value.rules == ("primary_key",)


def test_route_delays_average_over_the_flights_that_left() -> None:
    def cell(origin: str, *rows: dict[str, object]) -> pl.LazyFrame:
        columns = "origin", "dest", "carrier", "dep_time", "dep_delay", "arr_delay"
        names = dict(zip(("origin", "dest", "carrier"), (origin, "IAH", "UA"), strict=True))
        return pl.LazyFrame(
            [{**names, **row} for row in rows],
            schema={name: Flights.columns()[name].dtype for name in columns},
        )

    cells = {
        dg.MultiPartitionKey({"month": "2013-01", "origin": "EWR"}): cell(
            "EWR",
            {"dep_time": 517, "dep_delay": 2, "arr_delay": 11},
            {"dep_time": 554, "dep_delay": -4, "arr_delay": None},
            {},
        ),
        dg.MultiPartitionKey({"month": "2013-01", "origin": "JFK"}): cell("JFK", {}),
    }
    result = dd.testing.invoke(route_delays, flights=cells)
    assert result.table is not None
    assert result.table.rows() == [
        ("EWR", "IAH", "UA", 3, 1, 1 / 3, -1.0, 11.0),
        ("JFK", "IAH", "UA", 1, 1, 1.0, None, None),
    ]
