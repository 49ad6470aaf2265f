"""Parquet and CSV files are read as they are, or refused."""

import datetime as dt
import gzip
from pathlib import Path

import dataframely as dy
import polars as pl
import pytest
from support.inferred import HEAD, IMPORT, ORDERS, Run, schema_of, written

import dagster_dataframely as dd


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
    text = f"{IMPORT}# 2026.csv: 2 rows.\n{HEAD}"
    text += """

class Table2026(dy.Schema):
    id = dy.Int64()  # primary_key=True, min=1, max=2
    day = dy.Date()  # min=datetime.date(2026, 1, 5), max=datetime.date(2026, 1, 5)
    note = dy.String(nullable=True)
"""
    assert printed(path, "--null", "NA", "--schema-only") == text


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


def test_dtypes_of_a_csv_file_fit_most_rows(tmp_path: Path, printed: Run) -> None:
    path = tmp_path / "late.csv"
    path.write_text("a,b,c,d\n" + "1,1,2026-01-05,1\n" * 9_000 + "2.5,x,never,02134\n" * 100)
    columns = schema_of(printed(path, "--no-ranges")).columns()
    assert {name: type(column) for name, column in columns.items()} == {
        "a": dy.Float64,
        "b": dy.Enum,
        "c": dy.Enum,
        "d": dy.Enum,
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
    path.write_text(f"id,v\n{'1,\n' * 10_001}{late}{'1,\n' * 10}{late * 3}")
    found = schema_of(printed(path, "--null", "NA")).columns()["v"]
    whole = pl.read_csv(path, try_parse_dates=True, infer_schema_length=None, null_values="NA")
    assert (type(found), found.dtype, found.nullable) == (column, whole["v"].dtype, True)


SPARSE_TIMES = f"id,v\n{'1,\n' * 10_001}1,09:30:00\n1,09:30:01\n"


def test_a_column_of_times_may_begin_empty(tmp_path: Path, printed: Run) -> None:
    path = tmp_path / "times.csv"
    path.write_text(SPARSE_TIMES)
    assert schema_of(printed(path)).columns()["v"].dtype == pl.Time()


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


def test_a_missing_file(tmp_path: Path, refused: Run) -> None:
    path = tmp_path / "x.parquet"
    assert refused(path).endswith("x.parquet cannot be read: there is no such file.")


def test_a_path_that_is_not_utf8(tmp_path: Path, refused: Run) -> None:
    path = tmp_path / "\udcff.csv"
    path.write_text("a\n1\n")
    assert refused(path).endswith(r"\udcff.csv cannot be read: its path is not UTF-8.")


def test_a_folder(tmp_path: Path, refused: Run) -> None:
    assert refused(tmp_path).endswith("cannot be read: it is a folder without CSV files.")


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
        ("x.csv", b"a\n\xe9\n", "it is not UTF-8, at byte 2"),
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


def test_a_column_that_begins_empty_has_more_values_than_tell_its_dtype(
    tmp_path: Path, printed: Run
) -> None:
    path = tmp_path / "sparse.csv"
    path.write_text(f"id,v\n{'1,\n' * 10_001}{'1,2\n' * 300_000}")
    assert type(schema_of(printed(path)).columns()["v"]) is dy.Int64
