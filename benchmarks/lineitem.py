"""TPC-H's `lineitem`: its schema, and the plan that every side starts from."""

from pathlib import Path

import dataframely as dy
import polars as pl

SHARE = 1000
"""One row in so many gets a value that fails a rule, in the frame that is not clean."""
DUPLICATED = 20_000
"""One order key in so many has the same line number on each of its lines."""
NEVER = -1
ZERO = pl.lit(0, pl.Decimal(15, 2))

FLAGS = ["A", "N", "R"]
STATUS = ["F", "O"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
LONGEST_COMMENT = 43


class Lineitem(dy.Schema):
    """Lines of orders, as TPC-H makes them."""

    l_orderkey = dy.Int64(primary_key=True)
    l_partkey = dy.Int64(min=1)
    l_suppkey = dy.Int64(min=1)
    l_linenumber = dy.Int32(primary_key=True)
    l_quantity = dy.Decimal(15, 2, min=1, max=50)
    l_extendedprice = dy.Decimal(15, 2)
    l_discount = dy.Decimal(15, 2)
    l_tax = dy.Decimal(15, 2)
    l_returnflag = dy.String(regex=r"^[ANR]$")
    l_linestatus = dy.String(check=lambda column: column.is_in(STATUS))
    l_shipdate = dy.Date()
    l_commitdate = dy.Date()
    l_receiptdate = dy.Date()
    l_shipinstruct = dy.String()
    l_shipmode = dy.String(check=lambda column: column.is_in(MODES))
    l_comment = dy.String(nullable=True, max_length=LONGEST_COMMENT)

    @dy.rule()
    def received_after_shipped(cls) -> pl.Expr:
        """A line is received after it was shipped."""
        return cls.l_receiptdate.col > cls.l_shipdate.col


def plan(source: Path, *, clean: bool, unique: bool = False) -> pl.LazyFrame:
    """The rows, some of which fail rules or repeat a key, unless they must not; the work is the same."""
    residue = pl.col("l_orderkey") * 7 + pl.col("l_linenumber") * 3
    first, second, third = (NEVER,) * 3 if clean else (0, 333, 666)
    fails = residue % SHARE
    repeats = pl.col("l_orderkey") % DUPLICATED == (NEVER if clean or unique else 1)
    return pl.scan_parquet(source).with_columns(
        l_quantity=pl.when(fails == first).then(ZERO).otherwise(pl.col("l_quantity")),
        l_shipmode=pl.when(fails == second).then(None).otherwise(pl.col("l_shipmode")),
        l_receiptdate=pl.when(fails == third)
        .then(pl.col("l_shipdate"))
        .otherwise(pl.col("l_receiptdate")),
        l_linenumber=pl.when(repeats).then(1).otherwise(pl.col("l_linenumber")),
    )
