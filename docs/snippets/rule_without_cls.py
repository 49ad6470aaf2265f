import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    amount = dy.Float64()

    @dy.rule()
    def is_not_huge() -> pl.Expr:
        return pl.col("amount") < 1e6


try:

    @dd.asset(Orders)
    def orders() -> None: ...

except dd.errors.InvalidRuleError as error:
    print(str(error).replace(". ", ".\n"))
    #> Rule `is_not_huge` of `Orders` takes no parameter.
    #> Write `def is_not_huge(cls) -> pl.Expr:`.
