"""Every file that a page includes is formatted, runs, and prints what it says."""

import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dagster_dataframely.__main__ import main

ROOT = Path(__file__).parents[1]
SNIPPETS = ROOT / "docs/snippets"
# The files of the tutorial need each other: `test_tutorial.py` runs them.
PROGRAMS = [path for path in sorted(SNIPPETS.glob("*.py")) if "def test_" not in path.read_text()]


def expected_output(program: Path) -> list[str]:
    lines = (line.strip() for line in program.read_text().splitlines())
    return [line.removeprefix("#> ") for line in lines if line.startswith("#> ")]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_snippet_prints_what_it_says(
    program: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == expected_output(program)


def test_the_snippets_are_formatted(tmp_path: Path) -> None:
    """But for the marker of output, which ruff would change."""
    for source in SNIPPETS.rglob("*.py"):
        copy = tmp_path / source.relative_to(SNIPPETS)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(source.read_text().replace("#> ", "# > "))
    config = ROOT / "pyproject.toml"
    command = ["ruff", "format", "--diff", "--no-cache", f"--config={config}", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


# What `python -m dagster_dataframely infer` prints.

DROPS = sorted((ROOT / "examples/warehouse/data/raw").rglob("*.csv.gz"))

WORDS = ["ordered", "packed", "shipped", "delivered", "returned", "refunded", "lost"]
FRAMES: dict[str, dict[str, Any]] = {
    "enums": {
        **{f"first_{n}": pl.Series([WORDS[0]], dtype=pl.Enum(WORDS[:n])) for n in range(1, 8)},
        "words": pl.Series([None], dtype=pl.Enum([word * 5 for word in WORDS])),
        "one": pl.Series(["x" * 90], dtype=pl.Enum(["x" * 90])),
    },
    "nested": {
        "fields": [dict.fromkeys(WORDS[:3], 1)],
        "more_fields": [{word: {"name": word, "numbers": [[1, None]]} for word in WORDS}],
        "one_field": [{"x" * 70: [{"y": None}]}],
        "deep": pl.Series([[[[[1]]]]], dtype=pl.Array(pl.Int64, (1, 1, 1, 1))),
        "deeper": [[[[[[{"number": 1.5}, None]]]]]],
    },
    "names": {
        **{name: [None] for name in ["a b", 'a"b', "a'b", "a\"b'c", 'a""b\'c', "\\", "\n"]},
        **{f"{'x' * 50}{n}": ["text"] for n in range(3)},
        "z" * 45: [1],
        "宽" * 30: ["wide"],
        "long " * 20: [1],
    },
}
"""Columns of one row, whose lines have to be broken in different ways, or quoted."""


def printed(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["infer", str(path)]) == 0
    return capsys.readouterr().out


def test_what_is_printed_is_as_ruff_formats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, columns in FRAMES.items():
        path = tmp_path / f"{name}.parquet"
        pl.DataFrame(columns).write_parquet(path)
        path.with_suffix(".py").write_text(printed(path, capsys))
    for number, drop in enumerate(DROPS[:6]):
        (tmp_path / f"drop_{number}.py").write_text(printed(drop, capsys))
    command = ["ruff", "format", "--isolated", "--diff", "--no-cache", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_the_module_on_the_site_is_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    page = (SNIPPETS.parent / "guides/infer.md").read_text()
    (drop,) = re.findall(r"dagster_dataframely infer (\S+\.csv\.gz)", page)
    shown = (SNIPPETS / "inferred_weather.py").read_text()
    assert printed(Path(drop), capsys) == shown
