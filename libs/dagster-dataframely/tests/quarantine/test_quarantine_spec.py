"""The key of a quarantine in the graph, and its spec."""

from typing import Any

import dagster as dg
import polars as pl
import pytest
from support.declare import declare
from support.sales import DAYS, ERROR_ROWS, SALES, SURVIVORS, Sales
from support.storage import FileIOManager

import dagster_dataframely as dd


@pytest.mark.parametrize("in_the_job", [True, False])
def test_an_asset_under_the_quarantines_key_fails_the_run_before_the_function(
    files: FileIOManager, instance: dg.DagsterInstance, *, in_the_job: bool
) -> None:
    executions = []

    @dd.asset(Sales, quarantine=True, key_prefix="shop")
    def sales() -> pl.DataFrame:
        executions.append(1)
        return SALES

    @dg.asset(key_prefix="shop")
    def sales_quarantine() -> pl.DataFrame:
        return SALES

    # The other asset runs after this one, so that only the key can be what fails the run.
    selection = ["shop/sales", "shop/sales_quarantine"] if in_the_job else ["shop/sales"]
    defs = dg.Definitions(
        assets=[sales, sales_quarantine],
        jobs=[dg.define_asset_job("job", selection=selection)],
        resources={"io_manager": files},
    )
    job = defs.resolve_job_def("job")
    with pytest.raises(dd.errors.QuarantineKeyCollisionError) as caught:
        job.execute_in_process(instance=instance, asset_selection=[sales.key])
    assert (caught.value.asset, caught.value.quarantine_key) == (
        "shop/sales",
        "shop/sales_quarantine",
    )
    assert "`shop/sales`" in str(caught.value)
    assert "`shop/sales_quarantine`" in str(caught.value)
    assert executions == []
    assert files.files == []


def test_a_quarantine_spec_under_the_quarantines_key_is_no_collision(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    sales = declare(Sales, SALES, quarantine=True)
    defs = dg.Definitions(
        assets=[sales, dd.build_quarantine_spec(Sales, sales)],
        jobs=[dg.define_asset_job("job", selection=[sales])],
        resources={"io_manager": files},
    )
    assert defs.resolve_job_def("job").execute_in_process(instance=instance).success
    assert files.files == ["sales.parquet", "sales_quarantine.parquet"]


def test_an_asset_without_a_quarantine_collides_with_nothing(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    @dg.asset
    def sales_quarantine() -> pl.DataFrame:
        return SALES

    result = dg.materialize(
        [declare(Sales, SURVIVORS, quarantine=False), sales_quarantine],
        instance=instance,
        resources={"io_manager": files},
    )
    assert result.success
    assert files.files == ["sales.parquet", "sales_quarantine.parquet"]


@pytest.mark.parametrize(
    "asset",
    [
        "sales",
        ["shop", "sales"],
        dg.AssetKey(["shop", "sales"]),
        declare(Sales, SALES, quarantine=True, key_prefix="shop"),
    ],
    ids=["name", "list", "key", "definition"],
)
def test_a_quarantine_spec_takes_a_definition_or_a_key(asset: Any) -> None:
    spec = dd.build_quarantine_spec(Sales, asset)
    prefix = [] if asset == "sales" else ["shop"]
    assert spec.key == dg.AssetKey([*prefix, "sales_quarantine"])
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey([*prefix, "sales"])]
    assert spec.partitions_def is None
    assert spec.description is not None
    assert spec.description.startswith(f"Invalid rows from `{'/'.join([*prefix, 'sales'])}`")
    defs = dg.Definitions(
        assets=[declare(Sales, SALES, quarantine=True, key_prefix=prefix or None), spec]
    )
    assert spec.key in defs.resolve_asset_graph().external_asset_keys


def test_a_quarantine_spec_lists_columns_without_constraints_then_rule_columns() -> None:
    table = dd.build_quarantine_spec(Sales, "sales").metadata["dagster/column_schema"]
    assert table.constraints == dg.TableConstraints(other=[])
    assert [(column.name, column.type, column.constraints) for column in table.columns] == [
        (name, str(dtype), dg.TableColumnConstraints()) for name, dtype in ERROR_ROWS.schema.items()
    ]
    assert table.columns[1].description == "Net."


def test_a_quarantine_spec_has_the_partitions_of_a_definition_or_those_given() -> None:
    sales = declare(Sales, SALES, quarantine=True, partitions_def=DAYS)
    assert dd.build_quarantine_spec(Sales, sales).partitions_def == DAYS
    assert dd.build_quarantine_spec(Sales, "sales", partitions_def=DAYS).partitions_def == DAYS
    with pytest.raises(dg.DagsterInvariantViolationError, match="partitions_def"):
        dd.build_quarantine_spec(Sales, sales, partitions_def=DAYS)


def test_a_quarantine_spec_has_the_definitions_storage_metadata() -> None:
    sales = declare(
        Sales, SALES, quarantine=True, metadata={"partition_expr": "day"}, io_manager_key="lake"
    )
    metadata = dd.build_quarantine_spec(Sales, sales).metadata
    assert metadata["partition_expr"] == "day"
    assert metadata["dagster/io_manager_key"] == "lake"
