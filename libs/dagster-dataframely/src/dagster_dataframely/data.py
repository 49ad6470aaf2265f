"""A small schema and two frames for examples and tests."""

import datetime as dt
from decimal import Decimal
from typing import Any

import dataframely as dy
import polars as pl

from dagster_dataframely._schema.severity import rule, severity

__all__ = ["OrdersSchema", "invalid_orders", "valid_orders"]


def _has_no_duplicate(tags: pl.Expr) -> pl.Expr:
    """No tag appears twice."""
    return tags.list.n_unique() == tags.list.len()


class OrdersSchema(dy.Schema):
    """Orders of a web shop, one row for each."""

    order_id = dy.Int64(primary_key=True, min=1, description="Counts up from 1.")
    customer = dy.String(min_length=2, max_length=40, metadata={"pii": True})
    email = dy.String(nullable=True, unique=True, regex=r"^[^@\s]+@[^@\s]+$")
    country = dy.Enum(["DE", "FR", "US"])
    amount = dy.Float64(min=0.0, description="Net, in EUR.")
    price = dy.Decimal(precision=12, scale=2, max=Decimal("9999.99"))
    quantity = dy.Int32(is_in=[1, 2, 5, 10])
    discount = dy.Float64(nullable=True, min=0.0, max_exclusive=1.0, metadata=severity("warn"))
    gift = dy.Bool()
    ordered_on = dy.Date(min=dt.date(2020, 1, 1))
    shipped_at = dy.Datetime(nullable=True, time_zone="UTC", resolution="1m")
    packing_minutes = dy.Int16(nullable=True, min=0)
    tags = dy.List(dy.String(min_length=1), max_length=3, check={"distinct": _has_no_duplicate})

    @dy.rule()
    def ships_after_it_is_ordered(cls) -> pl.Expr:
        """An order ships on the day it is made, or later."""
        return cls.shipped_at.col.dt.date() >= cls.ordered_on.col

    @rule(severity="warn")
    def one_country_for_each_customer(cls) -> pl.Expr:
        """All orders of a customer go to one country."""
        return cls.country.col.n_unique().over("customer") == 1


def valid_orders() -> pl.DataFrame:
    """Three orders that satisfy every rule of `OrdersSchema`.

    Returns:
        A new frame with the schema's columns and dtypes.

    Example:
        ```python
        from dagster_dataframely.data import OrdersSchema, valid_orders

        print(OrdersSchema.is_valid(valid_orders()))
        #> True
        ```
    """
    return _frame([{}, {"email": None, "discount": None}, {"tags": ["gift"]}])


def invalid_orders() -> pl.DataFrame:
    """Two valid orders, then one row for each way an order can be wrong.

    Returns:
        A new frame with the schema's columns and dtypes.

    Example:
        ```python
        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema, invalid_orders

        rows = dd.wiring.quarantine_frame(OrdersSchema, invalid_orders())
        print(invalid_orders().height - rows.height)
        #> 4
        ```
    """
    return _frame(
        [
            {},
            {},
            {"customer": None},
            {"customer": "x"},
            {"customer": "a name that is longer than forty characters"},
            {"email": "nobody"},
            {"email": "twice@example.com"},
            {"email": "twice@example.com"},
            {"country": None},
            {"amount": -1.0},
            {"amount": float("nan")},
            {"amount": float("inf")},
            {"price": Decimal("10000.00")},
            {"quantity": 3},
            {"discount": 1.5},
            {"gift": None},
            {"ordered_on": dt.date(2019, 12, 31)},
            {"shipped_at": dt.datetime(2026, 1, 5, 9, 30, 30, tzinfo=dt.UTC)},
            {"shipped_at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},
            {"packing_minutes": -1},
            {"tags": ["a", "b", "c", "d"]},
            {"tags": ["a", "a"]},
            {"tags": [""]},
            {"customer": "customer 15", "country": "US"},
            {"order_id": 0},
            {"order_id": 99},
            {"order_id": 99},
        ]
    )


def _frame(orders: list[dict[str, Any]]) -> pl.DataFrame:
    """One row for each mapping, which says how the order differs from a valid one."""
    rows = [
        {
            "order_id": number,
            "customer": f"customer {number}",
            "email": f"{number}@example.com",
            "country": "DE",
            "amount": 10.0 * number,
            "price": Decimal("19.90"),
            "quantity": 1,
            "discount": 0.1,
            "gift": number % 2 == 0,
            "ordered_on": dt.date(2026, 1, 2),
            "shipped_at": dt.datetime(2026, 1, 5, 9, 30, tzinfo=dt.UTC),
            "packing_minutes": number,
            "tags": ["new", "gift"],
            **differences,
        }
        for number, differences in enumerate(orders, start=1)
    ]
    return pl.DataFrame(rows, schema=OrdersSchema.create_empty().schema)
