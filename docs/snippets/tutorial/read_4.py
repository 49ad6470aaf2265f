from pathlib import Path

for path in sorted(path.as_posix() for path in Path("tables").rglob("*.parquet")):
    print(path)
    #> tables/customers.parquet
    #> tables/orders.parquet
    #> tables/orders/2026-01-01.parquet
    #> tables/orders/2026-01-03.parquet
    #> tables/orders_quarantine.parquet
    #> tables/orders_quarantine/2026-01-01.parquet
    #> tables/orders_quarantine/2026-01-03.parquet
