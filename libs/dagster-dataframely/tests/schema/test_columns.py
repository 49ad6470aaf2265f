"""The Columns tab carries every constraint in words."""

import datetime as dt
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.table_schema import column_tags, table_schema


class Trips(dy.Schema):
    """Two key columns, a unique one, and a rule over the table."""

    line = dy.Int32(primary_key=True, min=1)
    day = dy.Date(primary_key=True)
    ticket = dy.String(
        unique=True, nullable=True, regex="^T", description="As printed.", metadata={"pii": True}
    )
    price = dy.Float64(min=0, metadata={"unit": "EUR", **dd.severity(min="warn")})

    @dy.rule()
    def one_price_a_day(cls) -> pl.Expr:
        """A line has one price a day."""
        return cls.price.col.n_unique().over("day") == 1


def test_columns_constraints_tags_and_table_constraints() -> None:
    def column(name: str, dtype: str, constraints: dict[str, Any], **rest: Any) -> dg.TableColumn:
        return dg.TableColumn(
            name, dtype, constraints=dg.TableColumnConstraints(**constraints), **rest
        )

    assert table_schema(read_schema(Trips)) == dg.TableSchema(
        columns=[
            column("line", "Int32", {"nullable": False, "unique": False, "other": ["at least 1"]}),
            column("day", "Date", {"nullable": False, "unique": False, "other": []}),
            column(
                "ticket",
                "String",
                {"nullable": True, "unique": True, "other": ["matches `^T`"]},
                description="As printed.",
                tags={"pii": "true"},
            ),
            column(
                "price",
                "Float64",
                {
                    "nullable": False,
                    "unique": False,
                    "other": ["at least 0 (warn)", "not infinite", "not NaN"],
                },
                tags={"unit": "EUR"},
            ),
        ],
        constraints=dg.TableConstraints(
            other=["primary key: line, day", "A line has one price a day."]
        ),
    )


def test_a_single_key_column_is_unique() -> None:
    schema = type("Schema", (dy.Schema,), {"id": dy.Int64(primary_key=True)})
    assert table_schema(read_schema(schema)).columns[0].constraints.unique


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (dy.Integer(), "any integer"),
        (dy.Float(), "any float"),
        (dy.Any(), "any dtype"),
        (dy.Decimal(scale=2), "Decimal(any precision, scale=2)"),
        (dy.Decimal(precision=5, scale=2), "Decimal(precision=5, scale=2)"),
        (dy.Enum(["a", "b"]), "Enum(categories=['a', 'b'])"),
        (dy.List(dy.Int8()), "List(Int8)"),
    ],
)
def test_dtypes_in_words(column: dy.Column, expected: str) -> None:
    schema = type("Schema", (dy.Schema,), {"a": column})
    assert table_schema(read_schema(schema)).columns[0].type == expected


def is_even(column: pl.Expr) -> pl.Expr:
    """An even number."""
    return column % 2 == 0


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (dy.Int64(min_exclusive=1, max=5), ["more than 1", "at most 5"]),
        (dy.Int64(max_exclusive=5), ["less than 5"]),
        (dy.Int64(is_in=list(range(12))), [
            "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
        ]),
        (dy.String(regex="x" * 1_000), [f"matches `{'x' * 199}…`"]),
        (dy.Int64(check=is_even), ["An even number."]),
        (dy.Int64(check=[is_even]), ["An even number."]),
        (dy.Int64(check={"even": is_even}), ["even: An even number."]),
        (dy.String(check={"lowercase": lambda c: c.is_in(["a"])}), [
            'lowercase: col("a").is_in([["a"]])',
        ]),
        (dy.Int64(check=[is_even, is_even]), ['[([(col("a")) % (dyn int: 2)]) == (dyn int: 0)]'] * 2),
        (dy.String(min_length=1), ["at least 1 byte"]),
        (dy.Datetime(resolution="1h", max=dt.datetime(2030, 1, 1)), [
            "a multiple of 1h",
            "at most 2030-01-01 00:00:00",
        ]),
        (dy.List(dy.String(min_length=2), min_length=2), [
            "at least 2 elements",
            "each element: not null",
            "each element: at least 2 bytes",
        ]),
        (dy.List(dy.Int64(primary_key=True)), ["no element twice", "each element: not null"]),
        (dy.Array(dy.Int64(max=9), 2), ["each element: not null", "each element: at most 9"]),
        (dy.Struct({"x": dy.Int64(min=3)}), ["field `x`: not null", "field `x`: at least 3"]),
    ],
)  # fmt: skip
def test_constraints_in_words(column: dy.Column, expected: list[str]) -> None:
    schema = type("Schema", (dy.Schema,), {"a": column})
    other = table_schema(read_schema(schema)).columns[0].constraints.other
    assert sorted(other) == sorted(expected)


def test_what_holds_for_every_float_is_said_once() -> None:
    class Points(dy.Schema):
        x = dy.Float64()
        y = dy.Float32(min=0.0)

    described = table_schema(read_schema(Points))
    assert [column.constraints.other for column in described.columns] == [[], ["at least 0.0"]]
    assert described.constraints.other == ["every float: not infinite, not NaN"]


def test_what_does_not_hold_for_every_float_is_said_for_each_column() -> None:
    class Points(dy.Schema):
        x = dy.Float64(allow_inf=True)
        y = dy.Float64(metadata=dd.severity(nan="warn"))
        z = dy.Float64()

    described = table_schema(read_schema(Points))
    assert [column.constraints.other for column in described.columns] == [
        ["not NaN"],
        ["not infinite", "not NaN (warn)"],
        ["not infinite", "not NaN"],
    ]
    assert described.constraints.other == []


def test_a_rule_of_a_column_class_of_ones_own_is_described_by_its_expression() -> None:
    class Even(dy.Int64):
        def validation_rules(self, expr: pl.Expr) -> dict[str, pl.Expr]:
            return {"min": expr > 0, "inner_half": expr % 2 == 0}

    schema = type("Schema", (dy.Schema,), {"a": Even()})
    assert table_schema(read_schema(schema)).columns[0].constraints.other == [
        '[(col("a")) > (dyn int: 0)]',
        '[([(col("a")) % (dyn int: 2)]) == (dyn int: 0)]',
    ]


def test_a_struct_field_with_the_longer_name_wins() -> None:
    struct = dy.Struct({"a": dy.Int64(nullable=True), "a_b": dy.Int64(nullable=True, min=1)})
    schema = type("Schema", (dy.Schema,), {"s": struct})
    (column,) = table_schema(read_schema(schema)).columns
    assert column.constraints.other == ["field `a_b`: at least 1"]


def test_tags_are_text_without_the_librarys_own_key() -> None:
    metadata = {
        "a": "x",
        "b": 1,
        "c": None,
        "d": [1],
        "e": dt.date(2026, 1, 2),
        **dd.severity("warn"),
    }
    assert column_tags(metadata) == {
        "a": "x",
        "b": "1",
        "c": "null",
        "d": "[1]",
        "e": '"2026-01-02"',
    }
