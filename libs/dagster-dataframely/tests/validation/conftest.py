"""Fixtures of these tests."""

from pathlib import Path

import pytest


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    """An empty directory for staging files."""
    directory = tmp_path / "staging"
    directory.mkdir()
    return directory
