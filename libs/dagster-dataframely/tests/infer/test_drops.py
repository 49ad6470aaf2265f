"""Drops of text are taken for what most of them mean, and the printed module reads them."""

import runpy
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.inferred import Run, schema_of

import dagster_dataframely as dd
from dagster_dataframely._infer.drops import Meaning, Texts

DAYS = [f"orders_2024-07-{day:02}.csv" for day in (1, 2, 3)]


def write_drops(folder: Path) -> Path:
    """Three days of messy orders; the first lacks a column."""
    folder.mkdir()
    for number, name in enumerate(DAYS):
        rows = [
            f"{number * 1000 + row};{row:05};{'31.02.2024' if row == 7 else f'{row % 28 + 1}.7.2024'};"
            f"{row}.{row % 100:02};{'open' if row % 3 else 'paid'};{'yes' if row % 2 else 'no'}"
            for row in range(300)
        ]
        header = "id;zip;day;amount;state;flag"
        if number:
            header, rows = f"{header};ratio", [f"{row};0,{place}" for place, row in enumerate(rows)]
        (folder / name).write_text("\n".join([header, *rows, ""]))
    return folder


SCHEMA = """\
class Orders(dy.Schema):
    id = dy.Int64()  # primary_key=True
    zip = dy.String()
    # 3 of 900 texts cannot be parsed as Date.
    day = dy.Date(metadata=dd.text_format("%d.%m.%Y"))
    amount = dy.Decimal(precision=18, scale=2)
    state = dy.Enum(["open", "paid"])
    flag = dy.Bool(metadata=dd.text_format(true=["yes"], false=["no"]))
    # orders_2024-07-01.csv lacks it.
    ratio = dy.Float64(nullable=True, metadata=dd.text_format(decimal=","))
"""


@pytest.mark.parametrize("how", ["folder", "pattern", "files"])
def test_one_table_is_made_of_several_files(
    tmp_path: Path, printed: Run, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    write_drops(tmp_path / "orders")
    monkeypatch.chdir(tmp_path)
    arguments = {
        "folder": ["orders"],
        "pattern": ["orders/orders_2024-*.csv"],
        "files": [f"orders/{name}" for name in DAYS],
    }[how]
    source = printed(*arguments, "--no-ranges")
    assert SCHEMA in source
    assert 'such as "31.02.2024".' in printed(*arguments)
    Path("made.py").write_text(source)
    made = runpy.run_path("made.py")
    result = dg.materialize([made["orders"]], resources={"io_manager": dg.mem_io_manager})
    assert result.success
    table: pl.DataFrame = result.output_for_node("orders").lazy().collect()
    assert table.height == 897
    assert table["id"].is_in([7, 1007, 2007]).any() is False


def test_the_class_alone(tmp_path: Path, printed: Run) -> None:
    source = printed(write_drops(tmp_path / "orders"), "--schema-only", "--no-ranges")
    assert source.endswith(SCHEMA)
    assert "pl." not in source


@pytest.mark.parametrize(
    ("texts", "column", "formats"),
    [
        (["1", " 2 "], dy.Int64, ""),
        (["02134", "10001"], dy.String, ""),
        (["1.50", "12.00"], dy.Decimal, ""),
        (["1.5", "12.00"], dy.Float64, ""),
        (["1,234.50", "7.00"], dy.Decimal, 'thousands=","'),
        (["1.234,5", "7,25"], dy.Float64, 'decimal=",", thousands="."'),
        (["TRUE", "false"], dy.Bool, ""),
        (["13/01/2024", "01/02/2024"], dy.Date, '"%d/%m/%Y"'),
        (["01/13/2024", "01/02/2024"], dy.Date, '"%m/%d/%Y"'),
        (["01.02.2024 12:30", "01.02.2024 12:31"], dy.Datetime, '"%d.%m.%Y %H:%M"'),
        (["2024-01-02T12:30:00Z", "2024-01-02T12:30:00+02:00"], dy.Datetime, ""),
        (["12:30", "12:31"], dy.Time, ""),
        (["a", "b"], dy.String, ""),
    ],
    ids=str,
)
def test_texts_are_taken_for_what_they_mean(
    tmp_path: Path, printed: Run, texts: list[str], column: type[dy.Column], formats: str
) -> None:
    path = tmp_path / "x.csv"
    pl.DataFrame({"v": texts}).write_csv(path, quote_style="always")
    source = printed(path)
    assert type(schema_of(source).columns()["v"]) is column
    assert formats in source if formats else "text_format" not in source
    assert "other way round" not in source


def test_an_order_of_day_and_month_that_no_text_tells_is_said(tmp_path: Path, printed: Run) -> None:
    (tmp_path / "x.csv").write_text("v\n01/02/2024\n03/04/2024\n")
    source = printed(tmp_path / "x.csv")
    assert "    # Day and month may be the other way round.\n" in source
    assert 'text_format("%d/%m/%Y")' in source


def test_a_key_that_few_rows_break_is_said(tmp_path: Path, printed: Run) -> None:
    ids = [*range(1_000), 7, 7]
    pl.DataFrame({"id": ids, "v": 1}).write_csv(tmp_path / "x.csv")
    assert "# id is one, but for 2 rows.\n" in printed(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("names", "arguments", "class_name"),
    [
        (["sales_1.csv", "sales_2.csv"], ["sales_1.csv", "sales_2.csv"], "Sales"),
        (["1.csv", "2.csv"], ["1.csv", "2.csv"], "Drops"),
        (["2024-01-01.csv"], ["20*.csv"], "Drops"),
        (["sales-2024.csv"], ["sales-[0-9]*.csv"], "Sales"),
        (["2024/a.csv"], ["*/a.csv"], "A"),
    ],
    ids=str,
)
def test_the_class_is_named_after_the_pattern(
    tmp_path: Path, printed: Run, names: list[str], arguments: list[str], class_name: str
) -> None:
    folder = tmp_path / "drops"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a\n1\n")
    source = printed(*(folder / argument for argument in arguments))
    assert schema_of(source).__name__ == class_name


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a.csv", "b.parquet"], "several files have to be CSV files"),
        (["a.csv", "none.csv"], "there is no such file"),
        (["none*.csv"], "there is no such file"),
        (["a.csv", "a.csv", "--table", "x"], "`--table` is for DuckDB"),
        (["e*.csv"], "it has no column that a schema can declare"),
    ],
    ids=str,
)
def test_files_that_are_no_table(
    tmp_path: Path, refused: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "e.csv").write_text("*\n1\n")
    monkeypatch.chdir(tmp_path)
    assert reason in refused(*arguments)


HOSTILE = ["a'b", "^a$", "*", "class", "dd", "pl", "x\ny", "{z}"]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("name", ['it\'s "x".csv', "a[1].csv", "{x}.csv", "b\\.csv", "x\ny.csv"])
def test_hostile_names_make_a_module_that_reads_its_files(
    tmp_path: Path, printed: Run, name: str, number: int
) -> None:
    path = tmp_path / name
    frame = pl.DataFrame({column: ["1", "2"] for column in HOSTILE})
    frame.write_csv(path)
    made: dict[str, Any] = {}
    exec(printed(*[path] * number, "--name", "S"), made)
    (body,) = (value for value in made.values() if isinstance(value, dg.AssetsDefinition))
    called: Any = dd.testing.invoke(body)
    table = called.table if isinstance(called.table, pl.DataFrame) else called.table.collect()
    names = [column for column in HOSTILE if column not in ("^a$", "*")]
    expected = frame.select(pl.nth(place) for place, c in enumerate(HOSTILE) if c in names)
    assert_frame_equal(table, pl.concat([expected.cast(pl.Int64)] * number))


def test_a_wide_table_has_few_checks(tmp_path: Path, printed: Run) -> None:
    header = ",".join(f"c{number}" for number in range(300))
    (tmp_path / "a.csv").write_text(f"{header}\n{header}\n")
    source = printed(tmp_path / "a.csv")
    exec(source, {})
    assert 'quarantine=True, check_granularity="schema")' in source


def test_many_texts_are_no_categories() -> None:
    texts = Texts(Meaning(pl.String()))
    batches = [pl.Series([str(n) for n in range(20)]), pl.Series(["20", "21"]), pl.Series(["22"])]
    found = []
    for batch in batches:
        texts.see(batch, batch)
        found.append(None if texts.distinct is None else len(texts.distinct))
    assert found == [20, None, None]
    assert (texts.texts, texts.lost, texts.missing) == (23, 0, False)
