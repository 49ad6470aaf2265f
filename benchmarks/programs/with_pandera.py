"""dagster-pandera: the same rules as a pandera schema, checked as the type of the output."""

from pathlib import Path
from typing import Any

import dagster as dg
import pandera.polars as pa
import polars as pl
from dagster_pandera import pandera_schema_to_dagster_type

from benchmarks import lineitem
from benchmarks.programs import Job, Run
from benchmarks.programs.plain import warm_up

MONEY = pl.Decimal(15, 2)
RECEIVED_AFTER_SHIPPED = pa.Check(
    lambda data: data.lazyframe.select(pl.col("l_receiptdate") > pl.col("l_shipdate")),
    name="received_after_shipped",
)
SCHEMA = pa.DataFrameSchema(
    {
        "l_orderkey": pa.Column(pl.Int64),
        "l_partkey": pa.Column(pl.Int64, pa.Check.ge(1)),
        "l_suppkey": pa.Column(pl.Int64, pa.Check.ge(1)),
        "l_linenumber": pa.Column(pl.Int32),
        "l_quantity": pa.Column(MONEY, [pa.Check.ge(1), pa.Check.le(50)]),
        "l_extendedprice": pa.Column(MONEY),
        "l_discount": pa.Column(MONEY),
        "l_tax": pa.Column(MONEY),
        "l_returnflag": pa.Column(pl.String, pa.Check.str_matches(r"^[ANR]$")),
        "l_linestatus": pa.Column(pl.String, pa.Check.isin(lineitem.STATUS)),
        "l_shipdate": pa.Column(pl.Date),
        "l_commitdate": pa.Column(pl.Date),
        "l_receiptdate": pa.Column(pl.Date),
        "l_shipinstruct": pa.Column(pl.String),
        "l_shipmode": pa.Column(pl.String, pa.Check.isin(lineitem.MODES)),
        "l_comment": pa.Column(
            pl.String, pa.Check.str_length(max_value=lineitem.LONGEST_COMMENT), nullable=True
        ),
    },
    checks=RECEIVED_AFTER_SHIPPED,
    unique=["l_orderkey", "l_linenumber"],
    name="Lineitem",
)


class ParquetIOManager(dg.ConfigurableIOManager):
    """Only writes: dagster-polars does not know the type of this output."""

    path: str

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        obj.write_parquet(self.path)

    def load_input(self, context: dg.InputContext) -> Any:
        return pl.read_parquet(self.path)


def lazy(job: Job) -> Run:
    """A lazy frame of rows that pass, collected in the asset: a lazy frame is refused."""
    rows = lineitem.plan(job.source, clean=True)

    @dg.asset(dagster_type=pandera_schema_to_dagster_type(SCHEMA))
    def table() -> Any:
        return rows.collect()

    return _materialize(table, job.folder)


def frame(job: Job) -> Run:
    """A data frame of rows that pass, in memory before the clock starts."""
    rows = lineitem.plan(job.source, clean=True).collect()

    @dg.asset(dagster_type=pandera_schema_to_dagster_type(SCHEMA))
    def table() -> Any:
        return rows

    return _materialize(table, job.folder)


def _materialize(table: dg.AssetsDefinition, folder: Path) -> Run:
    warm_up()
    manager = ParquetIOManager(path=str(folder / "table.parquet"))

    def run() -> None:
        dg.materialize([table], resources={"io_manager": manager})

    return run
