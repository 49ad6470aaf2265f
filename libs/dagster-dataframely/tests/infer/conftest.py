"""Fixtures of these tests."""

import pytest
from support.inferred import Run

from dagster_dataframely import __main__ as command


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
