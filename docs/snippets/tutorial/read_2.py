import polars as pl

table = pl.read_parquet("tables/orders.parquet")
print(table.select("id", "customer", "amount").rows())
#> [(1, 'Ada', 20.0), (3, None, 12.5), (4, 'Cem', 8.0)]

quarantine = pl.read_parquet("tables/orders_quarantine.parquet")
for row in quarantine.select("id", "dy_rule__amount__min", "dy_rule__primary_key").rows():
    print(row)
    #> (2, 'invalid', 'valid')
    #> (5, 'valid', 'invalid')
    #> (5, 'valid', 'invalid')
