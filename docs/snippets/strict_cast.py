import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Departures(dy.Schema):
    flight = dy.Int32(primary_key=True)
    carrier = dy.Enum(["AA", "UA"])
    delay = dy.Int16(nullable=True)


@dg.asset
def raw_departures() -> pl.DataFrame:
    rows = {"carrier": ["UA", "AA", "ZZ"], "flight": [1.0, 2.0, 3.0], "delay": [5.0, None, 7.5]}
    return pl.DataFrame(rows)


@dd.asset(Departures)
def departures(raw_departures: pl.DataFrame) -> pl.DataFrame:
    return dd.strict_cast(Departures, raw_departures)


result = dg.materialize(
    [raw_departures, departures],
    resources={"io_manager": dg.mem_io_manager},
    raise_on_error=False,
)
print(result.success)
#> False

try:
    dd.strict_cast(Departures, result.output_for_node("raw_departures"))
except dd.errors.StrictCastError as error:
    for failure in error.failures:
        print(failure.column, failure.changed, failure.example)
        #> carrier 1 ZZ
        #> delay 1 7.5
