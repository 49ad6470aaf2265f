"""The code version follows the schema, on every machine and in every process."""

import os
import subprocess
import sys

import dataframely as dy
import polars as pl
import pytest

from dagster_dataframely._schema.code_version import derive_code_version
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely.data import OrdersSchema

PRINT_VERSION = """
from dagster_dataframely._schema.code_version import derive_code_version
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely.data import OrdersSchema
print(derive_code_version(read_schema(OrdersSchema)))
"""


def test_is_the_same_in_another_process() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_VERSION],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert printed.strip() == derive_code_version(read_schema(OrdersSchema))


def version(column: dy.Column, **severities: str) -> str:
    schema = type("Schema", (dy.Schema,), {"a": column})
    rules = {f"a|{rule}": severity for rule, severity in severities.items()}
    return derive_code_version(read_schema(schema, rules))  # type: ignore[arg-type]


class Limited(dy.Int64):
    """A column type of a user's, which says nothing of its rule in an argument."""

    limit = 1

    def validation_rules(self, expr: pl.Expr) -> dict[str, pl.Expr]:
        return {**super().validation_rules(expr), "limit": expr <= self.limit}


def test_changes_with_the_rule_of_a_users_column_type(monkeypatch: pytest.MonkeyPatch) -> None:
    before = version(dy.List(Limited()))
    assert version(dy.List(Limited())) == before
    monkeypatch.setattr(Limited, "limit", 2)
    assert version(dy.List(Limited())) != before


@pytest.mark.parametrize(
    "changed",
    [
        version(dy.Int32(min=1)),
        version(dy.Int64(min=2)),
        version(dy.Int64(min=1, nullable=True)),
        version(dy.Int64(min=1), min="warn"),
        version(dy.Int64(min=1, check=lambda c: c > 3)),
        version(dy.Int64(min=1, check=lambda c: c > 4)),
    ],
)
def test_changes_with_dtype_rule_and_severity(changed: str) -> None:
    assert changed != version(dy.Int64(min=1))


def test_stays_for_the_same_schema_written_again() -> None:
    assert version(dy.Int64(check=lambda c: c > 3)) == version(dy.Int64(check=lambda c: c > 3))


def test_sees_a_value_in_the_middle_of_a_long_list() -> None:
    values = list(range(100))
    changed = [*values[:50], 200, *values[51:]]
    assert version(dy.Int64(is_in=values)) != version(dy.Int64(is_in=changed))


def test_sees_a_category_that_is_not_shown() -> None:
    codes = [str(number) for number in range(20_000)]
    changed = [*codes[:10_000], "other", *codes[10_001:]]
    assert version(dy.List(dy.Enum(codes))) != version(dy.List(dy.Enum(changed)))
