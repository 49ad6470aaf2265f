"""Each asset on a few rows, without a run: `dd.testing.invoke` calls it and collects the outcome."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

import dagster_dataframely as dd
from warehouse.defs.gold.carriers import carrier_months
from warehouse.defs.gold.laguardia_routes import laguardia_routes
from warehouse.defs.gold.route_delays import route_delays
from warehouse.defs.gold.usual_cancellations import Month, usual_cancellations
from warehouse.defs.quality.triage import quarantine_triage
from warehouse.defs.silver.departures import departures
from warehouse.defs.silver.flights import flights
from warehouse.defs.silver.reference import airlines, airports, planes
from warehouse.defs.silver.weather import check_hours, weather
from warehouse.memory import collect_measured
from warehouse.schemas import CarrierMonths, Flights, Planes, Weather
from warehouse.storage import PROJECT, ParquetTables, RawDrops

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


PLANE = {
    "tailnum": "N10156",
    "year": 2004,
    "type": "Fixed wing multi engine",
    "manufacturer": "EMBRAER",
    "model": "EMB-145XR",
    "engines": 2,
    "seats": 55,
    "speed": None,
    "engine": "Turbo-fan",
}

RAW = PROJECT / "data" / "raw"


def materialize(
    assets: list[dg.AssetsDefinition], drops: RawDrops, tables: Path, *, raise_on_error: bool = True
) -> dg.ExecuteInProcessResult:
    resources = {"drops": drops, "io_manager": ParquetTables(base_dir=str(tables))}
    return dg.materialize(assets, resources=resources, raise_on_error=raise_on_error)


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


FEW_ENOUGH: list[dict[str, object]] = [{}] * 100
"""Flights among which one that is set aside is below the limit of `flights`."""


def test_a_drop_with_too_many_error_rows_fails(write_drop: WriteDrop) -> None:
    with pytest.raises(dd.errors.TooManyErrorRowsError) as raised:
        invoke_flights(write_drop, {}, {"dep_time": 2400})
    assert (raised.value.share, raised.value.limit) == (0.5, 0.01)


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
    result = invoke_flights(write_drop, *FEW_ENOUGH, {column: hhmm, **hour})
    assert result.table is not None
    assert result.quarantine is not None
    assert result.table.height == len(FEW_ENOUGH)
    assert result.quarantine[column].to_list() == [hhmm]
    (failed,) = result.quarantine["dy_failed_rules"].to_list()
    assert f"{column}|check__clock_time" in failed
    assert result.failed == ["dy_schema__rules"]


def test_a_foreign_registration_warns_and_stays(write_drop: WriteDrop) -> None:
    result = invoke_flights(write_drop, {"tailnum": "D942DN"})
    assert result.table is not None
    assert result.table["tailnum"].to_list() == ["D942DN"]
    assert result.failed == ["dy_schema__rules"]
    assert result.checks["dy_schema__rules"].severity is dg.AssetCheckSeverity.WARN


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
    result = invoke_flights(write_drop, *FEW_ENOUGH, difference)
    assert result.quarantine is not None
    assert result.quarantine["flight"].to_list() == [len(FEW_ENOUGH) + 1]
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
    write_drop: WriteDrop, tmp_path: Path
) -> None:
    rows = [
        WEATHER,
        {**WEATHER, "hour": 2},
        {**WEATHER, "hour": 2},
        {**WEATHER, "hour": 3, "wind_speed": 1048.36},
        {**WEATHER, "origin": "JFK"},
        {**WEATHER, "origin": "LGA"},
    ]
    drops = RawDrops(directory=write_drop("weather", rows))
    # Wired by hand, so it needs a run.
    result = materialize([weather], drops, tmp_path)
    table, quarantine = (
        pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("weather", "weather_quarantine")
    )
    assert table["hour"].to_list() == [1, 1, 1]
    assert quarantine["hour"].to_list() == [2, 2, 3]
    failed = [each.check_name for each in result.get_asset_check_evaluations() if not each.passed]
    assert failed == ["dy_rule__wind_speed__max", "dy_rule__primary_key"]


def test_weather_without_an_airport_is_no_table_and_its_rows_are_at_no_fault(
    write_drop: WriteDrop, tmp_path: Path
) -> None:
    drops = RawDrops(directory=write_drop("weather", [WEATHER, {**WEATHER, "origin": "JFK"}]))
    with pytest.raises(dd.errors.ValidationAbortError) as raised:
        materialize([weather], drops, tmp_path)
    assert (raised.value.table_rules, raised.value.error_rows) == (("every_airport_reports",), 0)
    assert not [*tmp_path.glob("*.parquet")]


def test_hours_are_missing_where_the_drop_has_none_and_not_where_a_row_is_quarantined() -> None:
    hours = pl.DataFrame(
        {
            "origin": ["EWR", "EWR", "EWR", "JFK", "JFK"],
            "time_hour": [datetime(2013, 1, 1, hour) for hour in (6, 7, 8, 6, 9)],
        },
        schema={name: Weather.columns()[name].dtype for name in ("origin", "time_hour")},
    )
    result = check_hours(hours)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert result.metadata["missing_hours"].value == 2
    assert result.metadata["by_origin"].value == "EWR 0, JFK 2"
    assert check_hours(hours.filter(origin="EWR")).passed


def test_three_airports_in_the_wrong_place_warn_and_stay(tmp_path: Path) -> None:
    result = materialize([airports], RawDrops(directory=str(RAW)), tmp_path)
    table = pl.read_parquet(tmp_path / "airports.parquet")
    misplaced = table.filter((pl.col("lat") > 71.5) | (pl.col("tz") > -4))
    assert misplaced["faa"].to_list() == ["DVT", "EEN", "MYF"]
    warned = [
        (each.check_name, each.severity)
        for each in result.get_asset_check_evaluations()
        if not each.passed
    ]
    warn = dg.AssetCheckSeverity.WARN
    assert warned == [("dy_rule__lat__max", warn), ("dy_rule__tz__max", warn)]


def test_airports_have_the_drops_digest_as_their_data_version(tmp_path: Path) -> None:
    drops = RawDrops(directory=str(RAW))
    (event,) = materialize([airports], drops, tmp_path).get_asset_materialization_events()
    tags = event.step_materialization_data.materialization.tags or {}
    assert tags["dagster/data_version"] == drops.digest("airports")
    assert tags["warehouse/drop"] == drops.digest("airports")[:12]


def test_no_registration_of_a_plane_is_recorded(write_drop: WriteDrop, tmp_path: Path) -> None:
    wrong = {**PLANE, "tailnum": "N0"}
    for rows in ([PLANE], [PLANE, wrong]):
        drops = RawDrops(directory=write_drop("planes", rows))
        result = materialize([planes], drops, tmp_path, raise_on_error=False)
        assert result.success == (len(rows) == 1)
        recorded = "".join(map(repr, result.all_events))
        assert [value for value in ("N10156", "N0'", "redacted") if value in recorded] == [
            "redacted"
        ]


def test_planes_are_read_with_the_schemas_dtypes() -> None:
    drops = RawDrops(directory=str(RAW))
    result = dd.testing.invoke(planes, resources={"drops": drops})
    assert result.table is not None
    assert result.table.schema == Planes.create_empty().schema
    assert (result.table.height, result.failed) == (3_322, [])


def test_an_abort_leaves_the_last_table(write_drop: WriteDrop, tmp_path: Path) -> None:
    united: dict[str, object] = {"carrier": "UA", "name": "United"}
    again: dict[str, object] = {"carrier": "UA", "name": "Uni"}
    for rows in ([united], [united, again]):
        drops = RawDrops(directory=write_drop("airlines", rows))
        result = materialize([airlines], drops, tmp_path, raise_on_error=False)
        assert result.success == (len(rows) == 1)
    assert pl.read_parquet(tmp_path / "airlines.parquet").to_dicts() == [united]


def test_a_repeated_carrier_aborts(write_drop: WriteDrop) -> None:
    rows: list[dict[str, object]] = [{"carrier": "UA", "name": name} for name in ("United", "Uni")]
    drops = RawDrops(directory=write_drop("airlines", rows))
    with pytest.raises(dd.errors.ValidationAbortError) as raised:
        dd.testing.invoke(airlines, resources={"drops": drops})
    assert raised.value.rules == ("primary_key",)


def cell(month: str, origin: str, *rows: dict[str, object]) -> dict[Any, pl.LazyFrame]:
    """A cell of `flights`; each mapping says how a flight differs from `FLIGHT`."""
    year, number = map(int, month.split("-"))
    frame = pl.DataFrame(
        [
            {
                **FLIGHT,
                "year": year,
                "month": number,
                "origin": origin,
                "flight": flight,
                "time_hour": datetime(2013, 1, 1, 10, tzinfo=UTC),
                **row,
            }
            for flight, row in enumerate(rows, start=1)
        ],
        schema=Flights.create_empty().schema,
    )
    return {dg.MultiPartitionKey({"month": month, "origin": origin}): frame.lazy()}


def test_route_delays_average_over_the_flights_that_left() -> None:
    cells = {
        **cell(
            "2013-01",
            "EWR",
            {"dep_delay": 2, "arr_delay": 11},
            {"dep_delay": -4, "arr_delay": None},
            CANCELLED,
        ),
        **cell("2013-01", "JFK", CANCELLED),
    }
    result = dd.testing.invoke(route_delays, flights=cells)
    assert result.table is not None
    assert result.table.rows() == [
        ("EWR", "IAH", "UA", 3, 1, 1 / 3, -1.0, 11.0),
        ("JFK", "IAH", "UA", 1, 1, 1.0, None, None),
    ]


def test_only_laguardias_flights_have_a_perimeter() -> None:
    beyond = {"dest": "LAX", "distance": 2475}
    denver = {"dest": "DEN", "distance": 1620}
    cells = {**cell("2013-01", "JFK", beyond), **cell("2013-01", "LGA", {}, denver)}
    result = dd.testing.invoke(laguardia_routes, flights=cells)
    assert result.table is not None
    assert result.table.rows() == [("DEN", 1, 1620), ("IAH", 1, 1400)]
    with pytest.raises(dd.errors.ValidationAbortError) as raised:
        dd.testing.invoke(laguardia_routes, flights=cell("2013-01", "LGA", beyond))
    assert raised.value.rules == ("within_the_perimeter",)


def test_a_month_adds_up_its_three_airports() -> None:
    cells = {
        **cell("2013-01", "EWR", {"arr_delay": 10}, {"arr_delay": -30}, CANCELLED),
        **cell("2013-01", "JFK", {"arr_delay": 90}),
    }
    result = dd.testing.invoke(carrier_months, flights=cells, partition_key="2013-01")
    assert result.table is not None
    assert result.table.rows() == [
        (date(2013, 1, 1), "EWR", "UA", 3, 1, Decimal("0.17")),
        (date(2013, 1, 1), "JFK", "UA", 1, 0, Decimal("1.50")),
    ]


def test_a_month_without_cells_is_skipped() -> None:
    result = dd.testing.invoke(carrier_months, flights={}, partition_key="2014-01")
    assert (result.table, result.failed) == (None, [])


@pytest.mark.parametrize(
    "call",
    [
        lambda cells: dd.testing.invoke(route_delays, flights=cells),
        lambda cells: dd.testing.invoke(laguardia_routes, flights=cells),
        lambda cells: dd.testing.invoke(carrier_months, flights=cells, partition_key="2013-01"),
    ],
    ids=["grid", "origin", "month"],
)
def test_a_fan_in_records_its_peak_memory(
    call: Callable[[dict[Any, pl.LazyFrame]], dd.testing.Invocation],
) -> None:
    metadata = call(cell("2013-01", "LGA", {})).metadata
    # Python alone needs more than 10 MiB.
    assert metadata["warehouse/peak_memory_mib"] > 10
    assert metadata["warehouse/peak_memory_growth_mib"] >= 0


def test_the_growth_is_what_the_plan_needs() -> None:
    def growth(rows: int) -> float:
        metadata = collect_measured(pl.LazyFrame().select(pl.int_range(rows))).metadata or {}
        return float(str(metadata["warehouse/peak_memory_growth_mib"]))

    assert growth(10) < 100 < growth(40_000_000)


def test_a_flight_of_an_unknown_plane_warns_and_stays() -> None:
    cells = cell("2013-01", "EWR", {"tailnum": "N10156"}, {"tailnum": "N1"}, {"tailnum": None})
    result = dd.testing.invoke(
        departures,
        flights=cells,
        planes=pl.LazyFrame([PLANE], schema=Planes.create_empty().schema),
        weather=Weather.create_empty().lazy(),
    )
    assert result.table is not None
    assert result.table["seats"].to_list() == [55, None, None]
    assert result.failed == ["dy_rule__plane_is_known"]
    check = result.checks["dy_rule__plane_is_known"]
    assert check.severity is dg.AssetCheckSeverity.WARN
    assert check.metadata["dy_failed_count"].value == 2


def test_departures_have_the_weather_of_their_hour() -> None:
    hours = [
        {**WEATHER, "time_hour": datetime(2013, 1, 1, hour, tzinfo=UTC), "temp": temp}
        for hour, temp in ((9, 30.0), (10, 40.0))
    ]
    result = dd.testing.invoke(
        departures,
        flights=cell("2013-01", "EWR", {}),
        planes=Planes.create_empty().lazy(),
        weather=pl.LazyFrame(hours, schema=Weather.create_empty().schema),
    )
    assert result.table is not None
    assert result.table["temp"].to_list() == [40.0]


@pytest.mark.parametrize(("month", "cancelled"), [("2013-01", 4), ("2013-02", 5)])
def test_a_month_with_many_cancellations_is_no_ordinary_one(month: str, cancelled: int) -> None:
    months = pl.DataFrame(
        [(date(2013, number, 1), "EWR", "UA", 100, number + 3, Decimal(0)) for number in (1, 2)],
        schema=CarrierMonths.create_empty().schema,
        orient="row",
    )
    config = Month(month=month)
    if cancelled == 5:
        with pytest.raises(dd.errors.ValidationAbortError) as raised:
            dd.testing.invoke(usual_cancellations, carrier_months=months, config=config)
        assert raised.value.rules == ("share|max",)
    else:
        result = dd.testing.invoke(usual_cancellations, carrier_months=months, config=config)
        assert result.table is not None
        assert result.table.rows() == [("EWR", date(2013, 1, 1), 100, 0.04)]


def test_triage_puts_the_rule_first_that_costs_the_most_rows() -> None:
    def cell(*failed: list[str]) -> pl.LazyFrame:
        return pl.LazyFrame(
            {"dy_failed_rules": failed}, schema={"dy_failed_rules": pl.List(pl.String)}
        )

    result = dd.testing.invoke(
        quarantine_triage,
        flights_quarantine={
            dg.MultiPartitionKey({"month": "2013-01", "origin": "EWR"}): cell(["a"]),
            dg.MultiPartitionKey({"month": "2013-01", "origin": "JFK"}): cell(["a", "b"]),
            dg.MultiPartitionKey({"month": "2013-02", "origin": "JFK"}): cell(),
        },
        weather_quarantine=pl.DataFrame(
            {"dy_rule__c__min": ["invalid"] * 3, "dy_rule__d": ["valid"] * 3}
        ),
    )
    assert result.table is not None
    assert result.table.rows() == [
        ("weather", "c|min", 3),
        ("flights", "a", 2),
        ("flights", "b", 1),
    ]
