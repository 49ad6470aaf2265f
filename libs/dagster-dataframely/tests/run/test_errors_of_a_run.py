"""What fails a run, and what its error says."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import polars as pl
import pytest
from support.declare import declare
from support.execution import Execute
from support.orders import (
    ALL_BAD,
    CLEAN,
    DRIFTED,
    SOME,
    Frame,
    Orders,
    both,
)
from support.storage import FileIOManager

import dagster_dataframely as dd

SOME_ERROR_RULES = {"amount|min": 2, "primary_key": 2}


CASTABLE = pl.DataFrame(
    {"id": ["1"], "amount": [1], "note": [None]}, schema_overrides={"note": pl.String}
)
"""Columns of other dtypes that a cast turns into the declared ones."""


@both
def test_undeclared_columns_are_dropped_and_named_and_the_schema_orders_the_rest(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    wide = CLEAN.select("note", pl.lit(1).alias("extra"), "amount", pl.lit("x").alias("more"), "id")
    outcome = execute(declare(Orders, given(wide)))
    outcome.assert_stored(table=CLEAN, quarantine=None)
    assert outcome.checks["dy_schema__columns"] == (True, "ERROR")
    assert outcome.check_metadata["dy_schema__columns"] == {
        "dy_severity": "error",
        "dy_extra_columns": ["extra", "more"],
    }


@both
def test_nothing_is_cast_but_the_error_says_when_a_cast_would_do(
    execute: Execute, given: Callable[[pl.DataFrame], Frame]
) -> None:
    outcome = execute(declare(Orders, given(CASTABLE)))
    assert outcome.error == "ColumnSchemaError"
    assert "Return `dd.strict_cast(Orders, frame)`." in outcome.message
    outcome.assert_stored(table=None, quarantine=None)
    assert execute(declare(Orders, dd.strict_cast(Orders, given(CASTABLE)))).success


@pytest.mark.parametrize(
    ("returned", "quarantine"),
    [(DRIFTED, False), (SOME, False), (ALL_BAD, True), ([], False)],
    ids=["other columns", "abort", "nothing survives", "no frame"],
)
def test_an_error_of_this_library_is_not_retried(
    run: Execute, returned: object, *, quarantine: bool
) -> None:
    executions = []

    @dd.asset(Orders, quarantine=quarantine, retry_policy=dg.RetryPolicy(max_retries=2))
    def orders() -> object:
        executions.append(1)
        return returned

    outcome = run(orders)
    assert not outcome.success
    assert len(executions) == 1
    assert not [event for event in outcome.events if event.is_step_up_for_retry]


class CustomError(Exception):
    """An error of the user's own."""


def test_an_error_of_the_function_passes_through_as_it_is(instance: dg.DagsterInstance) -> None:
    raised = CustomError("mine")

    @dd.asset(Orders, quarantine=True)
    def orders() -> pl.DataFrame:
        raise raised

    with pytest.raises(CustomError) as in_a_run:
        dg.materialize([orders], instance=instance)
    assert in_a_run.value is raised
    with pytest.raises(CustomError) as in_a_call:
        dd.testing.invoke(orders)
    assert in_a_call.value is raised


def test_an_error_of_the_function_is_retried_as_its_policy_says(run: Execute) -> None:
    executions = []

    @dd.asset(Orders, retry_policy=dg.RetryPolicy(max_retries=2))
    def orders() -> pl.DataFrame:
        executions.append(1)
        if len(executions) < 3:
            raise CustomError
        return CLEAN

    assert run(orders).success
    assert len(executions) == 3


def test_errors_carry_their_facts(instance: dg.DagsterInstance, files: FileIOManager) -> None:
    def failure(asset: dg.AssetsDefinition) -> dict[str, Any]:
        with pytest.raises(dd.errors.DagsterDataframelyError) as caught:
            dg.materialize([asset], instance=instance, resources={"io_manager": files})
        assert isinstance(caught.value, dg.Failure)
        facts = vars(caught.value)
        return {
            k: v for k, v in facts.items() if k not in {"description", "metadata", "allow_retries"}
        }

    assert failure(declare(Orders, SOME)) == {
        "asset": "orders",
        "rules": ("amount|min", "primary_key"),
        "counts": SOME_ERROR_RULES,
        "table_rules": (),
        "error_rows": 4,
        "rows": 5,
        "address": None,
    }
    assert failure(declare(Orders, ALL_BAD, quarantine=True)) == {
        "asset": "orders",
        "rules": ("amount|min", "amount|nan"),
        "counts": {"amount|min": 1, "amount|nan": 1},
        "rows": 2,
        "address": f"orders_quarantine at {files.root / 'orders_quarantine.parquet'}",
    }
    assert failure(declare(Orders, CASTABLE)) == {
        "asset": "orders",
        "schema": "Orders",
        "mismatches": (
            dd.errors.ColumnMismatch("id", "Int64", "String"),
            dd.errors.ColumnMismatch("amount", "Float64", "Int64"),
        ),
        "columns": ("id", "amount"),
        "castable": True,
    }
