from __future__ import annotations

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)


try:

    @dd.asset(Orders)
    def annotated(context: dg.AssetExecutionContext) -> pl.DataFrame:
        return pl.DataFrame({"id": [1]})

except dg.DagsterInvalidDefinitionError as error:
    print(str(error).partition(". ")[0])
    #> Cannot annotate `context` parameter with type dg.AssetExecutionContext


@dd.asset(Orders)
def plain(context) -> pl.DataFrame:
    return pl.DataFrame({"id": [1]})


print(dd.testing.invoke(plain).table.height)
#> 1
