import dagster_dataframely as dd
import dataframely as dy
import polars as pl

# weather.csv.gz: 26,115 rows.
# Arguments in comments hold for these rows: move them into the parentheses.


class Weather(dy.Schema):
    origin = dy.Enum(["EWR", "JFK", "LGA"])  # primary_key=True
    year = dy.Int64()  # min=2013, max=2013
    month = dy.Int64()  # min=1, max=12
    day = dy.Int64()  # min=1, max=31
    hour = dy.Int64()  # min=0, max=23
    temp = dy.Float64(nullable=True)  # min=10.94, max=100.04
    dewp = dy.Float64(nullable=True)  # min=-9.94, max=78.08
    humid = dy.Float64(nullable=True)  # min=12.74, max=100.0
    wind_dir = dy.Int64(nullable=True)  # min=0, max=360
    wind_speed = dy.Float64(nullable=True)  # min=0.0, max=1048.36058
    wind_gust = dy.Float64(nullable=True)  # min=16.11092, max=66.74524
    precip = dy.Float64()  # min=0.0, max=1.21
    pressure = dy.Float64(nullable=True)  # min=983.8, max=1042.1
    visib = dy.Float64()  # min=0.0, max=10.0
    # primary_key=True
    # min=datetime.datetime(2013, 1, 1, 6, 0, tzinfo=zoneinfo.ZoneInfo(key="UTC"))
    # max=datetime.datetime(2013, 12, 30, 23, 0, tzinfo=zoneinfo.ZoneInfo(key="UTC"))
    time_hour = dy.Datetime(time_zone="UTC")


@dd.asset(Weather, quarantine=True)
def weather() -> pl.LazyFrame:
    text = pl.scan_csv(
        "examples/warehouse/data/raw/weather.csv.gz",
        infer_schema=False,
    )
    return dd.parse(Weather, text)
