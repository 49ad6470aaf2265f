import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, quarantine=True)
def orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
    return raw_orders.with_columns(pl.col("amount").round(2))


def test_a_negative_amount_is_set_aside() -> None:
    result = dd.testing.invoke(orders, pl.DataFrame({"id": [1, 2], "amount": [9.501, -1.0]}))
    assert result.table.rows() == [(1, 9.5)]
    assert result.quarantine["id"].to_list() == [2]
    assert result.failed == ["dy_rule__amount__min"]
    assert result.checks["dy_rule__amount__min"].metadata["dy_failed_count"].value == 1


def test_text_is_not_an_amount() -> None:
    with pytest.raises(dd.errors.ColumnSchemaError) as caught:
        dd.testing.invoke(orders, pl.DataFrame({"id": ["a"], "amount": [1.0]}))
    assert caught.value.columns == ("id",)


def test_any_valid_orders_stay_valid() -> None:
    result = dd.testing.invoke(orders, Orders.sample(100))
    assert result.quarantine is None
