import polars as pl

print(pl.read_parquet("tables/customers.parquet").rows())
#> [('Ada', 1, 20.0), ('Cem', 1, 8.0)]
