import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Trips(dy.Schema):
    trip_id = dy.Int64(primary_key=True)
    km = dy.Float64(min=0.0)


@dd.asset(Trips, quarantine=True)
def trips(raw_trips: pl.LazyFrame) -> pl.LazyFrame:
    return raw_trips.with_columns(km=pl.col("meters") / 1000)


raw = pl.LazyFrame({"trip_id": [1, 2, 3], "meters": [1200, -1, 300]})
result = dd.testing.invoke(trips, raw)
print(result.table.rows(), result.quarantine.height)
#> [(1, 1.2), (3, 0.3)] 1
