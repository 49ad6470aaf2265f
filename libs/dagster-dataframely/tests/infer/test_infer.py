"""`python -m dagster_dataframely infer` prints a schema that the table it looked at satisfies."""

import ast
import dataclasses
import datetime as dt
import functools
import gzip
import io
import re
import runpy
import sys
import tokenize
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing.parametric import dataframes

import dagster_dataframely as dd
from dagster_dataframely import __main__ as command
from dagster_dataframely._infer import facts as _inference
from dagster_dataframely._infer.facts import Limits, infer
from dagster_dataframely._infer.files import BATCH_ROWS, Table, read_batches
from dagster_dataframely._infer.source import write_module
from dagster_dataframely._names import is_nameable
from dagster_dataframely.data import OrdersSchema, valid_orders

ORDERS = pl.DataFrame(
    {"order_id": [1, 2, 3], "class": ["a", None, "b"], "paid": [9.5, 0.25, float("nan")]}
)
"""A key, a name that is a keyword, a null and a NaN."""

IMPORT = "import dataframely as dy\n\n"
HEAD = "# Arguments in comments hold for these rows: move them into the parentheses.\n"
NO_KEY = "# No column and no pair of columns is a key, without nulls and duplicates.\n"
FACT = r"((?:primary_key|unique|min|max)=.*)"

Run = Callable[..., str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command and return what it prints."""

    def run(*arguments: object) -> str:
        assert command.main(["infer", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command on what cannot be read and return what it says."""

    def run(*arguments: object) -> str:
        assert command.main(["infer", *map(str, arguments)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("UnreadableFileError: ")
        assert err.count("\n") == 1
        return err.removeprefix("UnreadableFileError: ").strip()

    return run


def written(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_parquet(path)
    return path


def table_of(frame: pl.DataFrame) -> Table:
    batches = functools.partial(read_batches, frame.lazy(), frame.height)
    return Table(frame.schema, frame.height, batches, "x", "x")


def source_of(frame: pl.DataFrame, *, ranges: bool = True) -> str:
    inference = infer(table_of(frame), print)
    return write_module(inference, title="x", class_name="S", left_out={}, ranges=ranges)


def columns_of(frame: pl.DataFrame) -> list[str]:
    """The lines of the class, without the indent."""
    return (
        source_of(frame).partition("class S(dy.Schema):\n")[2].replace("\n    ", "\n").splitlines()
    )


def schema_of(source: str) -> type[dy.Schema]:
    names: dict[str, Any] = {}
    exec(f"import datetime, zoneinfo\nfrom decimal import Decimal\n{source}", names)
    (name,) = re.findall(r"^class (\w+)", source, re.MULTILINE)
    schema: type[dy.Schema] = names[name]
    return schema


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


# What is printed.


def test_a_parquet_file(tmp_path: Path, printed: Run) -> None:
    assert printed(written(ORDERS, tmp_path / "raw-orders_2026.parquet")) == (
        f"{IMPORT}# raw-orders_2026.parquet: 3 rows.\n{HEAD}"
        """

class RawOrders2026(dy.Schema):
    order_id = dy.Int64()  # primary_key=True, min=1, max=3
    class_ = dy.String(nullable=True, alias="class")
    paid = dy.Float64(allow_nan=True)
"""
    )


def test_a_csv_file(tmp_path: Path, printed: Run) -> None:
    path = tmp_path / "2026.csv"
    path.write_text("id,day,note\n1,2026-01-05,NA\n2,2026-01-05,late\n")
    text = f"{IMPORT}# 2026.csv, read with `try_parse_dates=True`: 2 rows.\n{HEAD}"
    text += """

class Table2026(dy.Schema):
    id = dy.Int64()  # primary_key=True, min=1, max=2
    day = dy.Date()  # min=datetime.date(2026, 1, 5), max=datetime.date(2026, 1, 5)
    note = dy.String(nullable=True)
"""
    assert printed(path, "--null", "NA") == text


@pytest.mark.parametrize(
    ("name", "options", "separator"),
    [("x.tsv", [], "\t"), ("x.csv", ["--separator", ";"], ";"), ("X.CSV", [], ",")],
)
def test_a_csv_file_is_split_at_its_separator(
    tmp_path: Path, printed: Run, name: str, options: list[str], separator: str
) -> None:
    path = tmp_path / name
    path.write_text(f"a{separator}b\n1{separator}2\n")
    assert schema_of(printed(path, *options)).column_names() == ["a", "b"]


def test_dtypes_of_a_csv_file_fit_every_row(tmp_path: Path, printed: Run) -> None:
    path = tmp_path / "late.csv"
    path.write_text("a,b,c,d\n" + "1,1,2026-01-05,1\n" * 10_000 + "2.5,x,never,2\n")
    columns = schema_of(printed(path, "--no-ranges")).columns()
    assert {name: type(column) for name, column in columns.items()} == {
        "a": dy.Float64,
        "b": dy.String,
        "c": dy.String,
        "d": dy.Int64,
    }
    assert isinstance(schema_of(printed(path, "--rows", 5)).columns()["a"], dy.Int64)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        (["1", "2"], dy.Int64),
        (['"1"', '"2"'], dy.Int64),
        (["1", "2.5"], dy.Float64),
        (["true", "false"], dy.Bool),
        (["2026-01-05", "2026-01-06"], dy.Date),
        (["2026-01-05T09:30:00", "2026-01-05T09:30:01"], dy.Datetime),
        (["2026-01-05T09:30:00Z", "2026-01-05T09:30:01Z"], dy.Datetime),
        (["09:30:00", "09:30:01"], dy.Time),
        (["a", "1"], dy.String),
        (["NA", "1"], dy.Int64),
        (["", ""], dy.String),
    ],
    ids=str,
)
def test_a_column_of_a_csv_file_may_begin_empty(
    tmp_path: Path, printed: Run, values: list[str], column: type[dy.Column]
) -> None:
    path = tmp_path / "sparse.csv"
    late = "".join(f"1,{value}\n" for value in values)
    path.write_text(f"id,v\n{'1,\n' * 10_001}{late}{'1,\n' * 90_000}{late * 10_001}")
    found = schema_of(printed(path, "--null", "NA")).columns()["v"]
    whole = pl.read_csv(path, try_parse_dates=True, infer_schema_length=None, null_values="NA")
    assert (type(found), found.dtype, found.nullable) == (column, whole["v"].dtype, True)


def test_later_values_widen_the_dtype_of_a_column_that_begins_empty(
    tmp_path: Path, printed: Run
) -> None:
    path = tmp_path / "sparse.csv"
    path.write_text(f"a,b,*\n{',,\n' * 10_001}{'1,1,1\n' * 10_001}2.5,x,1\n")
    columns = schema_of(printed(path)).columns()
    assert {name: type(column) for name, column in columns.items()} == {
        "a": dy.Float64,
        "b": dy.String,
    }


@pytest.mark.parametrize("name", ["day[1]", "day*", "day?"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_a_file_whose_name_could_be_a_pattern(
    tmp_path: Path, printed: Run, name: str, suffix: str
) -> None:
    path = tmp_path / f"{name}{suffix}"
    if suffix == ".parquet":
        written(pl.DataFrame({"found": [1]}), path)
    else:
        text = b"found\n1\n"
        path.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    (tmp_path / f"day1{suffix}").write_bytes(b"The pattern would find this.")
    assert list(schema_of(printed(path)).columns()) == ["found"]


def test_only_the_first_rows(tmp_path: Path, printed: Run) -> None:
    source = printed(written(ORDERS, tmp_path / "orders.parquet"), "--rows", 1)
    assert source.startswith(f"{IMPORT}# orders.parquet: 1 row.\n")
    assert "class_ = dy.String(alias=" in source


def test_no_values_where_none_are_wanted(tmp_path: Path, printed: Run) -> None:
    canary = 987_654_321
    frame = pl.DataFrame({"id": [canary, canary + 1], "at": [dt.date(2026, 1, 5), None]})
    path = written(frame, tmp_path / "x.parquet")
    assert str(canary) in printed(path)
    assert "id = dy.Int64()  # primary_key=True\n" in printed(path, "--no-ranges")
    assert "2026" not in printed(path, "--no-ranges")


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("raw-orders_2024", "RawOrders2024"),
        ("2024", "Table2024"),
        ("none", "TableNone"),
        ("True", "TableTrue"),
        ("class", "Class"),
    ],
)
def test_the_class_is_named_after_the_file(
    tmp_path: Path, printed: Run, name: str, class_name: str
) -> None:
    path = written(ORDERS, tmp_path / f"{name}.parquet")
    assert schema_of(printed(path)).__name__ == class_name


def test_a_name_for_the_class(tmp_path: Path, printed: Run) -> None:
    path = written(ORDERS, tmp_path / "orders.parquet")
    assert "class Sales(dy.Schema):\n" in printed(path, "--name", "Sales")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--name", "a b"],
        ["--name", "class"],
        ["--name", "dy"],
        ["--name", "__debug__"],
        ["--rows", "-1"],
        ["--rows", "x"],
        ["--separator", "||"],
    ],
    ids=" ".join,
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["infer", "orders.parquet", *arguments])
    assert caught.value.code == 2
    assert f"argument {arguments[0]}: " in capsys.readouterr().err


def test_the_module_is_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "infer", str(tmp_path / "none.csv")])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(command.__file__, run_name="__main__")
    assert caught.value.code == 1
    assert "there is no such file" in capsys.readouterr().err


def test_an_interrupted_command_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "open_table", interrupt)
    assert command.main(["infer", "orders.parquet"]) == 130
    assert capsys.readouterr() == ("", "")


def test_progress_goes_to_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(pl.DataFrame({"i\nd": [1, 2, 3]}), tmp_path / "x.parquet")
    command.main(["infer", str(path)])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(command, "_SECONDS_BETWEEN_LINES", 0)
    command.main(["infer", str(path)])
    assert capsys.readouterr().err.splitlines() == [
        "Looked at 3 of 3 rows.",
        r"Comparing 3 values of i\nd.",
    ]


# Files that cannot be read.


def test_a_missing_file(tmp_path: Path, refused: Run) -> None:
    path = tmp_path / "x.parquet"
    assert refused(path).endswith("x.parquet cannot be read: there is no such file.")


def test_a_path_that_is_not_utf8(tmp_path: Path, refused: Run) -> None:
    path = tmp_path / "\udcff.csv"
    path.write_text("a\n1\n")
    assert refused(path).endswith(r"\udcff.csv cannot be read: its path is not UTF-8.")


def test_a_folder(tmp_path: Path, refused: Run) -> None:
    assert refused(tmp_path).endswith("cannot be read: it is a folder.")


def test_an_unknown_kind(tmp_path: Path, refused: Run) -> None:
    path = tmp_path / "orders.xls"
    path.touch()
    assert refused(path).endswith(
        "its name ends with none of `.parquet`, `.csv`, `.csv.gz`, `.tsv`, `.duckdb`, `.db`."
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.parquet", b"id\n1\n", "File out of specification"),
        ("x.csv", b"", "empty CSV"),
        ("x.csv", b"a\n\xe9\n", "invalid utf-8 sequence"),
        ("x.csv", b"a,b\n1,2,3\n", "found more fields than defined"),
        ("x.csv.gz", b"\x1f\x8bno", ""),
    ],
    ids=["no parquet", "empty", "no utf-8", "ragged", "no gzip"],
)
def test_a_file_that_is_not_what_it_says(
    tmp_path: Path, refused: Run, name: str, content: bytes, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert reason in refused(path)


def test_a_table_without_columns(tmp_path: Path, refused: Run) -> None:
    path = written(pl.DataFrame({"": [1], "*": [1], "^a$": [1]}), tmp_path / "x.parquet")
    assert refused(path).endswith("it has no column that a schema can declare.")


def test_the_error_has_its_facts(tmp_path: Path) -> None:
    error = dd.errors.UnreadableFileError("x.csv", "it is a folder")
    assert (error.file, error.reason) == ("x.csv", "it is a folder")


# DuckDB.

duckdb = pytest.mark.io_managers


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A database with two tables, one of which has columns that Polars cannot read."""
    from duckdb import connect

    path = tmp_path / "shop.duckdb"
    with connect(str(path)) as connection:
        connection.execute(
            "create table customers (id bigint, kind enum('a', 'INTERVAL'), paid decimal(10, 2));"
            "insert into customers values (1, 'a', 1.5), (2, 'a', null);"
            "create schema raw;"
            'create table raw.orders (id integer, "a ""b" integer, span interval);'
            "insert into raw.orders select range, 1, interval 1 day from range(250000)"
        )
    return path


@duckdb
def test_a_duckdb_table(warehouse: Path, printed: Run) -> None:
    source = printed(warehouse, "--table", "raw.orders")
    assert source == (
        f"{IMPORT}# raw.orders of shop.duckdb: 250,000 rows.\n{HEAD}"
        """

class Orders(dy.Schema):
    # Left out, since Polars cannot read it: span, INTERVAL.
    id = dy.Int32()  # primary_key=True, min=0, max=249999
    a_b = dy.Int32(alias='a "b')  # min=1, max=1
"""
    )
    assert source == printed(warehouse, "--table", "orders")


@duckdb
def test_quoted_text_in_a_duckdb_type_is_no_type(warehouse: Path, printed: Run) -> None:
    schema = schema_of(printed(warehouse, "--table", "main.customers", "--rows", 1))
    assert {name: type(column) for name, column in schema.columns().items()} == {
        "id": dy.Int64,
        "kind": dy.Categorical,
        "paid": dy.Decimal,
    }


@duckdb
@pytest.mark.parametrize("name", ["shop[1]", "shop*", "shop?"])
def test_a_database_whose_name_could_be_a_pattern(warehouse: Path, printed: Run, name: str) -> None:
    path = warehouse.rename(warehouse.with_name(f"{name}.duckdb"))
    assert f"of {name}.duckdb: 2 rows" in printed(path, "--table", "customers")


@duckdb
def test_the_only_table_of_a_database_needs_no_name(tmp_path: Path, printed: Run) -> None:
    from duckdb import connect

    with connect(str(tmp_path / "shop.db")) as connection:
        connection.execute("create table orders as select 1 as id")
    assert "class Orders(dy.Schema):" in printed(tmp_path / "shop.db")


@duckdb
@pytest.mark.parametrize(
    ("options", "problem"),
    [([], "`--table` has to name one"), (["--table", "x"], "`--table` names none")],
    ids=["none", "unknown"],
)
def test_a_duckdb_table_that_is_not_there(
    warehouse: Path, refused: Run, options: list[str], problem: str
) -> None:
    tables = "of its tables: `main.customers`, `raw.orders`."
    assert refused(warehouse, *options).endswith(f"{problem} {tables}")


@duckdb
def test_the_tables_of_a_database_are_named_in_full(tmp_path: Path, refused: Run) -> None:
    from duckdb import connect

    path = tmp_path / "shop.duckdb"
    names = ["a\nb" * 40, *"cdefghi"]
    with connect(str(path)) as connection:
        for name in names:
            connection.execute(f'create table "{name}" (id integer)')
    shown = "a\\nb" * 40
    assert refused(path).endswith(f"one of its tables: `main.{shown}` and 7 more.")


@duckdb
def test_a_file_that_is_no_database(tmp_path: Path, refused: Run) -> None:
    path = tmp_path / "x.duckdb"
    path.write_text("no database" * 1000)
    # DuckDB repeats the path, so that what it says of it may be cut.
    assert "x.duckdb cannot be read: IO Error: The file " in refused(path)


def test_duckdb_is_named_where_it_is_missing(
    tmp_path: Path, refused: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    path = tmp_path / "x.duckdb"
    path.touch()
    assert refused(path).endswith("`duckdb` is missing: install duckdb and pyarrow.")


def test_a_file_other_than_duckdb_has_no_table(tmp_path: Path, refused: Run) -> None:
    path = written(ORDERS, tmp_path / "x.parquet")
    assert refused(path, "--table", "x").endswith("`--table` is for DuckDB.")


# Columns.


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


# Keys.


def key_of(
    frame: pl.DataFrame, limits: Limits, batch_rows: int = BATCH_ROWS
) -> tuple[tuple[str, ...], set[str]]:
    batches = functools.partial(read_batches, frame.lazy(), frame.height, batch_rows=batch_rows)
    table = dataclasses.replace(table_of(frame), batches=batches)
    inference = infer(table, print, limits)
    return inference.key, set(inference.unique)


SEVERAL_ROWS = pl.DataFrame(
    {
        "shop": ["a", "a", "b", "b"],
        "code": [1.0, 2.0, 3.0, 4.0],
        "maybe": [1, 2, 3, None],
        "number": [1, 2, 1, 2],
    }
)
"""No column is a key: one is a float and one has a null."""


@pytest.mark.parametrize(
    ("frame", "key", "unique"),
    [
        (SEVERAL_ROWS, ("shop", "number"), set()),
        (SEVERAL_ROWS.drop("number"), (), set()),
        (SEVERAL_ROWS.drop("number").vstack(SEVERAL_ROWS.drop("number")), (), set()),
        (SEVERAL_ROWS.vstack(SEVERAL_ROWS), (), set()),
        (
            SEVERAL_ROWS.with_columns(i=pl.Series([4, 3, 2, 1]), j="maybe", k=pl.int_range(4)),
            ("i",),
            {"k"},
        ),
        (SEVERAL_ROWS.head(1), (), set()),
    ],
    ids=["pair", "no pair", "twice", "no key", "first", "one row"],
)
@pytest.mark.parametrize("batch_rows", [3, 100])
@pytest.mark.parametrize("rows_in_memory", [1, 100])
def test_the_key_is_the_first_column_or_pair_without_duplicates(
    frame: pl.DataFrame,
    key: tuple[str, ...],
    unique: set[str],
    batch_rows: int,
    rows_in_memory: int,
) -> None:
    limits = Limits(rows_in_memory, hashes=3, suspects=1)
    assert key_of(frame, limits, batch_rows=batch_rows) == (key, unique)


def test_a_pair_is_looked_for_in_all_rows() -> None:
    twice = SEVERAL_ROWS.vstack(SEVERAL_ROWS)
    assert key_of(twice, Limits(first_rows=2), batch_rows=4) == ((), set())


def test_values_that_hash_alike_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_inference, "_hashes", lambda batch: pl.repeat(1, batch.height, eager=True))
    assert key_of(pl.DataFrame({"a": [1, 2, 3]}), Limits(rows_in_memory=1)) == (("a",), set())


def test_rows_that_polars_does_not_deliver_are_missed() -> None:
    table = dataclasses.replace(
        table_of(ORDERS), batches=functools.partial(read_batches, ORDERS.lazy(), 5)
    )
    with pytest.raises(OSError, match="its last 2 rows cannot be read"):
        infer(table, print)


# The promise.


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


@duckdb
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
