"""Which Python the sessions of the noxfile run on."""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

NOXFILE = Path(__file__).parents[1] / "noxfile.py"
Machine = Callable[..., ModuleType]
# Each test loads the noxfile again.
pytestmark = pytest.mark.filterwarnings("ignore:The session")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The noxfile on a machine that has only the programs given."""

    def make(*pythons: str, uv: str = "exit 1", lists: bool = False) -> ModuleType:
        for name, script in {**dict.fromkeys(pythons, ""), "uv": uv}.items():
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "automatic")
        monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
        monkeypatch.setattr(sys, "argv", ["nox", "-l"] if lists else ["nox"])
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        spec = importlib.util.spec_from_file_location("noxfile", NOXFILE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make


def test_supported_pythons_are_used_where_they_are(machine: Machine) -> None:
    found = machine("python3.11", "python3.13", "python3.14", "python3.15")
    assert (found.PYTHONS, found.OLDEST, found.NEWEST) == (["3.13", "3.14"], "3.13", "3.14")


def test_without_one_uv_fetches_the_oldest(machine: Machine, tmp_path: Path) -> None:
    fetched = tmp_path / "fetched/python3.12"
    uv = f'[ "$2" = install ] || echo {fetched}; [ "$3" = 3.12 ]'
    found = machine("python3.11", "python3.15", uv=uv)
    assert found.PYTHONS == ["3.12"]
    assert os.environ["PATH"].split(os.pathsep)[0] == str(fetched.parent)


def test_a_newer_one_is_tried_where_uv_cannot(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert machine("python3.11", "python3.16").PYTHONS == ["3.16"]
    assert "Python 3.16 is untested" in capsys.readouterr().out


def test_one_error_says_what_is_missing(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine("python3.11")
    *_, error = capsys.readouterr().out.splitlines()
    assert error == (
        "No Python 3.12 or 3.13 or 3.14 was found, and uv could not fetch one. Install one."
    )


def test_listing_the_sessions_fetches_nothing(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert machine("python3.11", uv="echo fetched >&2; exit 1", lists=True).PYTHONS == ["3.12"]
    assert capsys.readouterr() == ("", "")
