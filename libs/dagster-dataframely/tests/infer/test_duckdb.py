"""Tables of a DuckDB database are read, or refused."""

import sys
from pathlib import Path

import dataframely as dy
import pytest
from support.inferred import HEAD, IMPORT, ORDERS, Run, schema_of, written

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
