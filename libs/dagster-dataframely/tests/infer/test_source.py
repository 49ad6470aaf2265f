"""The printed source is a module whose schema the table satisfies."""

import ast
import datetime as dt
import io
import re
import tokenize
from decimal import Decimal
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing.parametric import dataframes
from support.inferred import ORDERS, Run, schema_of, table_of, written

from dagster_dataframely._infer.facts import infer
from dagster_dataframely._infer.source import write_module
from dagster_dataframely._names import is_nameable
from dagster_dataframely.data import OrdersSchema, valid_orders

FACT = r"((?:primary_key|unique|min|max)=.*)"


def source_of(frame: pl.DataFrame, *, ranges: bool = True) -> str:
    table = table_of(frame)
    inference = infer(table, print)
    return write_module(inference, table, class_name="S", ranges=ranges, schema_only=False)


def columns_of(frame: pl.DataFrame) -> list[str]:
    """The lines of the class, without the indent."""
    return (
        source_of(frame).partition("class S(dy.Schema):\n")[2].replace("\n    ", "\n").splitlines()
    )


def with_rules(source: str) -> str:
    """The source with the arguments of its comments moved into the parentheses."""
    lines = source.splitlines()
    module: Any = ast.parse(source)
    for column in module.body[-1].body:
        trailing = re.search(rf"  # {FACT}$", lines[column.end_lineno - 1])
        facts = [trailing[1]] if trailing else []
        above = column.lineno - 2
        while fact := re.fullmatch(rf"    # {FACT}", lines[above]):
            facts.append(fact[1])
            above -= 1
        moved: Any = ast.parse(f"moved({', '.join(facts)})", mode="eval").body
        column.value.keywords += moved.keywords
    return ast.unparse(module)


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("a", "a"),
        ("_a", "_a"),
        ("größe", "größe"),
        ("match", "match"),
        ("a b", "a_b"),
        ("1", "column_1"),
        ("!", "column"),
        ("class", "class_"),
        ("dy", "dy_"),
        ("filter", "filter_"),
        ("datetime", "datetime_"),
        ("Decimal", "Decimal_"),
        ("__a", "a"),
        ("__init__", "init"),
        ("\N{LATIN SMALL LIGATURE FI}", "column"),
        ("x" * 51, "x" * 50),
    ],
)
def test_a_name_that_no_attribute_can_have_is_an_alias(name: str, attribute: str) -> None:
    frame = pl.DataFrame({name: [None]}, schema={name: pl.String})
    alias = "" if name == attribute else f', alias="{name}"'
    (line,) = " ".join(map(str.strip, columns_of(frame))).splitlines()
    assert line.replace("( ", "(").replace(", )", ")").replace(" )", ")") == (
        f"{attribute} = dy.String(nullable=True{alias})"
    )
    assert schema_of(source_of(frame)).column_names() == [name]


def test_each_attribute_is_there_once() -> None:
    names = ["a.b", "a b", "a-b", "a_b", "class", "class_"]
    schema = schema_of(source_of(pl.DataFrame({name: [1] for name in names})))
    assert schema.column_names() == names


def test_reserved_unnamed_and_unknown_columns_have_a_comment() -> None:
    frame = pl.DataFrame(
        {"dy_a": ["x"], "": [1], "^a$": [None], "big": [1], "bigs": [[1]], "field": [[{"*": 1}]]},
        schema={
            "dy_a": pl.String,
            "": pl.Int64,
            "^a$": pl.Date,
            "big": pl.Int128,
            "bigs": pl.Array(pl.Int128, 1),
            "field": pl.List(pl.Struct({"*": pl.Int64})),
        },
    )
    assert columns_of(frame) == [
        "    # Rename it: dd.asset keeps names that begin with `dy_`.",
        "dy_a = dy.String()",
        "# Left out, since no schema can declare it: '', Int64.",
        "# Left out, since no schema can declare it: '^a$', Date.",
        "# dy.Any stands for what Dataframely has no column for: Int128.",
        "big = dy.Any()",
        "# dy.Any stands for what Dataframely has no column for: Array(Int128, shape=(1,)).",
        "bigs = dy.Any()",
        "# dy.Any stands for what Dataframely has no column for: List(Struct({'*': Int64})).",
        "field = dy.List(dy.Any())",
    ]


def test_comments_stay_on_one_line() -> None:
    frame = pl.DataFrame({"a": [{"x\ny": None}]}, schema={"a": pl.Struct({"x\ny": pl.Null})})
    schema_of(source_of(frame)).validate(frame)


TIMES = [dt.datetime(2026, 1, 5, 9, 30, 0, 1), None]


ZONED = 'tzinfo=zoneinfo.ZoneInfo(key="Europe/Paris")'


@pytest.mark.parametrize(
    ("values", "dtype", "lines"),
    [
        ([True, None], pl.Boolean, ["dy.Bool(nullable=True)"]),
        ([b"x", b"y"], pl.Binary, ["dy.Binary()  # primary_key=True"]),
        (["x", "x"], pl.Categorical, ["dy.Categorical()"]),
        (["x", "x"], pl.Enum(["x", 'y"']), ['dy.Enum(["x", \'y"\'])']),
        ([1, None], pl.UInt8, ["dy.UInt8(nullable=True)  # min=1, max=1"]),
        ([0.5, 1.5], pl.Float32, ["dy.Float32()  # min=0.5, max=1.5"]),
        ([float("inf"), 1.0], pl.Float64, ["dy.Float64(allow_inf=True)"]),
        ([Decimal("0.5")] * 2, pl.Decimal(1, 1), ["dy.Decimal(precision=1, scale=1)"]),
        (
            [Decimal("1.50"), None],
            pl.Decimal(9, 2),
            [
                '# min=Decimal("1.50")',
                '# max=Decimal("1.50")',
                "dy.Decimal(precision=9, scale=2, nullable=True)",
            ],
        ),
        (
            TIMES,
            pl.Datetime("ns", "Europe/Paris"),
            [
                f"# min=datetime.datetime(2026, 1, 5, 10, 30, 0, 1, {ZONED})",
                f"# max=datetime.datetime(2026, 1, 5, 10, 30, 0, 1, {ZONED})",
                'dy.Datetime(time_zone="Europe/Paris", time_unit="ns", nullable=True)',
            ],
        ),
        (
            TIMES,
            pl.Datetime("ms"),
            [
                "# min=datetime.datetime(2026, 1, 5, 9, 30)",
                "# max=datetime.datetime(2026, 1, 5, 9, 30)",
                'dy.Datetime(time_unit="ms", nullable=True)',
            ],
        ),
        (
            [dt.timedelta(days=1), None],
            pl.Duration,
            [
                "# min=datetime.timedelta(days=1)",
                "# max=datetime.timedelta(days=1)",
                "dy.Duration(nullable=True)",
            ],
        ),
        (
            [dt.time(9, 30), dt.time(9, 30)],
            pl.Time,
            ["dy.Time()  # min=datetime.time(9, 30), max=datetime.time(9, 30)"],
        ),
        ([[1], [], None], pl.List(pl.Int8), ["dy.List(dy.Int8(), nullable=True)"]),
        ([[1, None]], pl.List(pl.Int8), ["dy.List(dy.Int8(nullable=True))"]),
        ([[1], None], pl.Array(pl.Int8, 1), ["dy.Array(dy.Int8(), shape=1, nullable=True)"]),
        (
            [[[1, 2]]],
            pl.Array(pl.Int8, (1, 2)),
            ["dy.Array(dy.Array(dy.Int8(), shape=2), shape=1)"],
        ),
        (
            [{"a": [None, 0.5]}, None],
            pl.Struct({"a": pl.List(pl.Float64)}),
            ['dy.Struct({"a": dy.List(dy.Float64(nullable=True))}, nullable=True)'],
        ),
        ([], pl.List(pl.Struct({"a": pl.Int8})), ['dy.List(dy.Struct({"a": dy.Int8()}))']),
        (
            ["x" * 40, "x" * 40],
            pl.Enum(["x" * 40, "y" * 40]),
            ["dy.Enum(", "[", f'"{"x" * 40}",', f'"{"y" * 40}",', "]", ")"],
        ),
    ],
    ids=str,
)
def test_a_dtype_and_its_values(values: list[Any], dtype: Any, lines: list[str]) -> None:
    frame = pl.DataFrame({"a": values}, schema={"a": dtype}, strict=False)
    found = [line.strip().removeprefix("a = ") for line in columns_of(frame)]
    assert found == lines
    schema_of(source_of(frame)).validate(frame)
    schema_of(with_rules(source_of(frame))).validate(frame)


@pytest.mark.parametrize(
    ("stored", "dtype"),
    [
        (2**31 - 1, pl.Date),
        (2**63 - 1, pl.Datetime("us")),
        (-(2**63) + 1, pl.Datetime("ms", "UTC")),
        (86_399_999_999_999, pl.Time),
        (-347_155_200_000_000, pl.Datetime("us", "Africa/Niamey")),
    ],
    ids=str,
)
def test_a_value_that_python_does_not_have_is_no_bound(stored: int, dtype: Any) -> None:
    frame = pl.DataFrame({"a": pl.Series([stored]).cast(pl.Int64).to_frame("a")["a"].cast(dtype)})
    assert "min" not in source_of(frame)


def test_nanoseconds_are_rounded_outwards() -> None:
    frame = pl.DataFrame({"a": pl.Series([1_500, 2_500, 2_500]).cast(pl.Duration("ns"))})
    assert columns_of(frame)[:2] == [
        "    # min=datetime.timedelta(microseconds=1)",
        "# max=datetime.timedelta(microseconds=3)",
    ]


def test_a_table_without_rows() -> None:
    assert source_of(ORDERS.clear()).splitlines()[2:4] == [
        "# x: 0 rows.",
        "# Without rows nothing is known of nulls, keys and ranges.",
    ]
    assert schema_of(source_of(ORDERS.clear())).column_names() == ORDERS.columns


def test_an_argument_can_follow_a_column_of_its_modules_name() -> None:
    days = [dt.date(2026, 1, day) for day in (1, 2)]
    frame = pl.DataFrame(
        {"datetime": days, "Decimal": [1, 2], "day": days, "paid": [Decimal(1)] * 2}
    )
    assert schema_of(with_rules(source_of(frame))).column_names() == frame.columns


def test_the_schema_of_the_examples_is_found_again() -> None:
    found = schema_of(source_of(valid_orders())).columns()
    dtypes = {name: column.dtype for name, column in OrdersSchema.columns().items()}
    assert {name: column.dtype for name, column in found.items()} == dtypes


HOSTILE = (
    *("coding: x", "coding=utf7 +AAo-import os+ADs-os.abort()+AAo-", "# -*- coding: latin-1 -*-"),
    *("\n\nimport os", "\r#", '"""', "\\", '"], x=[', "\x1b[2J", "\u2028x", "\u202ex", "\x0cx"),
)
"""Names that are code, an encoding, the end of a text or of a line."""

NAMES = st.text(max_size=12) | st.sampled_from(
    (
        *("class", "dy", "dy_x", "__x", "filter", "datetime", "a b", "a_b", "a.b", "x" * 70),
        *('"', "\n", "*", "^a$", "^.*$", *HOSTILE),
    )
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    frame=dataframes(max_cols=4, max_size=6, allow_null=True, allow_chunks=False),
    names=st.lists(NAMES, min_size=4, max_size=4, unique=True),
)
def test_the_table_satisfies_what_is_printed(frame: pl.DataFrame, names: list[str]) -> None:
    named = frame.rename(dict(zip(frame.columns, names, strict=False)))
    declared = [name for name in named.columns if is_nameable(name)]
    if not declared:
        return
    source = source_of(named)
    schema = schema_of(source)
    assert schema.column_names() == declared
    schema.validate(named.select(declared))
    schema_of(with_rules(source)).validate(named.select(declared))


def imported(source: str) -> dict[str, tuple[type[dy.Column], Any]]:
    """The columns of a printed module that Python imports as it does a file."""
    lines = io.BytesIO(source.encode())
    assert tokenize.detect_encoding(lines.readline)[0] == "utf-8"
    code = compile(source.encode(), "printed.py", "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    (schema,) = (found for name, found in names.items() if name not in ("__builtins__", "dy"))
    columns = schema.columns()
    return {name: (type(column), column.dtype) for name, column in columns.items()}


FILE_NAMES = NAMES.filter(lambda name: not set(name) & set("/\0") and len(name) <= 60)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    folder=FILE_NAMES,
    file=FILE_NAMES,
    column=NAMES.filter(is_nameable),
    categories=st.lists(NAMES, min_size=1, max_size=3, unique=True),
)
def test_no_name_in_a_file_is_code(
    tmp_path: Path, printed: Run, folder: str, file: str, column: str, categories: list[str]
) -> None:
    path = tmp_path / f"in {folder}" / f"{file}.parquet"
    path.parent.mkdir(exist_ok=True)
    dtype = pl.Enum(categories)
    written(pl.DataFrame({column: categories}, schema={column: dtype}), path)
    assert imported(printed(path)) == {column: (dy.Enum, dtype)}
    assert imported(printed(path, "--name", "S")) == {column: (dy.Enum, dtype)}


@pytest.mark.io_managers
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    schema=NAMES.filter(is_nameable),
    table=NAMES.filter(is_nameable),
    column=NAMES.filter(is_nameable),
    left_out=NAMES.filter(is_nameable),
)
def test_no_name_in_a_database_is_code(
    tmp_path: Path, printed: Run, schema: str, table: str, column: str, left_out: str
) -> None:
    from duckdb import connect

    path = tmp_path / "shop.duckdb"
    path.unlink(missing_ok=True)
    schema, table, column, left_out = (
        name.replace('"', '""') for name in (schema, f"t{table}", f"c{column}", f"d{left_out}")
    )
    with connect(str(path)) as connection:
        connection.execute(
            f'create schema "s{schema}"; create table "s{schema}"."{table}" '
            f'("{column}" integer, "{left_out}" union("{column}" integer))'
        )
    assert imported(printed(path)) == {column.replace('""', '"'): (dy.Int32, pl.Int32())}
