"""A schema with descriptions, and a frame of it."""

from collections.abc import Callable
from typing import Any

import dataframely as dy
import polars as pl


class Orders(dy.Schema):
    """Orders of a shop."""

    id = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True, min=0)

    @dy.rule()
    def even(cls) -> pl.Expr:
        """Amounts are even."""
        return cls.amount.col % 2 == 0


FRAME = pl.DataFrame({"id": [2, 1], "amount": [4, None]})
"""No rule fails."""


def as_frame(returned: Any) -> Callable[[], pl.DataFrame]:
    def orders() -> pl.DataFrame:
        return returned  # type: ignore[no-any-return]

    return orders
