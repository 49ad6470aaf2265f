import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Sales(dy.Schema):
    day = dy.Date()
    shop = dy.String()
    amount = dy.Float64(min=0.0)


GRID = dg.MultiPartitionsDefinition(
    {
        "day": dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-03"),
        "shop": dg.StaticPartitionsDefinition(["oslo", "rome"]),
    }
)


def read_till(day: str, shop: str) -> pl.DataFrame:
    """What the till of a shop recorded on a day; the shop in Rome is closed on the second."""
    amounts = [] if (day, shop) == ("2026-01-02", "rome") else [5.0, -1.0]
    rows = [{"day": day, "shop": shop, "amount": amount} for amount in amounts]
    return pl.DataFrame(rows, schema={"day": pl.String, "shop": pl.String, "amount": pl.Float64})


@dd.asset(Sales, quarantine=True, partitions_def=GRID)
def sales(context: dg.AssetExecutionContext) -> pl.DataFrame | None:
    assert isinstance(context.partition_key, dg.MultiPartitionKey)
    rows = read_till(**context.partition_key.keys_by_dimension)
    return None if rows.is_empty() else rows.with_columns(pl.col("day").str.to_date())


@dd.asset(Sales, ins={"sales": dg.AssetIn(metadata={"allow_missing_partitions": True})})
def all_sales(sales: dict[dg.MultiPartitionKey, pl.LazyFrame]) -> pl.LazyFrame:
    return pl.concat(sales.values())


result = dd.testing.invoke(sales, partition_key="2026-01-01|oslo")
print(result.table.height, result.quarantine.height)
#> 1 1
print(result.metadata["dagster/partition_row_count"])
#> 1
print(dd.testing.invoke(sales, partition_key="2026-01-02|rome").table)
#> None
