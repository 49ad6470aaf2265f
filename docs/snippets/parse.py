import io

import dataframely as dy
import polars as pl

import dagster_dataframely as dd

DROP = io.StringIO("""\
order_id;placed_on;amount;paid
1;24.12.2024;1.234,50;yes
2;31.02.2025;12,00;no
3;02.01.2025;12.00;
""")


class Orders(dy.Schema):
    order_id = dy.Int64(primary_key=True)
    placed_on = dy.Date(metadata=dd.text_format("%d.%m.%Y"))
    amount = dy.Decimal(
        10, 2, min=0, metadata={**dd.text_format(decimal=",", thousands="."), **dd.severity("warn")}
    )
    paid = dy.Bool(nullable=True, metadata=dd.text_format(true=["yes"], false=["no"], null=[""]))


text = pl.read_csv(DROP, separator=";", infer_schema=False)
for row in dd.parse(Orders, text).rows():
    print(*row)
    #> 1 2024-12-24 1234.50 True None
    #> 2 None 12.00 False {"placed_on":"31.02.2025"}
    #> 3 2025-01-02 None None {"amount":"12.00"}
