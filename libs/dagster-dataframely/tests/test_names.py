"""Check names use Dagster's alphabet."""

import dagster as dg
import pytest

from dagster_dataframely import _names


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("amount|min", "dy_rule__amount__min"),
        ("primary_key", "dy_rule__primary_key"),
        ("net amount|min", "dy_rule__net_amount__min"),
        ("größe|max", "dy_rule__gr__e__max"),
        ("a|b|nullability", "dy_rule__a__b__nullability"),
        ("a-b.c|nan", "dy_rule__a_b_c__nan"),
    ],
)
def test_rule_check_name(rule: str, expected: str) -> None:
    assert _names.rule_check_name(rule) == expected


def test_column_check_name() -> None:
    assert _names.column_check_name("net amount") == "dy_col__net_amount"


@pytest.mark.parametrize(
    ("key", "expected"),
    [(["orders"], ["orders_quarantine"]), (["a", "orders"], ["a", "orders_quarantine"])],
)
def test_quarantine_key(key: list[str], expected: list[str]) -> None:
    assert _names.quarantine_key(dg.AssetKey(key)) == dg.AssetKey(expected)
