"""Gold tables in a DuckDB file, and the dtypes that come back from it."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import polars as pl
import pytest
import yaml  # type: ignore[import-untyped]
from dagster_duckdb import DuckDBResource
from dagster_duckdb_polars import DuckDBPolarsIOManager

import dagster_dataframely as dd
from dagster_dataframely.components import DataframelyComponent
from warehouse.defs import gold
from warehouse.defs.gold.carriers import (
    carrier_months,
    carrier_ranking,
    carrier_totals,
    rank,
)
from warehouse.partitions import MONTH_AND_ORIGIN
from warehouse.schemas import CarrierMonths, CarrierRanking, CarrierTotals

RULES = Path(gold.__path__[0], "carrier_totals_rules/defs.yaml")
MONTHS = pl.DataFrame(
    [
        (date(2013, 1, 1), "EWR", "UA", 10, 1, Decimal("4.50")),
        (date(2013, 2, 1), "EWR", "UA", 11, 1, Decimal("0.25")),
        (date(2013, 2, 1), "JFK", "HA", 2, 0, Decimal("1.00")),
    ],
    schema=CarrierMonths.create_empty().schema,
    orient="row",
)


@dg.asset
def airlines() -> pl.DataFrame:
    return pl.DataFrame({"carrier": ["HA", "UA"], "name": ["Hawaiian", "United"]})


@dd.asset(CarrierRanking, name="carrier_ranking", io_manager_key="duckdb")
def ranking_without_a_cast(carrier_totals: pl.DataFrame, airlines: pl.DataFrame) -> pl.DataFrame:
    return rank(carrier_totals, airlines)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A file that holds `gold.carrier_months`."""
    path = str(tmp_path / "test.duckdb")
    write(path, MONTHS)
    return path


def write(database: str, months: pl.DataFrame) -> None:
    with duckdb.connect(database) as connection:
        connection.execute("create schema if not exists gold")
        connection.execute("create or replace table gold.carrier_months as select * from months")


def materialize(assets: list[Any], database: str) -> dg.ExecuteInProcessResult:
    resources = {
        "duckdb": DuckDBPolarsIOManager(database=database, schema="gold"),
        "duckdb_file": DuckDBResource(database=database),
        "io_manager": dg.mem_io_manager,
    }
    return dg.materialize(assets, resources=resources, raise_on_error=False)


def read(database: str, table: str) -> pl.DataFrame:
    with duckdb.connect(database, read_only=True) as connection:
        return pl.DataFrame(connection.execute(f"select * from gold.{table}").arrow())


def test_decimals_read_back_do_not_have_the_schemas_dtype(database: str) -> None:
    assert materialize([carrier_totals], database).success
    found = read(database, "carrier_totals").schema
    declared = CarrierTotals.create_empty().schema
    assert {
        name: (found[name], declared[name]) for name in found if found[name] != declared[name]
    } == {
        "flights": (pl.Decimal(38, 0), pl.Int64()),
        "cancelled": (pl.Decimal(38, 0), pl.Int64()),
        "hours_late": (pl.Decimal(38, 2), pl.Decimal(12, 2)),
    }


def test_without_a_cast_the_column_schema_check_fails(database: str) -> None:
    result = materialize([airlines, carrier_totals, ranking_without_a_cast], database)
    assert not result.success
    failed = [each for each in result.get_asset_check_evaluations() if not each.passed]
    assert [check.check_name for check in failed] == ["dy_schema__columns"]
    error = result.failure_data_for_node("carrier_ranking")
    assert error is not None
    assert error.error is not None
    assert "dd.strict_cast(CarrierRanking, frame)" in error.error.message


def test_with_the_cast_the_ranking_is_written(database: str) -> None:
    assert materialize([airlines, carrier_totals, carrier_ranking], database).success
    assert read(database, "carrier_ranking").rows() == [
        (1, "UA", "United", 21, Decimal("4.75"), 15.0),
        (2, "HA", "Hawaiian", 2, Decimal("1.00"), 30.0),
    ]


def test_the_checks_of_a_table_made_in_sql_report_and_keep_nothing_out(database: str) -> None:
    wrong = MONTHS.with_columns(cancelled=pl.lit(20, pl.Int64))
    write(database, wrong)
    specs = dd.wiring.check_specs(CarrierTotals, asset=carrier_totals.key)
    attributes = yaml.safe_load(RULES.read_text())["attributes"]
    (rules,) = DataframelyComponent.from_attributes_dict(attributes=attributes).rule_checks
    result = materialize([carrier_totals, rules.build()], database)
    assert result.success
    checks = result.get_asset_check_evaluations()
    assert {check.check_name for check in checks} == {spec.name for spec in specs}
    failed = [check.check_name for check in checks if not check.passed]
    assert failed == ["dy_rule__cancelled_flights_were_scheduled"]
    assert read(database, "carrier_totals")["cancelled"].to_list() == [20, 40]


def test_a_range_of_months_in_one_run_has_the_counts_of_each(database: str) -> None:
    def flights(month: int, origin: str) -> pl.LazyFrame:
        row = {"year": 2013, "month": month, "origin": origin, "carrier": "UA"}
        dtypes = {"year": pl.Int32, "month": pl.Int32}
        return pl.LazyFrame(row, schema_overrides=dtypes).with_columns(
            dep_time=pl.lit(900, pl.Int32), arr_delay=pl.lit(30, pl.Int32)
        )

    class Cells(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: object) -> None:
            raise NotImplementedError

        def load_input(self, context: dg.InputContext) -> dict[dg.MultiPartitionKey, pl.LazyFrame]:
            cells = [(3, "EWR"), (3, "JFK"), (4, "EWR")]
            return {
                dg.MultiPartitionKey({"month": f"2013-0{month}", "origin": origin}): flights(
                    month, origin
                )
                for month, origin in cells
            }

    result = dg.materialize(
        [carrier_months, dg.AssetSpec("flights", partitions_def=MONTH_AND_ORIGIN)],
        selection=[carrier_months],
        resources={
            "duckdb": DuckDBPolarsIOManager(database=database, schema="gold"),
            "io_manager": Cells(),
        },
        tags={
            "dagster/asset_partition_range_start": "2013-03",
            "dagster/asset_partition_range_end": "2013-05",
        },
    )
    rows = {
        event.partition: event.metadata["dagster/partition_row_count"].value
        for event in result.asset_materializations_for_node("carrier_months")
    }
    assert rows == {"2013-03": 2, "2013-04": 1, "2013-05": 0}
    # The months before stay.
    assert read(database, "carrier_months").height == MONTHS.height + 3
