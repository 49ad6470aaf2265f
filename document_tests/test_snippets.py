"""Every file that a page includes is a program that runs, and prints what it says."""

import runpy
import subprocess
from pathlib import Path

import pytest

SNIPPETS = Path(__file__).parents[1] / "docs/snippets"
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
    config = SNIPPETS.parents[1] / "pyproject.toml"
    command = ["ruff", "format", "--diff", "--no-cache", f"--config={config}", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr
