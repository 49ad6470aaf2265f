"""The component works in a project that `create-dagster` makes, with the commands of `dg`."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

SNIPPETS = Path(__file__).parents[1] / "docs/snippets/component"
NAME = "dagster_dataframely.components.DataframelyComponent"
DEFS = "src/demo/defs/checks/defs.yaml"

Dg = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new project, with the schemas and assets of the guide."""
    create = str(Path(sys.executable).parent / "create-dagster")
    command = [create, "project", "demo", "--no-uv-sync"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    source = tmp_path / "demo/src/demo"
    shutil.copy(SNIPPETS / "schemas.py", source)
    shutil.copy(SNIPPETS / "assets.py", source / "defs")
    one_process = "import dagster as dg\n\ndefs = dg.Definitions(executor=dg.in_process_executor)\n"
    (source / "defs/executor.py").write_text(one_process)
    return tmp_path / "demo"


@pytest.fixture
def run(project: Path, home: Path) -> Dg:
    """Run a command of `dg` in the project."""
    changes = {
        "DAGSTER_HOME": str(home),
        "DG_CLI_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": "src",
        "VIRTUAL_ENV": str(Path(sys.executable).parents[1]),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "dg"), *arguments]
        environment = {**os.environ, **changes}
        return subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False
        )

    return run


def evaluations(home: Path) -> dict[str, tuple[bool, str]]:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        (run,) = instance.get_runs()
        kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
        events = [entry.get_dagster_event() for entry in instance.all_logs(run.run_id, kind)]
    found = [event.asset_check_evaluation_data for event in events]
    return {check.check_name: (check.passed, check.severity.name) for check in found}


def test_the_component_in_a_new_project(project: Path, home: Path, run: Dg) -> None:
    listed = json.loads(run("list", "components", "--json").stdout)
    assert NAME in {item["key"] for item in listed["items"]}

    entry = ["--schema-class", "demo.schemas:Ordrs", "--asset", "loaded_orders"]
    assert run("scaffold", "defs", NAME, "checks", *entry).returncode == 0
    refused = run("check", "defs")
    assert refused.returncode == 1
    assert f"{DEFS}:6 - attributes.rule_checks.0.schema_class" in refused.stderr + refused.stdout
    assert "InvalidReferenceError: `demo.schemas:Ordrs`" in refused.stderr + refused.stdout

    text = (SNIPPETS / "defs.yaml").read_text()
    (project / DEFS).write_text(text.replace("severities:", "severity:"))
    refused = run("check", "yaml")
    assert refused.returncode == 1
    assert f"{DEFS}:4 - {NAME} attributes.rule_checks" in refused.stderr + refused.stdout

    (project / DEFS).write_text(text)
    defs = json.loads(run("list", "defs", "--json").stdout)
    checks = {check["key"] for check in defs["asset_checks"]}
    assert {"loaded_orders:dy_rule__amount__min", "shop_orders:dy_col__amount"} <= checks
    assert "orders_quarantine" in {asset["asset_key"] for asset in defs["assets"]}

    launched = run("launch", "--assets", "loaded_orders")
    assert launched.returncode == 0, launched.stderr
    assert {name: found for name, found in evaluations(home).items() if not found[0]} == {
        "dy_rule__amount__min": (False, "WARN")
    }
