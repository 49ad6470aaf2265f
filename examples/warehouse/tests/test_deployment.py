"""One machine by default, a deployment by environment variables; `nox -s distributed` starts one."""

import re
import shlex
from pathlib import Path

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]
from dagster_polars import PolarsParquetIOManager

from warehouse.definitions import defs
from warehouse.storage import PROJECT, build_resources, create_dagster_home, tables_dir

ROOT = PROJECT.parents[1]
DEPLOYMENT = PROJECT / "deployment"
COMPOSE = yaml.safe_load((DEPLOYMENT / "compose.yaml").read_text())
DOCKERFILE = (DEPLOYMENT / "Dockerfile").read_text()


def test_by_default_everything_is_in_local_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE_DIR", str(tmp_path))
    config = yaml.safe_load((create_dagster_home() / "dagster.yaml").read_text())
    assert "storage" not in config
    assert tables_dir() == str(tmp_path / "tables")
    assert build_resources()["duckdb"].database == str(tmp_path / "warehouse.duckdb")


def test_environment_variables_alone_swap_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE_DIR", str(tmp_path))
    monkeypatch.setenv("WAREHOUSE_TABLES", "s3://bucket/tables")
    monkeypatch.setenv("WAREHOUSE_POSTGRES_URL", "postgresql+psycopg2://warehouse@postgres")
    config = yaml.safe_load((create_dagster_home() / "dagster.yaml").read_text())
    assert config["storage"]["postgres"] == {"postgres_url": {"env": "WAREHOUSE_POSTGRES_URL"}}
    manager = build_resources()["io_manager"]
    assert isinstance(manager, PolarsParquetIOManager)
    assert manager.base_dir == "s3://bucket/tables"


@pytest.mark.parametrize(("name", "executor"), [(None, "in_process"), ("multiprocess",) * 2])
def test_an_environment_variable_says_where_steps_run(
    name: str | None, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name is not None:
        monkeypatch.setenv("WAREHOUSE_EXECUTOR", name)
    chosen = defs().executor
    assert isinstance(chosen, dg.ExecutorDefinition)
    assert chosen.name == executor


def test_compose_starts_a_code_location_a_webserver_and_a_daemon_beside_postgres() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"postgres", "code", "webserver", "daemon"}
    commands = {
        name: shlex.split(services[name]["command"]) for name in set(services) - {"postgres"}
    }
    assert {name: words[0] for name, words in commands.items()} == {
        "code": "dagster",
        "webserver": "dagster-webserver",
        "daemon": "dagster-daemon",
    }
    (location,) = yaml.safe_load((DEPLOYMENT / "workspace.yaml").read_text())["load_from"]
    variables = {location["grpc_server"][name]["env"] for name in ("host", "port")}
    assert variables <= set(COMPOSE["x-warehouse"]["environment"])
    for name in ("webserver", "daemon"):
        workspace = commands[name][commands[name].index("--workspace") + 1]
        assert (PROJECT / workspace).samefile(DEPLOYMENT / "workspace.yaml")


def test_what_the_image_copies_is_there() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert [path for line in copied for path in line.split() if not (ROOT / path).exists()] == []
    assert (ROOT / COMPOSE["x-warehouse"]["build"]["dockerfile"]).samefile(
        DEPLOYMENT / "Dockerfile"
    )
