"""`python -m dagster_dataframely infer` prints a schema for a file."""

import runpy
import sys
from pathlib import Path

import polars as pl
import pytest
from support.inferred import ORDERS, Run, schema_of, written

from dagster_dataframely import __main__ as command


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
        ["--encoding", "klingon"],
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

    monkeypatch.setattr(command, "open_files", interrupt)
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
