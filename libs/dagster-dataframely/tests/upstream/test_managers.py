"""Facts of IO managers that the library is built on."""

from typing import Any

import dagster as dg
import polars as pl
import pytest

from dagster_dataframely import _names
from dagster_dataframely._upstream import io_managers, storages


def test_an_io_managers_metadata_wins_over_a_materialize_result_but_not_over_the_context() -> None:
    """Why the column schema goes through `context.add_asset_metadata`."""

    class Manager(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: object) -> None:
            context.add_output_metadata({"result": "manager", "context": "manager"})

        def load_input(self, context: dg.InputContext) -> None: ...

    @dg.asset
    def orders(context: dg.AssetExecutionContext) -> dg.MaterializeResult[int]:
        context.add_asset_metadata({"context": "context"})
        return dg.MaterializeResult(value=1, metadata={"result": "result"})

    result = dg.materialize([orders], resources={"io_manager": Manager()})
    (event,) = result.asset_materializations_for_node("orders")
    assert {key: value.value for key, value in event.metadata.items()} == {
        "result": "manager",
        "context": "context",
    }


def test_what_a_manager_says_passes_through_the_output_context_that_the_step_makes() -> None:
    """`rewriting_manager_metadata` relies on it; the metadata are stored in two events."""

    class Manager(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: int) -> None:
            context.add_output_metadata({"said": obj})

        def load_input(self, context: dg.InputContext) -> None: ...

    @dg.multi_asset(outs={"one": dg.AssetOut(), "two": dg.AssetOut()})
    def both(context: dg.AssetExecutionContext) -> Any:
        key = dg.AssetKey("one")
        with io_managers.rewriting_manager_metadata(
            context, key, lambda said: dict.fromkeys(said, 0)
        ):
            yield dg.Output(1, "one")
            yield dg.Output(2, "two")
        assert "get_output_context" not in vars(context.get_step_execution_context())

    result = dg.materialize([both], resources={"io_manager": Manager()})
    materialized = [
        event.metadata["said"].value for event in result.asset_materializations_for_node("both")
    ]
    handled: list[Any] = [
        event.event_specific_data
        for event in result.all_events
        if event.event_type_value == "HANDLED_OUTPUT"
    ]
    assert materialized == [data.metadata["said"].value for data in handled] == [0, 2]


@pytest.mark.io_managers
def test_what_the_managers_of_dagster_polars_record_of_rows(tmp_path: Any) -> None:
    """Two tables, under the keys that `row_sample` and `statistics` are about."""
    from dagster_polars import PolarsParquetIOManager

    @dg.asset
    def orders() -> pl.DataFrame:
        return pl.DataFrame({"a": [1]})

    manager = PolarsParquetIOManager(base_dir=str(tmp_path))
    result = dg.materialize([orders], resources={"io_manager": manager})
    (event,) = result.asset_materializations_for_node("orders")
    tables = {
        key: [column.name for column in value.schema.columns]
        for key, value in event.metadata.items()
        if isinstance(value, dg.TableMetadataValue)
    }
    assert set(tables) == {_names.POLARS_ROWS, _names.POLARS_STATISTICS}
    assert set(tables[_names.POLARS_STATISTICS]) == {"statistic", "a"}


@pytest.mark.io_managers
def test_the_methods_that_write_are_named_as_they_were() -> None:
    """`written_by` goes by these names, so that it imports no IO manager."""
    from dagster_duckdb_polars import DuckDBPolarsTypeHandler
    from dagster_polars import PolarsDeltaIOManager, PolarsParquetIOManager

    methods = {
        "DuckDB": DuckDBPolarsTypeHandler.handle_output,
        "Delta Lake": PolarsDeltaIOManager.write_df_to_path,
        "Parquet": PolarsParquetIOManager.write_df_to_path,
    }
    names = {name: f"{m.__module__}.{m.__qualname__}" for name, m in methods.items()}
    assert {storage: name for name, storage in storages._WRITES.items()} == names


@pytest.mark.io_managers
def test_a_database_manager_has_a_handler_for_each_type() -> None:
    """Where `bound_storage` finds the method that writes."""
    from dagster_duckdb_polars import DuckDBPolarsIOManager, DuckDBPolarsTypeHandler

    manager = DuckDBPolarsIOManager(database="any").create_io_manager(None)
    assert isinstance(manager._handlers_by_type[pl.DataFrame], DuckDBPolarsTypeHandler)
