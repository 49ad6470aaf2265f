"""Metadata is cut to its share of the budget, and what is left out is said in its place."""

from typing import Any

import dagster as dg
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataframely._metadata.budget import (
    SIXTEENTHS,
    Part,
    fit,
    fit_names,
    fit_tables,
    limit_each,
    share,
    shrink,
    size,
)
from dagster_dataframely._metadata.tables import Table, rows_table, sample_table
from dagster_dataframely._settings import Settings

KEY = len('"dataframely/valid_stats/numeric": , ')
WORST = "\N{GRINNING FACE}" * 200
"""Takes the most bytes of all cells: twelve for each character."""

WIDE = Table(
    columns={f"c{number}": "Int64" for number in range(50)},
    rows=[{f"c{column}": row * column for column in range(50)} for row in range(4)],
    first=["c40", "c7", "no such column"],
)
"""Fifty columns, of which two matter most."""


def stored(value: Any) -> int:
    return len(dg.serialize_value(value)) + KEY


def records(value: dg.MetadataValue[Any]) -> list[dict[str, Any]]:
    assert isinstance(value, dg.TableMetadataValue)
    return [dict(record.data) for record in value.records]


def names(value: dg.MetadataValue[Any]) -> list[str]:
    assert isinstance(value, dg.TableMetadataValue)
    return [column.name for column in value.schema.columns]


def test_the_shares_are_the_whole_budget() -> None:
    assert sum(SIXTEENTHS.values()) == 16
    settings = Settings(max_metadata_bytes=1_600)
    parts: dict[Part, int] = {"check samples": 500, "failures": 100, "tables": 400}
    assert {part: share(settings, part) for part in parts} == parts
    assert share(settings, "tables", 3) == 133


def test_half_is_tried_until_it_fits() -> None:
    tried = []

    def build(number: int) -> dg.MetadataValue[Any]:
        tried.append(number)
        return dg.MetadataValue.text("x" * 100 * number)

    assert shrink(build, 9, 400).value == "x" * 200
    assert shrink(build, 2, 0).value == ""
    assert tried == [9, 4, 2, 2, 1, 0]


@given(
    rows=st.lists(
        st.lists(st.none() | st.text() | st.integers() | st.just(WORST), min_size=3, max_size=3),
        max_size=40,
    ),
    name=st.text(max_size=300),
    max_bytes=st.integers(0, 20_000),
)
def test_a_table_never_takes_more_than_its_bytes(
    rows: list[list[Any]], name: str, max_bytes: int
) -> None:
    columns = dict.fromkeys([f"{name}{number}" for number in range(3)], "String")
    records_ = [dict(zip(columns, row, strict=True)) for row in rows]
    table = Table(columns, records_, first=[f"{name}1"])
    value = fit(table, max_bytes)
    whole = table.cut()
    assert stored(value) <= size(value)
    if size(whole) <= max_bytes:
        assert value == whole
    elif isinstance(value, dg.TextMetadataValue):
        assert size(table.cut(1, 1)) > max_bytes
        assert size(value) <= 150
    else:
        assert size(value) <= max_bytes
        assert f"{name}1" in names(value)


def test_rows_go_first_and_then_the_columns_that_matter_least() -> None:
    whole = fit(WIDE, size(WIDE.cut()))
    assert (len(records(whole)), len(names(whole))) == (4, 50)
    fewer_rows = fit(WIDE, size(WIDE.cut()) - 1)
    assert records(fewer_rows)[:2] == records(whole)[:2]
    assert records(fewer_rows)[2]["c0"] == "… 2 more rows (max_metadata_bytes)"
    assert names(fewer_rows) == names(whole)
    fewer_columns = fit(WIDE, size(WIDE.cut(1, 3)))
    assert names(fewer_columns) == ["c0", "c7", "c40", "… 47 more columns (max_metadata_bytes)"]
    assert records(fewer_columns) == [
        {"c0": 0, "c7": 0, "c40": 0},
        {"c0": "… 3 more rows (max_metadata_bytes)", "c7": None, "c40": None},
    ]
    assert names(fit(WIDE, size(WIDE.cut(1, 1))))[0] == "c40"
    assert fit(WIDE, 0) == dg.MetadataValue.text("4 rows left out (max_metadata_bytes)")


def test_a_table_without_rows_loses_columns() -> None:
    table = Table(WIDE.columns, [])
    assert names(fit(table, 3_000))[-1] == "… 38 more columns (max_metadata_bytes)"
    assert records(fit(table, 20_000)) == []


def test_counts_that_are_left_out_are_added_up() -> None:
    rows = [{"rules": f"r{number}", "rows": number} for number in range(100)]
    table = rows_table(rows, more_rows=20, noun="combination", total=("rows", 5_000))
    shown = records(fit(table, 2_000))
    assert shown[-1]["rules"] == f"… {121 - len(shown)} more combinations (max_metadata_bytes)"
    assert sum(record["rows"] for record in shown) == 5_000
    assert len(shown) > 5


def test_rows_of_any_value() -> None:
    table = rows_table([{"a": 1, "b": float("nan")}, {"a": 2, "b": None}])
    assert records(table.cut()) == [{"a": 1, "b": "NaN"}, {"a": 2, "b": None}]
    assert names(table.cut()) == ["a", "b"]


def test_a_sample_is_the_frame_without_redacted_values() -> None:
    frame = pl.DataFrame(
        {"a b": [1, 2], "name": ["Ann", None], "kind": ["x", "y"]},
        schema_overrides={"kind": pl.Enum(["x", "y"])},
    )
    table = sample_table(frame, {"name", "kind"}, 10_000)
    assert records(table.cut()) == [
        {"a b": 1, "name": "redacted", "kind": "redacted"},
        {"a b": 2, "name": None, "kind": "redacted"},
    ]
    assert table.columns == {"a b": "Int64", "name": "String", "kind": "Enum"}


def test_of_a_large_sample_only_what_may_fit_is_rendered() -> None:
    frame = pl.DataFrame({f"c{n}": range(1_000) for n in range(500)})
    table = sample_table(frame, [], 10_000, ["c400", "nothing"])
    assert list(table.columns) == [*(f"c{n}" for n in range(54)), "c400"]
    assert len(table.rows) == 22
    value = fit(table, 10_000)
    assert str(records(value)[-1]["c0"]).startswith(f"… {1_001 - len(records(value))} more rows")
    assert names(value)[-1] == f"… {501 - len(names(value))} more columns (max_metadata_bytes)"
    assert 5_000 < size(value) <= 10_000
    assert fit(sample_table(frame, [], 0), 0).value == "1,000 rows left out (max_metadata_bytes)"


def test_of_more_tables_than_fit_only_some_are_worth_rendering() -> None:
    assert limit_each(60_000, 2) == (2, 60_000)
    assert limit_each(60_000, 100) == (100, 2_400)
    assert limit_each(60_000, 1_000) == (200, 1_500)
    assert limit_each(0, 3) == (0, 0)


def column(rows: int) -> Table:
    """A table of rows of a hundred bytes."""
    return Table({"a": "String"}, [{"a": "x" * 100}] * rows)


def test_small_tables_are_whole_and_the_others_share_the_rest_equally() -> None:
    tables = {"small": column(2), "big": column(400), "huge": column(800), "tiny": column(1)}
    fitted = fit_tables({**tables, "not a table": 7}, 20_000)
    assert fitted.pop("not a table") == 7
    assert {key: len(records(value)) for key, value in fitted.items()} == {
        "small": 2,
        "big": 51,
        "huge": 51,
        "tiny": 1,
    }
    assert 10_000 < sum(map(stored, fitted.values())) <= 20_000


def test_where_not_every_table_gets_a_row_the_first_are_shown() -> None:
    tables = {number: column(50) for number in range(100)}
    fitted = fit_tables(tables, 30_000)
    shown = [key for key, value in fitted.items() if isinstance(value, dg.TableMetadataValue)]
    assert shown == list(range(20))
    assert sum(size(fitted[key]) for key in shown) <= 30_000
    assert {size(value) <= 150 for key, value in fitted.items() if key not in shown} == {True}


@given(
    sizes=st.lists(st.integers(0, 60), max_size=12),
    max_bytes=st.integers(0, 30_000),
)
def test_tables_never_take_more_than_their_bytes(sizes: list[int], max_bytes: int) -> None:
    tables = dict(enumerate(map(column, sizes)))
    fitted = fit_tables(tables, max_bytes)
    shown = [value for value in fitted.values() if isinstance(value, dg.TableMetadataValue)]
    assert sum(map(size, shown)) <= max_bytes
    equal_part = max_bytes // max(1, len(tables))
    for key, table in tables.items():
        if equal_part >= 1_500 and size(table.cut()) <= equal_part:
            assert fitted[key] == table.cut()


def test_without_any_bytes_there_are_only_notes() -> None:
    fitted = fit_tables({"a": column(3), "b": WIDE}, 0)
    assert fitted == {
        "a": dg.MetadataValue.text("3 rows left out (max_metadata_bytes)"),
        "b": dg.MetadataValue.text("4 rows left out (max_metadata_bytes)"),
    }
    assert fit_tables({}, 0) == {}


def test_names_that_do_not_fit_are_counted() -> None:
    counts = {f"c{number}": number for number in range(1_000)}
    assert fit_names(counts, "rule", 100_000) == counts
    *shown, note = fit_names(counts, "rule", 1_000).items()
    assert dict(shown) == {f"c{number}": number for number in range(len(shown))}
    assert note == (f"… {1_000 - len(shown)} more rules (max_metadata_bytes)", None)
    assert 500 < size(dg.MetadataValue.json(dict([*shown, note]))) <= 1_000
    assert fit_names(counts, "rule", 0) == {"… 1,000 more rules (max_metadata_bytes)": None}
    assert fit_names({}, "rule", 0) == {}
