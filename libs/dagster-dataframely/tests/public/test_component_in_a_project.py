"""Dagster finds the component, scaffolds it, and names the line of a mistake."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]
from dagster.components.testing import create_defs_folder_sandbox
from support.named import SHOP, Orders

from dagster_dataframely.components import DataframelyComponent, QuarantineSpec, RuleChecks

# What Dagster does on its own account (1.12, 1.13) when it loads YAML.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore:Function `ComponentLoadContext:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Class `LocalFileCodeReference` is currently in beta"),
    pytest.mark.filterwarnings("ignore:Class `CodeReferencesMetadataValue` is currently in beta"),
]


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that references name."""
    monkeypatch.setitem(sys.modules, "shop", SHOP)


Sandbox = Any


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with create_defs_folder_sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize("reference", ["shop:Ordrs", "ends:Orders"])
def test_dagster_names_the_line_of_a_wrong_reference(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    (tmp_path / "ends.py").write_text("import sys; sys.exit()")
    monkeypatch.syspath_prepend(tmp_path)
    path = sandbox.scaffold_component(
        component_cls=DataframelyComponent,
        scaffold_params={"schema_class": reference, "asset": "plain"},
    )
    with (
        pytest.raises(Exception, match=r"defs\.yaml") as caught,
        sandbox.load_component_and_build_defs(defs_path=path),
    ):
        pass
    (message,) = {
        line.partition(" - ")[2]
        for line in str(caught.value.__cause__).splitlines()
        if line.startswith(str(path / "defs.yaml:6"))
    }
    assert message == "attributes.rule_checks.0.schema_class"


def test_what_is_scaffolded_loads_as_it_stands(sandbox: Sandbox) -> None:
    path = sandbox.scaffold_component(component_cls=DataframelyComponent)
    with sandbox.load_component_and_build_defs(defs_path=path) as (component, _):
        assert component == DataframelyComponent()


def test_what_is_scaffolded_begins_with_the_entry_that_was_named(sandbox: Sandbox) -> None:
    path = sandbox.scaffold_component(
        component_cls=DataframelyComponent,
        scaffold_params={"schema_class": "shop:Orders", "asset": "sales/orders"},
    )
    with sandbox.load_component_and_build_defs(defs_path=path) as (component, _):
        entry = RuleChecks(schema_class=Orders, asset=dg.AssetKey(["sales", "orders"]))
        assert component == DataframelyComponent(rule_checks=[entry])


def test_what_is_scaffolded_shows_attributes_that_exist(sandbox: Sandbox) -> None:
    path = sandbox.scaffold_component(component_cls=DataframelyComponent)
    text = (path / "defs.yaml").read_text()
    for line in ("  # A check for each", "  # What `@dd.asset"):
        text = text.replace(line, "  ##")
    text = text.replace(" []\n", "\n").replace("    # ", "    ")
    attributes = yaml.safe_load(text)["attributes"]
    shown = {name: set(entries[0]) for name, entries in attributes.items()}
    assert shown.keys() == vars(DataframelyComponent()).keys()
    assert shown["rule_checks"] < set(RuleChecks.model().model_fields)
    assert shown["quarantine_specs"] < set(QuarantineSpec.model().model_fields)


def test_a_component_is_scaffolded_in_python_too(sandbox: Sandbox) -> None:
    path = sandbox.scaffold_component(component_cls=DataframelyComponent, scaffold_format="python")
    assert (
        "def load(context: dg.ComponentLoadContext) -> DataframelyComponent"
        in (path / "component.py").read_text()
    )


def test_a_component_is_appended_to_a_file(tmp_path: Path) -> None:
    from dagster.components.component_scaffolding import scaffold_object

    path = tmp_path / "defs.yaml"
    path.write_text("type: other\n")
    name = "dagster_dataframely.components.DataframelyComponent"
    scaffold_object(path, name, None, "yaml", tmp_path, append=True)
    assert [part["type"] for part in yaml.safe_load_all(path.read_text())] == ["other", name]


def test_dg_finds_the_component_by_an_entry_point() -> None:
    group = importlib.metadata.entry_points(group="dagster_dg_cli.registry_modules")
    (module,) = [point.load() for point in group if point.name == "dagster_dataframely"]
    assert module.DataframelyComponent is DataframelyComponent
    assert DataframelyComponent.get_spec().description is not None
    model = DataframelyComponent.get_model_cls()
    assert model is not None
    fields = [RuleChecks.model().model_fields, QuarantineSpec.model().model_fields]
    assert all(
        field.description for each in [*fields, model.model_fields] for field in each.values()
    )


def test_the_library_does_not_import_its_component() -> None:
    program = (
        "import sys, dagster_dataframely; print('dagster_dataframely.components' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
