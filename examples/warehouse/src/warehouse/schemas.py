"""What each table promises: columns, dtypes and rules."""

from decimal import Decimal
from typing import Annotated

import dataframely as dy
import polars as pl

import dagster_dataframely as dd
from warehouse.partitions import ORIGINS

AIRPORT = "^[A-Z]{3}$"
CARRIER = "^[A-Z0-9]{2}$"
NEW_YORK = "America/New_York"

# A registration leads to its owner, who for a light aircraft is often a person: none gets into the
# event log, which everyone with the UI can read.
PERSONAL = {"pii": True}


def clock_time(hhmm: pl.Expr) -> pl.Expr:
    """Clock time 0000 to 2359."""
    return hhmm.is_between(0, 2359) & (hhmm % 100 < 60)


class Flights(dy.Schema):
    """Flights scheduled to leave New York City's airports, one row for each."""

    year = dy.Int32(primary_key=True, description="Of the scheduled departure, local time.")
    month = dy.Int32(primary_key=True, min=1, max=12)
    day = dy.Int32(primary_key=True, min=1, max=31)
    dep_time = dy.Int32(
        nullable=True, check=clock_time, description="HHMM, local time; null if cancelled."
    )
    sched_dep_time = dy.Int32(check=clock_time, description="HHMM, local time.")
    dep_delay = dy.Int32(nullable=True, description="Minutes; early is negative.")
    arr_time = dy.Int32(
        nullable=True, check=clock_time, description="HHMM, the destination's local time."
    )
    sched_arr_time = dy.Int32(check=clock_time, description="HHMM, the destination's local time.")
    arr_delay = dy.Int32(
        nullable=True, description="Minutes; null if cancelled, diverted or not recorded."
    )
    carrier = dy.String(primary_key=True, regex=CARRIER, description="IATA airline code.")
    flight = dy.Int32(primary_key=True, min=1, description="Flight number.")
    tailnum = dy.String(
        nullable=True,
        regex="^N[A-Z0-9]{2,5}$",
        description="Registration; United States registrations begin with N.",
        metadata={**dd.severity(regex="warn"), **PERSONAL},
    )
    origin = dy.String(primary_key=True, regex=AIRPORT, description="FAA airport code.")
    dest = dy.String(regex=AIRPORT, description="FAA airport code.")
    air_time = dy.Int32(nullable=True, min=1, description="Minutes in the air.")
    distance = dy.Int32(min=1, description="Miles.")
    hour = dy.Int32(min=0, max=23, description="Of the scheduled departure, local time.")
    minute = dy.Int32(min=0, max=59)
    time_hour = dy.Datetime(
        time_zone="UTC", resolution="1h", description="Scheduled departure, cut to the hour."
    )

    @dy.rule()
    def cancelled_flights_have_no_times(cls) -> pl.Expr:
        """A flight without a departure time has no delay, arrival or air time."""
        actual = pl.concat_list(
            column.col.is_null()
            for column in (cls.dep_delay, cls.arr_time, cls.arr_delay, cls.air_time)
        )
        return cls.dep_time.col.is_not_null() | actual.list.all()

    @dy.rule()
    def hour_and_minute_are_the_scheduled_departure(cls) -> pl.Expr:
        """`hour` and `minute` are the parts of `sched_dep_time`."""
        return cls.hour.col * 100 + cls.minute.col == cls.sched_dep_time.col

    @dy.rule()
    def time_hour_is_the_local_hour(cls) -> pl.Expr:
        """`time_hour` is `year`, `month`, `day` and `hour` in New York's time zone."""
        local = cls.time_hour.col.dt.convert_time_zone(NEW_YORK).dt
        return (
            (local.year() == cls.year.col)
            & (local.month() == cls.month.col)
            & (local.day() == cls.day.col)
            & (local.hour() == cls.hour.col)
        )


class Weather(dy.Schema):
    """Hourly weather at New York City's airports, one row for each airport and local hour."""

    origin = dy.String(primary_key=True, regex=AIRPORT, description="FAA code of the station.")
    year = dy.Int32(primary_key=True, description="Local time.")
    month = dy.Int32(primary_key=True, min=1, max=12)
    day = dy.Int32(primary_key=True, min=1, max=31)
    hour = dy.Int32(primary_key=True, min=0, max=23)
    temp = dy.Float64(nullable=True, min=-60.0, max=130.0, description="°F.")
    dewp = dy.Float64(nullable=True, min=-60.0, max=130.0, description="Dew point, °F.")
    humid = dy.Float64(nullable=True, min=0.0, max=100.0, description="Relative humidity, percent.")
    wind_dir = dy.Int32(
        nullable=True,
        min=0,
        max=360,
        check={"tens": lambda degrees: degrees % 10 == 0},
        description="Degrees; 0 is calm, 360 north.",
    )
    wind_speed = dy.Float64(
        nullable=True,
        min=0.0,
        max=253.0,
        description="mph; no gust above 253 was ever measured outside a tornado.",
    )
    wind_gust = dy.Float64(nullable=True, min=0.0, max=253.0, description="mph.")
    precip = dy.Float64(min=0.0, max=20.0, description="Inches.")
    pressure = dy.Float64(
        nullable=True, min=870.0, max=1085.0, description="At sea level, millibars."
    )
    visib = dy.Float64(min=0.0, max=10.0, description="Visibility, miles; 10 is 10 or more.")
    time_hour = dy.Datetime(time_zone="UTC", resolution="1h")

    @dy.rule()
    def dew_point_is_not_above_temperature(cls) -> pl.Expr:
        """The dew point is at most the temperature."""
        return cls.dewp.col <= cls.temp.col

    @dy.rule()
    def gusts_exceed_the_wind_speed(cls) -> pl.Expr:
        """A gust is faster than the wind."""
        return cls.wind_gust.col > cls.wind_speed.col

    @dy.rule()
    def every_airport_reports(cls) -> pl.Expr:
        """All three airports have weather; a drop without one of them is no fault of any row."""
        return cls.origin.col.n_unique() == len(ORIGINS)


class Airports(dy.Schema):
    """Airports of the United States, one row for each."""

    faa = dy.String(primary_key=True, regex="^[A-Z0-9]{3}$", description="FAA code.")
    name = dy.String(min_length=1)
    lat = dy.Float64(
        min=-15.0, max=71.5, description="Degrees north; from American Samoa to Point Barrow."
    )
    lon = dy.Float64(min=-180.0, max=180.0, description="Degrees east.")
    alt = dy.Int32(min=-1500, max=15000, description="Feet above sea level.")
    tz = dy.Int32(min=-11, max=-4, description="Offset from UTC, hours.")
    dst = dy.String(
        regex="^[ANU]$", description="Summer time: A as in the United States, N none, U unknown."
    )
    tzone = dy.String(nullable=True, regex="^[A-Z][A-Za-z]+/[A-Za-z_]+$", description="IANA name.")


class Airlines(dy.Schema):
    """Carriers, one row for each."""

    carrier = dy.String(primary_key=True, regex=CARRIER, description="IATA airline code.")
    name = dy.String(min_length=1, unique=True)


class Planes(dy.Schema):
    """Planes registered in the United States, one row for each."""

    tailnum = dy.String(
        primary_key=True,
        regex="^N[1-9][0-9]{0,4}[A-Z]{0,2}$",
        description="Registration.",
        metadata=PERSONAL,
    )
    year = dy.Int32(nullable=True, min=1903, max=2013, description="Of manufacture.")
    type = dy.String(min_length=1)
    manufacturer = dy.String(min_length=1)
    model = dy.String(min_length=1)
    engines = dy.Int32(min=1, max=4)
    seats = dy.Int32(min=1, max=853)
    speed = dy.Int32(nullable=True, min=1, description="Cruising speed, mph; mostly not given.")
    engine = dy.String(min_length=1, description="Kind of engine.")


class FlightReferences(dy.Collection):
    """Flights, and the tables that say what their codes stand for."""

    flights: dy.LazyFrame[Flights]
    # These have keys of their own: they are looked up, and lose no row to a filter.
    planes: Annotated[dy.LazyFrame[Planes], dy.CollectionMember(ignored_in_filters=True)]
    airports: Annotated[dy.LazyFrame[Airports], dy.CollectionMember(ignored_in_filters=True)]

    @dy.filter()
    def plane_is_known(self) -> pl.LazyFrame:
        """The flight has a tail number, and `planes` has it too."""
        return self.flights.join(self.planes, on="tailnum", how="semi")

    @dy.filter()
    def dest_is_known(self) -> pl.LazyFrame:
        """`airports` has the destination."""
        return self.flights.join(self.airports, left_on="dest", right_on="faa", how="semi")


class Departures(dy.Schema):
    """Flights with their planes and the weather at departure, one row for each."""

    date = dy.Date(primary_key=True, description="Of the scheduled departure, local time.")
    origin = dy.String(primary_key=True, regex=AIRPORT)
    carrier = dy.String(primary_key=True, regex=CARRIER)
    flight = dy.Int32(primary_key=True, min=1, description="Flight number.")
    dest = dy.String(regex=AIRPORT)
    time_hour = dy.Datetime(time_zone="UTC", resolution="1h")
    cancelled = dy.Bool()
    dep_delay = dy.Int32(nullable=True, description="Minutes; early is negative.")
    arr_delay = dy.Int32(nullable=True, description="Minutes; early is negative.")
    tailnum = dy.String(nullable=True, description="Registration.", metadata=PERSONAL)
    manufacturer = dy.String(nullable=True, description="Null where the plane is not known.")
    seats = dy.Int32(nullable=True, min=1, description="Null where the plane is not known.")
    plane_year = dy.Int32(nullable=True, description="Of manufacture.")
    temp = dy.Float64(nullable=True, description="°F.")
    wind_speed = dy.Float64(nullable=True, min=0.0, description="mph.")
    precip = dy.Float64(nullable=True, min=0.0, description="Inches.")
    visib = dy.Float64(nullable=True, min=0.0, max=10.0, description="Visibility, miles.")

    @dd.rule(severity="warn")
    def plane_is_known(cls) -> pl.Expr:
        """The flight has a tail number, and `planes` has it too."""
        return cls.seats.col.is_not_null()


class RouteDelays(dy.Schema):
    """Delays and cancellations, one row for each origin, destination and carrier."""

    origin = dy.String(primary_key=True, regex=AIRPORT)
    dest = dy.String(primary_key=True, regex=AIRPORT)
    carrier = dy.String(primary_key=True, regex=CARRIER)
    flights = dy.Int64(min=1, description="Scheduled flights.")
    cancelled = dy.Int64(min=0, description="Flights that never left.")
    cancelled_share = dy.Float64(min=0.0, max=1.0, description="0 to 1.")
    mean_dep_delay = dy.Float64(
        nullable=True, description="Minutes, over the flights that left; null if none did."
    )
    mean_arr_delay = dy.Float64(
        nullable=True, description="Minutes, over the flights with a recorded arrival delay."
    )

    @dy.rule()
    def cancelled_flights_were_scheduled(cls) -> pl.Expr:
        """`cancelled` is at most `flights`."""
        return cls.cancelled.col <= cls.flights.col

    @dy.rule()
    def a_mean_needs_a_departure(cls) -> pl.Expr:
        """`mean_dep_delay` is null exactly where every flight was cancelled."""
        return cls.mean_dep_delay.col.is_null() == (cls.cancelled.col == cls.flights.col)


class LaguardiaRoutes(dy.Schema):
    """Where flights from LaGuardia go, one row for each destination."""

    dest = dy.String(primary_key=True, regex=AIRPORT)
    flights = dy.Int64(min=1, description="Scheduled flights.")
    distance = dy.Int32(min=1, description="Miles.")

    @dy.rule()
    def within_the_perimeter(cls) -> pl.Expr:
        """No destination is farther than 1,500 miles: an airport rule since 1984, but for Denver."""
        return (cls.distance.col <= 1500) | (cls.dest.col == "DEN")


class CarrierMonths(dy.Schema):
    """Cancellations and lateness, one row for each month, origin and carrier."""

    month = dy.Date(primary_key=True, resolution="1mo", description="Its first day.")
    origin = dy.String(primary_key=True, regex=AIRPORT)
    carrier = dy.String(primary_key=True, regex=CARRIER)
    flights = dy.Int64(min=1, description="Scheduled flights.")
    cancelled = dy.Int64(min=0, description="Flights that never left.")
    hours_late = dy.Decimal(
        10, 2, min=Decimal(0), description="Of late arrivals; exact, so that sums add up."
    )


class CarrierTotals(dy.Schema):
    """Cancellations and lateness over all months, one row for each carrier."""

    carrier = dy.String(primary_key=True, regex=CARRIER)
    flights = dy.Int64(min=1, description="Scheduled flights.")
    cancelled = dy.Int64(min=0, description="Flights that never left.")
    hours_late = dy.Decimal(12, 2, min=Decimal(0), description="Of late arrivals.")

    @dy.rule()
    def cancelled_flights_were_scheduled(cls) -> pl.Expr:
        """`cancelled` is at most `flights`."""
        return cls.cancelled.col <= cls.flights.col


class CarrierRanking(dy.Schema):
    """Carriers by punctuality, most punctual first."""

    rank = dy.Int64(primary_key=True, min=1)
    carrier = dy.String(unique=True, regex=CARRIER)
    name = dy.String(min_length=1)
    flights = dy.Int64(min=1, description="Scheduled flights.")
    hours_late = dy.Decimal(12, 2, min=Decimal(0), description="Of late arrivals.")
    minutes_late_per_flight = dy.Float64(min=0.0, description="Early arrivals count as 0.")


class UsualCancellations(dy.Schema):
    """The share of flights cancelled in the last ordinary month, one row for each airport."""

    origin = dy.String(primary_key=True, regex=AIRPORT)
    month = dy.Date(resolution="1mo", description="Its first day.")
    flights = dy.Int64(min=1, description="Scheduled flights.")
    share = dy.Float64(min=0.0, max=0.04, description="0 to 1; above 0.04 no month is ordinary.")


class QuarantineTriage(dy.Schema):
    """How many quarantined rows fail a rule, one row for each table and rule."""

    table = dy.String(primary_key=True)
    rule = dy.String(primary_key=True)
    rows = dy.Int64(min=1)
