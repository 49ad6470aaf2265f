"""What a run reports: metadata of the materialization and of the checks."""

import dagster as dg
import polars as pl
import pytest
from support.declare import declare
from support.execution import Execute
from support.orders import (
    ALL_BAD,
    ALL_CHECKS,
    CLEAN,
    DRIFTED,
    SOME,
    Orders,
    quarantined,
)
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely.data import OrdersSchema, valid_orders

OWN_METADATA = {
    "dagster/column_schema",
    "dataframely/report",
    "dataframely/failures_by_rule",
    "dagster/row_count",
    "dataframely/rows_in",
    "dataframely/rows_written",
    "dataframely/error_rows",
    "dataframely/error_share",
    "dataframely/valid_sample",
    "dataframely/valid_stats/numeric",
    "dataframely/valid_stats/string",
}


QUARANTINE_METADATA = {
    "dataframely/quarantine_address",
    "dataframely/invalid_count",
    "dataframely/invalid_sample",
    "dataframely/invalid_by_rules",
}


@pytest.mark.parametrize(
    ("frame", "expected_keys", "expected_numbers"),
    [
        pytest.param(CLEAN, OWN_METADATA, (3, 3, 0, 0.0), id="clean"),
        pytest.param(SOME, OWN_METADATA | QUARANTINE_METADATA, (5, 1, 4, 0.8), id="error rows"),
    ],
)
def test_materialization_counts_rows_and_describes_error_rows_only_where_there_are_any(
    execute: Execute,
    frame: pl.DataFrame,
    expected_keys: set[str],
    expected_numbers: tuple[int, int, int, float],
) -> None:
    metadata = execute(declare(Orders, frame, quarantine=True)).metadata
    assert metadata is not None
    assert metadata.keys() - {"path"} == expected_keys
    names = ("rows_in", "rows_written", "error_rows", "error_share")
    assert tuple(metadata[f"dataframely/{name}"] for name in names) == expected_numbers
    assert metadata["dagster/row_count"] == metadata["dataframely/rows_written"]


def test_materialization_says_where_error_rows_are_and_which_rules_they_fail(
    run: Execute, files: FileIOManager
) -> None:
    metadata = run(declare(Orders, SOME, quarantine=True)).metadata
    assert metadata is not None
    address = metadata["dataframely/quarantine_address"]
    assert address == f"orders_quarantine at {files.root / 'orders_quarantine.parquet'}"
    assert metadata["dataframely/invalid_count"] == 4
    assert [dict(row.data) for row in metadata["dataframely/invalid_by_rules"].records] == [
        {"rules": "amount|min", "rows": 2},
        {"rules": "primary_key", "rows": 2},
    ]
    sampled = [dict(row.data) for row in metadata["dataframely/invalid_sample"].records]
    rows = quarantined(
        SOME[1:],
        row0=["dy_rule__amount__min"],
        row1=["dy_rule__primary_key"],
        row2=["dy_rule__primary_key"],
        row3=["dy_rule__amount__min"],
    )
    assert sampled == rows.to_dicts()


def test_every_check_says_where_the_rows_are_when_none_survives(execute: Execute) -> None:
    outcome = execute(declare(Orders, ALL_BAD, quarantine=True))
    addresses = {
        name: metadata.get("dataframely/quarantine_address")
        for name, metadata in outcome.check_metadata.items()
    }
    assert list(addresses) == ALL_CHECKS
    (address,) = set(addresses.values())
    assert address is not None
    assert address.endswith("orders_quarantine.parquet")
    assert "orders_quarantine.parquet" in outcome.message


@pytest.mark.parametrize(
    ("frame", "quarantine"),
    [(SOME, False), (SOME, True), (ALL_BAD, True)],
    ids=["abort", "set aside", "nothing survives"],
)
def test_rule_checks_count_and_sample_failing_rows(
    execute: Execute, frame: pl.DataFrame, *, quarantine: bool
) -> None:
    outcome = execute(declare(Orders, frame, quarantine=quarantine))
    negative = frame.filter(pl.col("amount") < 0)
    metadata = outcome.check_metadata["dy_rule__amount__min"]
    assert metadata["dy_rule"] == "amount|min"
    assert metadata["dy_failed_count"] == negative.height
    assert [dict(row.data) for row in metadata["dy_failed_sample"].records] == negative.to_dicts()
    passed = outcome.check_metadata["dy_rule__id__nullability"]
    assert passed["dy_failed_count"] == 0
    assert "dy_failed_sample" not in passed


def test_the_column_schema_check_lists_every_mismatch(execute: Execute) -> None:
    metadata = execute(declare(Orders, DRIFTED)).check_metadata["dy_schema__columns"]
    assert [dict(row.data) for row in metadata["dy_schema__errors"].records] == [
        {"column": "id", "expected": "Int64", "found": "missing"},
        {"column": "amount", "expected": "Float64", "found": "String"},
        {"column": "note", "expected": "String", "found": "Int64"},
    ]


def test_what_the_context_is_told_wins_over_all_but_the_columns(files: FileIOManager) -> None:
    told = {"dagster/row_count": 999, "dagster/column_schema": dg.TableSchema([]), "mine": 1}

    @dd.asset(OrdersSchema)
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        context.add_asset_metadata(told)
        return valid_orders()

    result = dg.materialize([orders], resources={"io_manager": files})
    (event,) = result.asset_materializations_for_node("orders")
    values = {key: event.metadata[key].value for key in told}
    declared = orders.metadata_by_key[dg.AssetKey("orders")]["dagster/column_schema"]
    assert values == {"dagster/row_count": 999, "dagster/column_schema": declared, "mine": 1}
    with pytest.raises(AttributeError):
        dd.testing.invoke(orders)
