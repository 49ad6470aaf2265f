import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Stops(dy.Schema):
    id = dy.Int32(primary_key=True)
    zone = dy.Enum(["A", "B"])


loaded = pl.DataFrame({"id": [1.0, 2.5], "zone": ["A", "C"]})
try:
    dd.strict_cast(Stops, loaded)
except dd.errors.StrictCastError as error:
    for failure in error.failures:
        print(failure.column, failure.changed, failure.example)
        #> id 1 2.5
        #> zone 1 C
