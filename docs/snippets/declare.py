import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    """Orders of the shop, one row for each."""

    id = dy.Int64(primary_key=True)
    email = dy.String(nullable=True, regex=r"^[^@\s]+@[^@\s]+$", metadata={"pii": True})
    amount = dy.Float64(min=0.0, description="Net, in EUR.")
    ordered_on = dy.Date()
    shipped_on = dy.Date(nullable=True)

    @dy.rule()
    def ships_after_it_is_ordered(cls) -> pl.Expr:
        """An order ships on the day it is made, or later."""
        return cls.shipped_on.col >= cls.ordered_on.col


@dd.asset(Orders, key_prefix="sales", owners=["team:sales"])
def orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
    return raw_orders.unique("id", keep="first", maintain_order=True)


defs = dg.Definitions(assets=[orders])

for spec in orders.check_specs:
    print(spec.name, "-", spec.description)
#> dy_schema__columns - The frame has the columns and dtypes of schema `Orders`.
#> dy_rule__id__nullability - `id`: not null
#> dy_rule__email__regex - `email`: matches `^[^@\s]+@[^@\s]+$`
#> dy_rule__amount__nullability - `amount`: not null
#> dy_rule__amount__min - `amount`: at least 0.0
#> dy_rule__amount__inf - `amount`: not infinite
#> dy_rule__amount__nan - `amount`: not NaN
#> dy_rule__ordered_on__nullability - `ordered_on`: not null
#> dy_rule__primary_key - primary key: id
#> dy_rule__ships_after_it_is_ordered - An order ships on the day it is made, or later.
