"""The component builds from YAML what the functions build from Python."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
import yaml  # type: ignore[import-untyped]
from dagster.components.core.component_tree import ComponentTree
from dagster.components.testing import create_defs_folder_sandbox

import dagster_dataframely as dd
from dagster_dataframely.components import DataframelyComponent, QuarantineSpec, RuleChecks

if TYPE_CHECKING:
    from conftest import FileIOManager

# What Dagster does on its own account (1.12, 1.13) when it loads YAML.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore:Function `ComponentLoadContext:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Class `LocalFileCodeReference` is currently in beta"),
    pytest.mark.filterwarnings("ignore:Class `CodeReferencesMetadataValue` is currently in beta"),
]

DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])


class Orders(dy.Schema):
    """A rule that no row fails and one that a row of `ROWS` does."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0, allow_inf=True, allow_nan=True)


class Shop(dy.Collection):
    """Not one schema."""

    orders: dy.LazyFrame[Orders]


ROWS = pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


@dg.asset
def plain() -> pl.DataFrame:
    return ROWS


@dg.asset(partitions_def=DAYS)
def daily() -> pl.DataFrame:
    return ROWS


external = dg.AssetSpec("external", partitions_def=DAYS)


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the project, as references name it."""
    module = ModuleType("shop")
    for name in ("Orders", "Shop", "DAYS", "plain", "daily", "external"):
        setattr(module, name, globals()[name])
    monkeypatch.setitem(sys.modules, "shop", module)


def load(**attributes: list[dict[str, Any]]) -> DataframelyComponent:
    return DataframelyComponent.from_attributes_dict(attributes=attributes)


def checks_of(**entry: Any) -> dg.AssetChecksDefinition:
    component = load(rule_checks=[{"schema_class": "shop:Orders", "asset": "plain", **entry}])
    return component.rule_checks[0].build()


def describe(checks: dg.AssetChecksDefinition) -> list[tuple[Any, ...]]:
    return [(spec.key, spec.description, spec.partitions_def) for spec in checks.check_specs]


# Rule checks.


def test_the_checks_of_an_asset_run(files: "FileIOManager") -> None:
    component = load(rule_checks=[{"schema_class": "shop:Orders", "asset": "plain"}])
    defs = component.build_defs(ComponentTree.for_test().load_context)
    result = dg.materialize([plain, *(defs.asset_checks or [])], resources={"io_manager": files})
    found = {
        c.check_name: (c.passed, c.severity.name) for c in result.get_asset_check_evaluations()
    }
    assert found == {
        "dy_schema__columns": (True, "ERROR"),
        "dy_rule__id__nullability": (True, "ERROR"),
        "dy_rule__amount__nullability": (True, "ERROR"),
        "dy_rule__amount__min": (False, "ERROR"),
        "dy_rule__primary_key": (True, "ERROR"),
    }


@pytest.mark.parametrize("reference", ["shop:Orders", "shop.Orders"])
@pytest.mark.parametrize(
    ("asset", "same"),
    [
        ("plain", "plain"),
        ("sales/plain", ["sales", "plain"]),
        ("shop:plain", plain),
        ("shop:daily", daily),
        ("shop:external", external),
    ],
    ids=["key", "key with a prefix", "definition", "partitioned definition", "spec"],
)
def test_an_asset_is_named_by_its_key_or_its_definition(
    reference: str, asset: str, same: Any
) -> None:
    checks = checks_of(schema_class=reference, asset=asset)
    assert describe(checks) == describe(dd.build_rule_checks(Orders, asset=same))


def test_partitions_are_named_beside_a_key() -> None:
    checks = checks_of(asset="daily", partitions_def="shop:DAYS")
    assert describe(checks) == describe(dd.build_rule_checks(Orders, asset=daily))
    assert {spec.partitions_def for spec in checks.check_specs} == {DAYS}


def test_every_attribute_reaches_the_checks(files: "FileIOManager") -> None:
    checks = checks_of(
        severities={"amount|min": "warn"},
        check_granularity="column",
        multi_column_rules="per_rule",
        max_failure_samples=0,
        cast=True,
        automation_condition="{{ dg.AutomationCondition.eager() }}",
        pool="duckdb",
        name="orders_again",
    )
    (amount,) = [s for s in checks.check_specs if s.name == "dy_col__amount"]
    assert amount.automation_condition == dg.AutomationCondition.eager()
    assert isinstance(checks.node_def, dg.OpDefinition)
    assert (checks.node_def.name, checks.node_def.pool) == ("orders_again", "duckdb")
    assert [spec.name for spec in checks.check_specs] == [
        "dy_schema__columns",
        "dy_col__id",
        "dy_col__amount",
        "dy_rule__primary_key",
    ]
    narrow = dg.asset(name="plain")(lambda: ROWS.cast({"id": pl.Int32}))
    result = dg.materialize([narrow, checks], resources={"io_manager": files})
    (failed,) = [c for c in result.get_asset_check_evaluations() if not c.passed]
    assert (failed.check_name, failed.severity.name) == ("dy_col__amount", "WARN")
    assert "dy_failed_sample" not in failed.metadata


def test_redacted_columns_show_no_value(files: "FileIOManager") -> None:
    checks = checks_of(redact=["amount"])
    result = dg.materialize([plain, checks], resources={"io_manager": files})
    (failed,) = [c for c in result.get_asset_check_evaluations() if not c.passed]
    assert "-1.0" not in str(failed.metadata["dy_failed_sample"])


def test_a_reference_runs_the_module_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So who writes YAML runs code, as the page on security says."""
    (tmp_path / "runs_when_imported.py").write_text(
        "import pathlib; pathlib.Path(__file__).with_suffix('.ran').touch()"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception, match="runs_when_imported"):
        checks_of(schema_class="runs_when_imported:Orders")
    assert (tmp_path / "runs_when_imported.ran").exists()


def test_templates_give_python_objects() -> None:
    text = "rule_checks: [{schema_class: '{{ schema }}', asset: '{{ asset }}'}]"
    scope = {"schema": Orders, "asset": daily}
    component = DataframelyComponent.resolve_from_yaml(text, scope=scope)
    assert component.rule_checks == [RuleChecks(schema_class=Orders, asset=daily)]


# Quarantine specs.


@pytest.mark.parametrize(
    ("entry", "same"),
    [
        ({"asset": "plain"}, dd.build_quarantine_spec(Orders, "plain")),
        ({"asset": "shop:daily"}, dd.build_quarantine_spec(Orders, daily)),
        (
            {"asset": "daily", "partitions_def": "shop:DAYS"},
            dd.build_quarantine_spec(Orders, "daily", partitions_def=DAYS),
        ),
        (
            {"asset": "plain", "quarantine_layout": "list"},
            dd.build_quarantine_spec(Orders, "plain", quarantine_layout="list"),
        ),
        (
            {"asset": "shop:external"},
            dd.build_quarantine_spec(Orders, "external", partitions_def=DAYS),
        ),
    ],
    ids=["key", "definition", "key and partitions", "key and layout", "spec"],
)
def test_a_quarantine_is_in_the_graph(entry: dict[str, str], same: dg.AssetSpec) -> None:
    component = load(quarantine_specs=[{"schema_class": "shop:Orders", **entry}])
    defs = component.build_defs(ComponentTree.for_test().load_context)
    assert defs.assets == [same]


# What goes wrong.


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"schema_class": "shop:Ordrs"},
            "`shop:Ordrs` has to name a `dataframely.Schema` class, but importing it raised "
            "AttributeError: module 'shop' has no attribute 'Ordrs'. There is `shop:Orders`.",
        ),
        (
            {"schema_class": "shop.Shop"},
            "`shop.Shop` has to name a `dataframely.Schema` class, but it is the class `Shop`. "
            "There is `shop:Orders`.",
        ),
        (
            {"schema_class": "shopp:Orders"},
            "`shopp:Orders` has to name a `dataframely.Schema` class, but importing it raised "
            "ModuleNotFoundError: No module named 'shopp'. "
            "Write `module:Name`, with a module that this project can import.",
        ),
        (
            {"schema_class": "Orders"},
            "`Orders` has to name a `dataframely.Schema` class, but importing it raised "
            "ModuleNotFoundError: No module named 'Orders'. "
            "Write `module:Name`, with a module that this project can import.",
        ),
        (
            {"schema_class": "the orders"},
            "`the orders` has to name a `dataframely.Schema` class, but importing it raised "
            "ValueError: invalid format: 'the orders'. "
            "Write `module:Name`, with a module that this project can import.",
        ),
        (
            {"asset": "shop:DAYS"},
            "`shop:DAYS` has to name an asset definition or spec, but it is an object of type "
            "`StaticPartitionsDefinition`. There is `shop:plain`, `shop:daily`, `shop:external`.",
        ),
        (
            {"partitions_def": "dataframely:Schema"},
            "`dataframely:Schema` has to name a partitions definition, but it is the class "
            "`Schema`. Write `module:Name`, with a module that this project can import.",
        ),
    ],
    ids=[
        "no attribute",
        "no schema",
        "no module",
        "no dot",
        "no name",
        "no asset",
        "no partitions",
    ],
)
def test_a_name_that_stands_for_nothing_of_its_kind(entry: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=r"InvalidReferenceError: (.*)") as caught:
        checks_of(**entry)
    assert f"InvalidReferenceError: {message}\n" in str(caught.value)


def test_the_facts_of_a_reference_are_attributes() -> None:
    error = dd.errors.InvalidReferenceError("shop:Ordrs", "a schema", "it is not", ["shop:Orders"])
    assert (error.reference, error.wanted, error.problem, error.known) == (
        "shop:Ordrs",
        "a schema",
        "it is not",
        ("shop:Orders",),
    )


# Files.

Sandbox = Any


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with create_defs_folder_sandbox() as sandbox:
        yield sandbox


def test_dagster_names_the_line_of_a_wrong_reference(sandbox: Sandbox) -> None:
    path = sandbox.scaffold_component(
        component_cls=DataframelyComponent,
        scaffold_params={"schema_class": "shop:Ordrs", "asset": "plain"},
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


# Registration.


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
