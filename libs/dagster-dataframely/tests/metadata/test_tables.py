"""Tables share the bytes they may take: none starves, and what is left out is said in its place."""

from typing import Any

import dagster as dg
import polars as pl
import pytest

from dagster_dataframely._metadata.tables import (
    Table,
    fit_names,
    fit_tables,
    rows_table,
    sample_table,
)

KEY = len('"dataframely/valid_stats/numeric": , ')
WORST = "\N{GRINNING FACE}" * 200
"""Takes the most bytes of all cells: twelve for each character."""

WIDE = Table(
    columns=[(f"c{number}", "Int64") for number in range(50)],
    rows=[[row * column for column in range(50)] for row in range(4)],
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


@pytest.mark.parametrize("cell", [7, "short", WORST, None])
def test_a_table_never_takes_more_than_its_room(cell: Any) -> None:
    table = Table([(f"{name}é" * 9, "String") for name in "abcdef"], [[cell] * 6] * 9, first=["cé"])
    whole = table.size
    assert stored(table.fit(whole)) <= whole <= stored(table.fit(whole)) + 40
    for room in range(0, whole, whole // 97):
        value = table.fit(room)
        is_note = isinstance(value, dg.TextMetadataValue)
        assert stored(value) <= (150 if is_note else room)
        assert is_note == (room < table.size_of(1, 1))


def test_rows_go_first_and_then_the_columns_that_matter_least() -> None:
    whole = WIDE.fit(WIDE.size)
    assert (len(records(whole)), len(names(whole))) == (4, 50)
    fewer_rows = WIDE.fit(WIDE.size - 1)
    assert records(fewer_rows)[:2] == records(whole)[:2]
    assert records(fewer_rows)[2]["c0"] == "… 2 more rows (max_metadata_bytes)"
    assert names(fewer_rows) == names(whole)
    fewer_columns = WIDE.fit(WIDE.size_of(1, 4))
    assert names(fewer_columns) == [
        "c0", "c1", "c7", "c40", "… 46 more columns (max_metadata_bytes)",
    ]  # fmt: skip
    assert records(fewer_columns) == [
        {"c0": 0, "c1": 0, "c7": 0, "c40": 0},
        {"c0": "… 3 more rows (max_metadata_bytes)", "c1": None, "c7": None, "c40": None},
    ]
    assert names(WIDE.fit(WIDE.size_of(1, 1)))[0] == "c40"
    assert WIDE.fit(0) == dg.MetadataValue.text("4 rows left out (max_metadata_bytes)")


def test_counts_that_are_left_out_are_added_up() -> None:
    table = rows_table([{"rules": f"r{n}", "rows": n} for n in range(100)], "set", total="rows")
    shown = records(table.fit(2_000))
    assert shown[-1]["rules"] == f"… {101 - len(shown)} more sets (max_metadata_bytes)"
    assert sum(record["rows"] for record in shown) == sum(range(100))


def test_rows_of_any_value() -> None:
    table = rows_table([{"a": 1, "b": float("nan")}, {"a": 2, "b": None}])
    assert records(table.whole()) == [{"a": 1, "b": "NaN"}, {"a": 2, "b": None}]
    assert names(table.whole()) == ["a", "b"]


def test_a_sample_is_the_frame_without_redacted_values() -> None:
    frame = pl.DataFrame(
        {"a b": [1, 2], "name": ["Ann", None], "kind": ["x", "y"]},
        schema_overrides={"kind": pl.Enum(["x", "y"])},
    )
    table = sample_table(frame, {"name", "kind"}, 10_000)
    assert records(table.whole()) == [
        {"a b": 1, "name": "redacted", "kind": "redacted"},
        {"a b": 2, "name": None, "kind": "redacted"},
    ]
    assert table.columns == [("a b", "Int64"), ("name", "String"), ("kind", "Enum")]


def test_of_a_large_sample_only_what_may_fit_is_rendered() -> None:
    frame = pl.DataFrame({f"c{n}": range(1_000) for n in range(500)})
    table = sample_table(frame, [], 10_000, ["c400", "nothing"])
    assert [name for name, _ in table.columns] == [*(f"c{n}" for n in range(49)), "c400"]
    assert len(table.rows) == 22
    value = table.fit(10_000)
    assert str(records(value)[-1]["c0"]).startswith(f"… {1_001 - len(records(value))} more rows")
    assert names(value)[-1] == f"… {501 - len(names(value))} more columns (max_metadata_bytes)"
    assert 9_000 < stored(value) <= 10_000
    assert sample_table(frame, [], 0).fit(0).value == "1,000 rows left out (max_metadata_bytes)"


def column(size: int, weight: int = 0) -> Table:
    """A table of so many rows of a hundred bytes."""
    return Table([("a", "String")], [["x" * 100]] * size, weight=weight)


def test_small_tables_are_whole_and_the_others_share_the_rest_equally() -> None:
    tables = {"small": column(2), "big": column(400), "huge": column(4_000), "tiny": column(1)}
    fitted = fit_tables(tables, 20_000)
    assert {key: len(records(value)) for key, value in fitted.items()} == {
        "small": 2,
        "big": len(records(fitted["huge"])),
        "huge": len(records(fitted["big"])),
        "tiny": 1,
    }
    assert 18_000 < sum(map(stored, fitted.values())) <= 20_000


def test_where_not_every_table_gets_a_row_the_heaviest_are_shown() -> None:
    tables = {str(number): column(50, weight=number % 7) for number in range(100)}
    fitted = fit_tables(tables, 30_000)
    shown = {key for key, value in fitted.items() if isinstance(value, dg.TableMetadataValue)}
    assert 5 < len(shown) < 20
    assert shown <= {str(number) for number in range(100) if number % 7 >= 5}
    assert "6" in shown
    assert sum(map(stored, fitted.values())) <= 30_000


def test_without_any_room_there_are_only_notes() -> None:
    fitted = fit_tables({"a": column(3), "b": WIDE}, 0)
    assert fitted == {
        "a": dg.MetadataValue.text("3 rows left out (max_metadata_bytes)"),
        "b": dg.MetadataValue.text("4 rows left out (max_metadata_bytes)"),
    }
    assert fit_tables({}, 0) == {}


def test_names_that_do_not_fit_are_counted() -> None:
    names = [f"column {number}" for number in range(1000)]
    assert fit_names(names, 100_000) == dg.MetadataValue.json(names)
    value = fit_names(names, 1_000)
    assert isinstance(value.value, list)
    *shown, last = value.value
    assert shown == names[: len(shown)]
    assert last == f"… {1000 - len(shown)} more columns (max_metadata_bytes)"
    assert stored(value) <= 1_000
    assert fit_names(names, 0).value == ["… 1,000 more columns (max_metadata_bytes)"]
