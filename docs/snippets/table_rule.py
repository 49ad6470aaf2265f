import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Readings(dy.Schema):
    sensor = dy.String()
    celsius = dy.Float64(min=-60.0)

    @dy.rule()
    def every_sensor_reports(cls) -> pl.Expr:
        """Three sensors or more have sent a reading."""
        return cls.sensor.col.n_unique() >= 3


@dd.asset(Readings, quarantine=True)
def readings() -> pl.DataFrame:
    return pl.DataFrame({"sensor": ["a", "b", "c"], "celsius": [21.5, 20.0, -273.0]})


try:
    dd.testing.invoke(readings)
except dd.errors.ValidationAbortError as error:
    print(error.table_rules, error.counts)
    #> ('every_sensor_reports',) {'celsius|min': 1}
