"""Where the rows of a lazy frame are staged in a run."""

from pathlib import Path

import polars as pl
import pytest
from support.declare import declare
from support.execution import Execute
from support.points import CLEAN, Points

import dagster_dataframely as dd


@pytest.fixture
def system_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in the place of the system's temp directory."""
    directory = tmp_path / "system"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def test_staging_is_there_only_while_the_plan_runs(execute: Execute, staging: Path) -> None:
    seen: list[int] = []

    def look(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append(len(list(staging.iterdir())))
        return frame

    plan = CLEAN.lazy().map_batches(look)
    assert execute(declare(Points, plan, statistics=False, temp_dir=staging)).success
    assert seen == [1]
    assert list(staging.iterdir()) == []


@pytest.mark.parametrize("name", ["job[1]", "job*", "job?"])
def test_staging_goes_to_a_directory_whose_name_could_be_a_pattern(
    execute: Execute, staging: Path, name: str
) -> None:
    directory = staging / name
    directory.mkdir()
    outcome = execute(declare(Points, CLEAN.lazy(), statistics=False, temp_dir=directory))
    outcome.assert_stored(table=CLEAN, quarantine=None)
    assert list(directory.iterdir()) == []


def test_staging_goes_to_the_systems_temp_directory(execute: Execute, system_temp: Path) -> None:
    seen: list[list[str]] = []

    def look(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append([path.name for path in system_temp.glob("dagster-dataframely-*")])
        return frame

    assert execute(declare(Points, CLEAN.lazy().map_batches(look), statistics=False)).success
    assert [len(names) for names in seen] == [1]
    assert list(system_temp.glob("dagster-dataframely-*")) == []


def test_an_eager_frame_is_not_staged(execute: Execute, staging: Path) -> None:
    staging_is_not_needed = declare(Points, CLEAN, statistics=False, temp_dir=staging)
    staging.rmdir()
    assert execute(staging_is_not_needed).success
    assert not staging.exists()


@pytest.mark.parametrize("source", ["argument", "environment"])
@pytest.mark.parametrize("name", ["missing", ""])
def test_a_temp_dir_that_does_not_exist_is_refused_at_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, name: str
) -> None:
    directory = str(tmp_path / name) if name else ""
    if source == "environment":
        monkeypatch.setenv("DAGSTER_DATAFRAMELY_TEMP_DIR", directory)
    given = {"temp_dir": directory} if source == "argument" else {}
    with pytest.raises(dd.errors.InvalidSettingError) as caught:
        declare(Points, CLEAN.lazy(), statistics=False, **given)
    assert (caught.value.setting, caught.value.value) == ("temp_dir", directory)


def test_the_environment_says_where_staging_goes(
    execute: Execute, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_TEMP_DIR", str(staging))
    seen: list[int] = []

    def look(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append(len(list(staging.iterdir())))
        return frame

    points = declare(Points, CLEAN.lazy().map_batches(look), statistics=False)
    monkeypatch.delenv("DAGSTER_DATAFRAMELY_TEMP_DIR")
    assert execute(points).success
    assert seen == [1]
