import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Flights(dy.Schema):
    number = dy.Int32(min=1)
    tail = dy.String(nullable=True, regex="^N[A-Z0-9]+$", metadata=dd.severity("warn"))
    delay = dy.Int32(
        min=-120, max=1440, metadata={"unit": "min", **dd.severity(max="warn", nullable="warn")}
    )

    @dd.rule(severity="warn")
    def has_a_plane(cls) -> pl.Expr:
        """The flight has a tail number."""
        return cls.tail.col.is_not_null()


@dd.asset(Flights, quarantine=True, severities={"number|min": "warn"})
def flights() -> pl.DataFrame:
    rows = {"number": [1, 0, 3], "tail": ["N1", "D2", None], "delay": [2000, 5, -500]}
    return pl.DataFrame(rows, schema=Flights.create_empty().schema)


result = dd.testing.invoke(flights)
print(result.table.rows())
print(result.quarantine.select("number", "tail", "delay").rows())
for name in result.failed:
    print(name)
#> [(1, 'N1', 2000), (0, 'D2', 5)]
#> [(3, None, -500)]
#> dy_rule__number__min
#> dy_rule__tail__regex
#> dy_rule__delay__min
#> dy_rule__delay__max
#> dy_rule__has_a_plane
