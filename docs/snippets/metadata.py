import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True, metadata={"source": "till", "pii": False})
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, metadata={"runbook": "What to do when it fails."}, tags={"domain": "sales"})
def orders() -> dg.MaterializeResult[pl.DataFrame]:
    frame = pl.DataFrame({"id": [1, 2], "amount": [9.5, 20.0]})
    return dg.MaterializeResult(
        value=frame,
        metadata={"total": float(frame["amount"].sum()), "dagster/row_count": 999},
        tags={"till": "3"},
        data_version=dg.DataVersion("2026-01-01"),
    )


result = dd.testing.invoke(orders)
print(result.metadata["total"], result.metadata["dagster/row_count"])
#> 29.5 2

columns = orders.metadata_by_key[orders.key]["dagster/column_schema"].columns
print(columns[0].tags)
#> {'source': 'till', 'pii': 'false'}
