"""A schema that inherits from another."""

import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Base(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0, nullable=True, metadata=dd.severity(min="warn"))

    @dy.rule()
    def inherited(cls) -> pl.Expr:
        """An inherited rule.

        Only the first paragraph describes the check.
        """
        return cls.amount.col < 10


class Child(Base):
    name = dy.String(max_length=3, check=lambda name: name != "x")

    @dd.rule(severity="warn")
    def own(cls) -> pl.Expr:
        return cls.id.col > 0
