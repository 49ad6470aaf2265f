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

from dagster_dataframely import _upstream
from dagster_dataframely._asset import REFUSED, DagsterArguments
from dagster_dataframely._declared import MAX_KINDS


def test_the_decorator_knows_every_argument_of_dg_asset() -> None:
    """A new argument of `dg.asset` has to be forwarded or refused on purpose."""
    upstream = set(inspect.signature(dg.asset).parameters) - {"compute_fn", "kwargs"}
    known = {*DagsterArguments.__annotations__, *REFUSED}
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
    assert list(_upstream.rule_factories(Schema)) == ["positive"]
    assert str(_upstream.schema_rule_expressions(Schema)["positive"]()) == str(pl.col("a") > 0)


def test_rules_of_several_bases_merge_as_dataframely_merges_them() -> None:
    def schema(name: str, *bases: type, limit: int | None = None) -> Any:
        rule = {} if limit is None else {"r": dy.rule()(lambda cls: pl.col("a") > limit)}
        return type(name, bases or (dy.Schema,), rule)

    root = type("Root", (dy.Schema,), {"a": dy.Int64()})
    left, right = schema("Left", root, limit=1), schema("Right", root, limit=2)
    both = schema("Both", left, right)
    merged = _upstream.rule_factories(both)["r"].validation_fn(both)
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

    expression = _upstream.schema_rule_expressions(Schema)["grouped"]()
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
    assert _upstream.has_context(function) is expected


def test_outside_a_run_there_is_no_context() -> None:
    assert _upstream.current_run_context(dg.AssetKey("orders")) is None


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


def test_an_expression_for_the_whole_table_fills_every_row_only_with_columns() -> None:
    """Why the rules are evaluated with `with_columns`."""
    frame = pl.DataFrame({"a": [1, 2]})
    total = (pl.col("a").sum() < 5).alias("r")
    assert frame.select(total).height == 1
    assert frame.with_columns(total)["r"].to_list() == [True, True]
