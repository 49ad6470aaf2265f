"""Facts of Dagster, Dataframely and Polars that the library is built on.

A failure here says which of them changed, and what rests on it.
"""

import inspect
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster._core.decorator_utils import get_type_hints
from dataframely._rule import RuleFactory

import dagster_dataframely as dd
from dagster_dataframely import _names
from dagster_dataframely._assets.arguments import MAX_KINDS
from dagster_dataframely._assets.asset import DECIDED
from dagster_dataframely._settings import SETTINGS
from dagster_dataframely._upstream import dataframely, io_managers, steps


def test_the_decorator_knows_every_argument_of_dg_asset() -> None:
    """A new argument of `dg.asset` has to be forwarded or refused on purpose."""
    upstream = set(inspect.signature(dg.asset).parameters) - {"compute_fn", "kwargs"}
    own = {"schema", "quarantine", "filter", "severities", "unknown", *SETTINGS}
    known = {*inspect.signature(dd.asset).parameters, *DECIDED} - own
    assert upstream - known == set()
    assert known - upstream <= {"is_virtual"}  # Dagster has it from 1.13.


def test_a_schemas_own_rules_have_no_public_list() -> None:
    """`schema_rule_expressions` and `rule_factories` read these two private places."""

    class Schema(dy.Schema):
        a = dy.Int64()

        @dy.rule()
        def positive(cls) -> pl.Expr:
            return cls.a.col > 0

    assert isinstance(Schema.__dict__["positive"], RuleFactory)
    assert list(Schema._schema_validation_rules()) == ["positive"]
    assert list(dataframely.rule_factories(Schema)) == ["positive"]
    assert str(dataframely.schema_rule_expressions(Schema)["positive"]()) == str(pl.col("a") > 0)


def test_rules_of_several_bases_merge_as_dataframely_merges_them() -> None:
    def schema(name: str, *bases: type, limit: int | None = None) -> Any:
        rule = {} if limit is None else {"r": dy.rule()(lambda cls: pl.col("a") > limit)}
        return type(name, bases or (dy.Schema,), rule)

    root = type("Root", (dy.Schema,), {"a": dy.Int64()})
    left, right = schema("Left", root, limit=1), schema("Right", root, limit=2)
    both = schema("Both", left, right)
    merged = dataframely.rule_factories(both)["r"].validation_fn(both)
    assert str(merged) == str(both._schema_validation_rules()["r"].expr)


def test_a_rule_of_dataframely_2_for_a_group_is_evaluated_over_the_group() -> None:
    """Dataframely 3 has no `group_by=`; 2 makes such a rule an object with `group_columns`."""

    class Grouped:
        expr = pl.col("a").sum() > 1
        group_columns = ("g", "h")

    class Schema(dy.Schema):
        @classmethod
        def _schema_validation_rules(cls) -> dict[str, Any]:
            return {"grouped": Grouped()}

    expression = dataframely.schema_rule_expressions(Schema)["grouped"]()
    frame = pl.DataFrame({"a": [1, 1, 1], "g": [1, 1, None], "h": [2, 2, 2]})
    assert frame.select(expression).to_series().to_list() == [True, True, False]


def test_a_null_rule_value_is_valid() -> None:
    class Schema(dy.Schema):
        a = dy.Int64(nullable=True, min=1)

    assert Schema.is_valid(pl.DataFrame({"a": [None]}, schema={"a": pl.Int64}))


def test_annotations_are_resolved_in_the_functions_own_module() -> None:
    """`_with_context` relies on it; a wrapper's explicit signature is resolved in the wrapper's."""

    def function(a: "pl.DataFrame") -> None: ...

    assert get_type_hints(function)["a"] is pl.DataFrame


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda context, a: None, True),
        (lambda _context, a: None, True),
        (lambda _, a: None, True),
        (lambda a, context: None, False),
        (lambda: None, False),
    ],
)
def test_dagster_knows_a_context_by_its_name(function: Any, *, expected: bool) -> None:
    assert steps.has_context(function) is expected


def test_outside_a_run_there_is_no_context() -> None:
    assert steps.current_run_context(dg.AssetKey("orders")) is None


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


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("no bucket"),
        dg.Failure("no bucket"),
        dg.RetryRequested(max_retries=1),
        KeyboardInterrupt(),
        SystemExit(1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_step_says_in_its_log_that_it_fails_and_does_not_close_its_function(
    error: BaseException | None,
) -> None:
    """`on_step_failure` relies on it, and is needed because of it."""
    attempts: list[list[str]] = []

    class Manager(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: int) -> None:
            if error is not None and len(attempts) == 1:
                raise error

        def load_input(self, context: dg.InputContext) -> None: ...

    @dg.asset
    def orders() -> Any:
        attempts.append(seen := [])
        steps.on_step_failure(lambda: seen.append("told"))
        steps.on_step_failure(lambda: seen.append("told too"))
        try:
            yield dg.Output(1)
        finally:
            seen.append("done")

    resources = {"io_manager": Manager()}
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        with pytest.raises(BaseException) as _raised:  # noqa: PT011 - Dagster may wrap it.
            dg.materialize([orders], resources=resources)
    else:
        dg.materialize([orders], resources=resources, raise_on_error=False)
    failed = [] if error is None else [["told too", "told"]]
    succeeded = [["done"]] if error is None or isinstance(error, dg.RetryRequested) else []
    assert attempts == failed + succeeded


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


def test_a_failed_blocking_check_does_not_keep_the_table_from_being_written() -> None:
    """Why an aborted run yields no output at all."""
    written = []

    class Manager(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: object) -> None:
            written.append(obj)

        def load_input(self, context: dg.InputContext) -> None: ...

    @dg.asset(check_specs=[dg.AssetCheckSpec("c", asset="orders", blocking=True)])
    def orders() -> Any:
        yield dg.AssetCheckResult(passed=False)
        yield dg.MaterializeResult(value=1)

    result = dg.materialize([orders], resources={"io_manager": Manager()}, raise_on_error=False)
    assert (result.success, written) == (False, [1])


def test_check_names_have_dagsters_alphabet() -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError):

        @dg.asset(check_specs=[dg.AssetCheckSpec("a|b", asset="orders")])
        def orders() -> Any:
            yield dg.MaterializeResult()


def test_ten_kinds_are_the_most() -> None:
    """`asset` adds `polars` only where that leaves room for it."""
    dg.AssetSpec("orders", kinds={str(kind) for kind in range(MAX_KINDS)})
    with pytest.raises(dg.DagsterInvalidDefinitionError):
        dg.AssetSpec("orders", kinds={str(kind) for kind in range(MAX_KINDS + 1)})


def test_a_partitioned_check_spec_is_in_preview() -> None:
    """`build_check_specs` silences exactly this warning."""
    partitions = dg.StaticPartitionsDefinition(["a"])
    with pytest.warns(dg.PreviewWarning, match="partitions_def"):
        dg.AssetCheckSpec("c", asset="orders", partitions_def=partitions)


@pytest.mark.parametrize("job", ["checks", "everything"])
def test_a_step_has_the_io_managers_of_what_it_depends_on(job: str) -> None:
    """Why checks find the manager of a stored asset without taking it as an input."""
    found: list[object] = []

    @dg.asset(io_manager_key="lake")
    def inside() -> int:
        return 1

    specs = [dg.AssetCheckSpec("c", asset="inside", additional_deps=["outside"])]

    @dg.multi_asset_check(specs=specs, can_subset=True)
    def check(context: dg.AssetCheckExecutionContext) -> Any:
        found.extend(context.get_step_execution_context().resources._asdict())
        yield dg.AssetCheckResult(passed=True)

    outside = dg.AssetSpec("outside", metadata={"dagster/io_manager_key": "shore"})
    selection: dg.AssetSelection = dg.AssetSelection.checks(check)
    if job == "everything":
        selection |= dg.AssetSelection.assets(inside)
    defs = dg.Definitions(
        assets=[inside, outside],
        asset_checks=[check],
        jobs=[dg.define_asset_job("job", selection)],
        resources={"lake": dg.mem_io_manager, "shore": dg.mem_io_manager, "far": dg.mem_io_manager},
    )
    assert defs.resolve_job_def("job").execute_in_process().success
    assert {"lake", "shore"} <= set(found)
    assert "far" not in found


def test_a_run_without_a_partition_can_only_yield_the_evaluation_of_a_partition(
    instance: dg.DagsterInstance,
) -> None:
    """Why `evaluation_of_partition` makes the event that a result becomes."""
    partitions = dg.StaticPartitionsDefinition(["a"])
    with steps.disable_dagster_warnings():
        spec = dg.AssetCheckSpec("c", asset="orders", partitions_def=partitions)

    @dg.asset(partitions_def=partitions)
    def orders() -> None: ...

    @dg.multi_asset_check(specs=[spec], can_subset=True)
    def check(context: dg.AssetCheckExecutionContext) -> Any:
        result = dg.AssetCheckResult(asset_key="orders", check_name="c", passed=False)
        yield steps.evaluation_of_partition(context, result, "a")
        raise RuntimeError

    defs = dg.Definitions(
        assets=[orders],
        asset_checks=[check],
        jobs=[dg.define_asset_job("job", dg.AssetSelection.checks(check))],
    )
    job = defs.resolve_job_def("job")
    assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    infos = instance.event_log_storage.get_asset_check_partition_info([spec.key])
    # It is stored at once, before the step fails; that of the whole asset stays planned.
    assert {info.partition_key: info.latest_execution_status.value for info in infos} == {
        None: "PLANNED",
        "a": "FAILED",
    }


def test_filters_of_a_collection_have_no_public_list() -> None:
    """`collection_filters` reads them, and `Collection.cast` makes an instance without validation."""

    class Schema(dy.Schema):
        a = dy.Int64(primary_key=True, min=0)

    class Collection(dy.Collection):
        member: dy.LazyFrame[Schema]

        @dy.filter()
        def positive(self) -> pl.LazyFrame:
            return self.member.filter(pl.col("a") > 0)

    (logic,) = dataframely.collection_filters(Collection).values()
    instance = Collection.cast({"member": pl.LazyFrame({"a": [-1, 1, 1]})})
    assert logic(instance).collect()["a"].to_list() == [1, 1]
    assert list(dataframely.collection_filters(Collection)) == ["positive"]


def test_an_expression_for_the_whole_table_fills_every_row_only_with_columns() -> None:
    """Why the rules are evaluated with `with_columns`."""
    frame = pl.DataFrame({"a": [1, 2]})
    total = (pl.col("a").sum() < 5).alias("r")
    assert frame.select(total).height == 1
    assert frame.with_columns(total)["r"].to_list() == [True, True]


@pytest.mark.io_managers
def test_the_methods_that_write_are_named_as_they_were() -> None:
    """`bound_storage` goes by these names, so that it imports no IO manager."""
    from dagster_duckdb_polars import DuckDBPolarsTypeHandler
    from dagster_polars import PolarsDeltaIOManager, PolarsParquetIOManager

    methods = {
        "DuckDB": DuckDBPolarsTypeHandler.handle_output,
        "Delta Lake": PolarsDeltaIOManager.write_df_to_path,
        "Parquet": PolarsParquetIOManager.write_df_to_path,
    }
    names = {name: f"{m.__module__}.{m.__qualname__}" for name, m in methods.items()}
    assert {storage: name for name, storage in io_managers._STORAGES.items()} == names


@pytest.mark.io_managers
def test_a_database_manager_has_a_handler_for_each_type() -> None:
    """Where `bound_storage` finds the method that writes."""
    from dagster_duckdb_polars import DuckDBPolarsIOManager, DuckDBPolarsTypeHandler

    manager = DuckDBPolarsIOManager(database="any").create_io_manager(None)
    assert isinstance(manager._handlers_by_type[pl.DataFrame], DuckDBPolarsTypeHandler)
