"""The tutorial's project does at each step what its page says."""

import importlib.util
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest

import dagster_dataframely as dd

TUTORIAL = Path(__file__).parents[1] / "docs/tutorial"
FILES = TUTORIAL.parent / "snippets/tutorial"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(FILES / "orders.csv", tmp_path)
    return tmp_path


def load_shop(step: int) -> ModuleType:
    spec = importlib.util.spec_from_file_location("shop", FILES / f"shop_{step}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def materialize(
    step: int, instance: dg.DagsterInstance, asset: str = "orders", partition: str | None = None
) -> dict[str, bool]:
    defs: dg.Definitions = load_shop(step).defs
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, asset_selection=[dg.AssetKey(asset)], partition_key=partition
    )
    assert result.success
    return {check.check_name: check.passed for check in result.get_asset_check_evaluations()}


def check_output(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    runpy.run_path(str(FILES / script))
    lines = (line.strip() for line in (FILES / script).read_text().splitlines())
    expected = [line.removeprefix("#> ") for line in lines if line.startswith("#> ")]
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.filterwarnings("ignore:Partition:UserWarning")
def test_each_step_does_what_its_page_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        with pytest.raises(dd.errors.ValidationAbortError) as caught:
            materialize(1, instance)
        assert str(caught.value) in (TUTORIAL / "table.md").read_text()
        assert not (folder / "tables").exists()

        checks = materialize(2, instance)
        page = (TUTORIAL / "failing-rows.md").read_text()
        for name, passed in checks.items():
            assert passed or f"`{name}`" in page
        check_output("read_2.py", capsys)

        materialize(3, instance, "customers")
        check_output("read_3.py", capsys)

        for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
            materialize(4, instance, partition=day)
        assert instance.get_materialized_partitions(dg.AssetKey("orders")) == {
            "2026-01-01",
            "2026-01-03",
        }
        materialize(4, instance, "customers")
        check_output("read_4.py", capsys)


def test_the_tests_of_the_last_step_pass(folder: Path) -> None:
    shutil.copy(FILES / "shop_4.py", folder / "shop.py")
    shutil.copy(FILES / "test_shop.py", folder)
    command = [sys.executable, "-m", "pytest", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "3 passed" in done.stdout
