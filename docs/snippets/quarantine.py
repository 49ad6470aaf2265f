import tempfile
from pathlib import Path

import dagster as dg
import dataframely as dy
import polars as pl
import polars.selectors as cs
from dagster_polars import PolarsParquetIOManager

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


class Triage(dy.Schema):
    """How many rows fail a rule, worst first."""

    rule = dy.String(primary_key=True)
    rows = dy.UInt32(min=1)


@dd.asset(Orders, quarantine=True)
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2, 3, 4, 4], "amount": [9.5, -1.0, float("nan"), 3.0, -2.0]})


orders_quarantine = dd.build_quarantine_spec(Orders, orders)


@dd.asset(Triage)
def triage(orders_quarantine: pl.LazyFrame) -> pl.LazyFrame:
    failures = (cs.starts_with("dy_rule__") == "invalid").sum()
    counts = orders_quarantine.select(failures).unpivot(variable_name="rule", value_name="rows")
    return counts.filter(pl.col("rows") > 0).sort("rows", "rule", descending=[True, False])


with tempfile.TemporaryDirectory() as folder:
    io_manager = PolarsParquetIOManager(base_dir=folder)
    dg.materialize([orders, orders_quarantine, triage], resources={"io_manager": io_manager})
    print(pl.read_parquet(Path(folder, "triage.parquet")).rows())
    #> [('dy_rule__amount__min', 2), ('dy_rule__primary_key', 2), ('dy_rule__amount__nan', 1)]
