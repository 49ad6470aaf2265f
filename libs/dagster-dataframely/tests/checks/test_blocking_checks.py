"""Checks of stored tables that keep downstream assets of the run from starting."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely.components import RuleChecks

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Orders(dy.Schema):
    """A rule that is an error and one that only warns."""

    id = dy.Int64(primary_key=True, min=0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))


class Shop(dy.Collection):
    """Orders, and which of them were paid."""

    orders: dy.LazyFrame[Orders]
    paid: dy.LazyFrame[Orders]

    @dy.filter()
    def is_paid(self) -> pl.LazyFrame:
        return self.orders.join(self.paid, on="id", how="semi")


def started(rows: pl.DataFrame, checks: Any) -> bool:
    """Whether an asset downstream of the checked table starts."""
    ran = []

    @dg.asset
    def orders() -> pl.DataFrame:
        return rows

    @dg.asset
    def paid() -> pl.DataFrame:
        return pl.DataFrame({"id": [1], "note": ["ok"]})

    @dg.asset
    def report(orders: pl.DataFrame) -> None:
        ran.append(orders.height)

    dg.materialize(
        [orders, paid, report, checks],
        resources={"io_manager": dg.mem_io_manager},
        run_config=QUIET,
        raise_on_error=False,
    )
    return bool(ran)


ERROR = pl.DataFrame({"id": [1, -1], "note": ["ok", None]})
WARN = pl.DataFrame({"id": [1, 2], "note": ["ok", "too long"]})


@pytest.mark.parametrize("check_granularity", ["rule", "column", "schema"])
@pytest.mark.parametrize(
    ("rows", "blocking", "starts"),
    [(ERROR, True, False), (ERROR, False, True), (WARN, True, True), (ERROR[:1], True, True)],
    ids=["an error", "an error that does not block", "a warning", "nothing"],
)
def test_only_a_failing_error_rule_blocks(
    rows: pl.DataFrame, check_granularity: Any, *, blocking: bool, starts: bool
) -> None:
    checks = dd.build_rule_checks(
        Orders, asset="orders", blocking=blocking, check_granularity=check_granularity
    )
    assert started(rows, checks) is starts


@pytest.mark.parametrize(
    ("severity", "blocking", "starts"),
    [("error", True, False), ("error", False, True), ("warn", True, True)],
)
def test_only_a_failing_error_filter_blocks(severity: Any, *, blocking: bool, starts: bool) -> None:
    members = {"orders": "orders", "paid": "paid"}
    checks = dd.build_collection_checks(Shop, members=members, severity=severity, blocking=blocking)
    assert started(WARN, checks) is starts


def test_the_component_passes_it_on() -> None:
    given: dict[str, Any] = {"schema_class": Orders, "asset": dg.AssetKey("orders")}
    for blocking in (False, True):
        checks = RuleChecks(**given, blocking=blocking).build()
        blocks = {spec.name: spec.blocking for spec in checks.check_specs}
        assert blocks.pop("dy_schema__columns") is True
        assert {*blocks.values()} == {blocking}
