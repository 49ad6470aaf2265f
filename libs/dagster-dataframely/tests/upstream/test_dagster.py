"""Facts of Dagster that the library is built on."""

import inspect
from typing import Any

import dagster as dg
import polars as pl
import pytest
from dagster._core.decorator_utils import get_type_hints

import dagster_dataframely as dd
from dagster_dataframely._assets.arguments import MAX_KINDS
from dagster_dataframely._assets.asset import DECIDED
from dagster_dataframely._settings import SETTINGS
from dagster_dataframely._upstream import steps


def test_the_decorator_knows_every_argument_of_dg_asset() -> None:
    """A new argument of `dg.asset` has to be forwarded or refused on purpose."""
    upstream = set(inspect.signature(dg.asset).parameters) - {"compute_fn", "kwargs"}
    own = {"schema", "quarantine", "filter", "severities", "unknown", *SETTINGS}
    known = {*inspect.signature(dd.asset).parameters, *DECIDED} - own
    assert upstream - known == set()
    assert known - upstream <= {"is_virtual"}  # Dagster has it from 1.13.


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
