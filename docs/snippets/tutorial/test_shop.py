import datetime as dt
from pathlib import Path

import polars as pl
import pytest
from shop import Orders, customers, orders

import dagster_dataframely as dd

CSV = """id,customer,day,amount
1,Ada,2026-01-01,-1.0
2,Ada,2026-01-01,3.0
"""


@pytest.fixture(autouse=True)
def csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.csv").write_text(CSV)


def test_a_negative_amount_goes_to_the_quarantine() -> None:
    result = dd.testing.invoke(orders, partition_key="2026-01-01")
    assert result.table["id"].to_list() == [2]
    assert result.quarantine["id"].to_list() == [1]
    assert result.failed == ["dy_rule__amount__min"]


def test_a_day_without_orders_is_skipped() -> None:
    assert dd.testing.invoke(orders, partition_key="2026-01-02").table is None


def test_amounts_add_up() -> None:
    row = {"id": 1, "customer": "Ada", "day": dt.date(2026, 1, 1), "amount": 1.0}
    day = Orders.validate(pl.DataFrame([row, {**row, "id": 2, "amount": 2.0}]))
    result = dd.testing.invoke(customers, {"2026-01-01": day.lazy()})
    assert result.table.rows() == [("Ada", 2, 3.0)]
