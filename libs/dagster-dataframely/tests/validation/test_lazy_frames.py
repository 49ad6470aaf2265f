"""A lazy frame runs once, and its error fails the run."""

import math
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Execute
from support.points import CLEAN, Points
from support.storage import FileIOManager

import dagster_dataframely as dd

SOME = pl.DataFrame({"id": [3, 1, 2], "x": [1.0, -2.0, 3.0]})
"""The second row fails."""


NONE_LEFT = pl.DataFrame({"id": [3, 1], "x": [-1.0, math.nan]})
"""Every row fails."""


SHUFFLED_ROWS = 10_000


class Counter:
    """A step of a plan that counts how often it runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        self.runs += 1
        return frame

    def on(self, frame: pl.DataFrame) -> pl.LazyFrame:
        return frame.lazy().map_batches(self, streamable=False, validate_output_schema=False)


@pytest.fixture
def counter() -> Counter:
    return Counter()


ENDS = [
    pytest.param(CLEAN, False, None, id="clean"),
    pytest.param(SOME, True, None, id="set aside"),
    pytest.param(SOME, False, "ValidationAbortError", id="abort"),
    pytest.param(NONE_LEFT, True, "NothingSurvivedError", id="nothing survives"),
]


@pytest.mark.parametrize(("frame", "quarantine", "error"), ENDS)
def test_a_plan_runs_exactly_once_and_leaves_no_staging(
    execute: Execute,
    counter: Counter,
    staging: Path,
    frame: pl.DataFrame,
    error: str | None,
    *,
    quarantine: bool,
) -> None:
    plan = counter.on(frame)
    outcome = execute(
        declare(Points, plan, quarantine=quarantine, temp_dir=staging, statistics=True)
    )
    assert outcome.error == error
    assert counter.runs == 1
    assert list(staging.iterdir()) == []


@pytest.mark.parametrize(
    ("drifted", "castable"),
    [
        (CLEAN.drop("x"), False),
        (CLEAN.with_columns(pl.col("x").cast(pl.Float32)), True),
        (CLEAN.with_columns(pl.col("id").cast(pl.String)), True),
    ],
    ids=["missing", "other float", "castable"],
)
def test_a_plan_that_drifts_is_never_run(
    execute: Execute, counter: Counter, staging: Path, drifted: pl.DataFrame, *, castable: bool
) -> None:
    outcome = execute(
        declare(Points, counter.on(drifted), statistics=False, quarantine=True, temp_dir=staging)
    )
    assert outcome.error == "ColumnSchemaError"
    assert ("dd.strict_cast(Points, frame)" in outcome.message) is castable
    assert counter.runs == 0
    assert list(staging.iterdir()) == []


class PlanError(Exception):
    """What a plan of the user's raises."""


@pytest.mark.parametrize("quarantine", [False, True])
def test_an_error_in_the_plan_fails_the_run_with_its_message(
    execute: Execute, files: FileIOManager, staging: Path, *, quarantine: bool
) -> None:
    def fail(frame: pl.DataFrame) -> pl.DataFrame:
        message = "the plan went wrong"
        raise PlanError(message)

    plan = CLEAN.lazy().map_batches(fail)
    outcome = execute(
        declare(Points, plan, statistics=False, quarantine=quarantine, temp_dir=staging)
    )
    assert not outcome.success
    assert "the plan went wrong" in outcome.message
    assert outcome.metadata is None
    outcome.assert_stored(table=None, quarantine=None)
    assert list(staging.iterdir()) == []


@pytest.mark.parametrize("quarantine", [False, True])
def test_a_lazy_validation_of_dataframely_fails_the_run_when_the_plan_runs(
    execute: Execute, counter: Counter, staging: Path, *, quarantine: bool
) -> None:
    plan = Points.validate(counter.on(SOME), eager=False)
    assert isinstance(plan, pl.LazyFrame)
    outcome = execute(
        declare(Points, plan, statistics=False, quarantine=quarantine, temp_dir=staging)
    )
    assert (outcome.success, outcome.error) == (False, "ComputeError")
    assert "min" in outcome.message
    assert outcome.metadata is None
    outcome.assert_stored(table=None, quarantine=None)
    assert counter.runs == 1
    assert list(staging.iterdir()) == []


def test_a_lazy_validation_that_holds_is_written(execute: Execute, staging: Path) -> None:
    outcome = execute(
        declare(
            Points, Points.validate(CLEAN.lazy(), eager=False), statistics=False, temp_dir=staging
        )
    )
    assert outcome.success
    outcome.assert_stored(table=CLEAN, quarantine=None)


def test_a_plan_that_shuffles_loses_no_row_and_doubles_none(execute: Execute) -> None:
    half = SHUFFLED_ROWS // 2
    numbers = pl.DataFrame({"id": range(SHUFFLED_ROWS)}, schema={"id": pl.Int64})
    signs = pl.Series([1.0, -1.0] * half)
    # The sign goes with the position and not with the row: which rows fail differs from run to run.
    plan = numbers.lazy().select(pl.col("id").shuffle()).with_columns(x=pl.lit(signs))
    outcome = execute(declare(Points, plan, statistics=False, quarantine=True))
    assert outcome.table is not None
    assert outcome.quarantine is not None
    assert (outcome.table.height, outcome.quarantine.height) == (half, half)
    together = pl.concat([outcome.table.select("id"), outcome.quarantine.select("id")])
    assert_frame_equal(together.sort("id"), numbers)


def test_undeclared_columns_of_a_plan_are_not_computed(execute: Execute) -> None:
    computed: list[int] = []

    def compute(values: pl.Series) -> pl.Series:
        computed.append(len(values))
        return values

    plan = CLEAN.lazy().with_columns(
        unused=pl.col("x").map_batches(compute, return_dtype=pl.Float64, is_elementwise=True)
    )
    outcome = execute(declare(Points, plan, statistics=False))
    outcome.assert_stored(table=CLEAN, quarantine=None)
    found = outcome.check_metadata["dy_schema__columns"]
    assert found == {"dy_extra_columns": ["unused"], "dy_severity": "error"}
    assert computed == []


def test_the_table_of_a_lazy_frame_is_an_eager_frame_in_a_direct_invocation() -> None:
    table = dd.testing.invoke(declare(Points, CLEAN.lazy(), statistics=False)).table
    assert type(table) is pl.DataFrame
    assert_frame_equal(table, CLEAN)


@pytest.mark.parametrize("wrap", [lambda plan: plan, lambda plan: dg.MaterializeResult(value=plan)])
def test_a_scan_of_a_stored_table_is_read_once_more_as_asked(
    files: FileIOManager,
    instance: dg.DagsterInstance,
    wrap: Callable[[pl.LazyFrame], object],
) -> None:
    @dd.asset(Points)
    def upstream() -> pl.DataFrame:
        return CLEAN

    @dd.asset(Points)
    def downstream(upstream: pl.LazyFrame) -> object:
        assert type(upstream) is pl.LazyFrame
        return wrap(upstream.filter(pl.col("x") > 1))

    result = dg.materialize(
        [upstream, downstream], instance=instance, resources={"io_manager": files}
    )
    assert result.success
    table = files.read(["downstream"])
    assert table is not None
    assert_frame_equal(table, CLEAN[1:])
