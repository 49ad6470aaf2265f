"""The component builds from YAML what the functions build from Python."""

import sys
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from dagster.components.core.component_tree import ComponentTree
from support.named import DAYS, ROWS, SHOP, Orders, daily, external, plain
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely.components import DataframelyComponent, RuleChecks

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


def load(**attributes: list[dict[str, Any]]) -> DataframelyComponent:
    return DataframelyComponent.from_attributes_dict(attributes=attributes)


def checks_of(**entry: Any) -> dg.AssetChecksDefinition:
    component = load(rule_checks=[{"schema_class": "shop:Orders", "asset": "plain", **entry}])
    return component.rule_checks[0].build()


def describe(checks: dg.AssetChecksDefinition) -> list[tuple[Any, ...]]:
    return [(spec.key, spec.description, spec.partitions_def) for spec in checks.check_specs]


def test_the_checks_of_an_asset_run(files: FileIOManager) -> None:
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


def test_every_attribute_reaches_the_checks(files: FileIOManager) -> None:
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
    (amount,) = [s for s in checks.check_specs if s.name == "dy_col__amount__orders_again"]
    assert amount.automation_condition == dg.AutomationCondition.eager()
    assert isinstance(checks.node_def, dg.OpDefinition)
    assert (checks.node_def.name, checks.node_def.pool) == ("orders_again", "duckdb")
    assert [spec.name for spec in checks.check_specs] == [
        "dy_schema__columns__orders_again",
        "dy_col__id__orders_again",
        "dy_col__amount__orders_again",
        "dy_rule__primary_key__orders_again",
    ]
    narrow = dg.asset(name="plain")(lambda: ROWS.cast({"id": pl.Int32}))
    result = dg.materialize([narrow, checks], resources={"io_manager": files})
    (failed,) = [c for c in result.get_asset_check_evaluations() if not c.passed]
    assert (failed.check_name, failed.severity.name) == ("dy_col__amount__orders_again", "WARN")
    assert "dy_failed_sample" not in failed.metadata


def test_redacted_columns_show_no_value(files: FileIOManager) -> None:
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


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("import sys; sys.exit()", "SystemExit"),
        ("import sys; sys.exit('no\\nkey')", r"SystemExit: no\nkey"),
        ("import polars as pl; raise pl.exceptions.PanicException('full')", "PanicException: full"),
    ],
    ids=["exit", "exit with a text", "panic"],
)
def test_a_module_that_ends_its_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, problem: str
) -> None:
    (tmp_path / "ends.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception, match="InvalidReferenceError: ") as caught:
        checks_of(schema_class="ends:Orders")
    assert f"but importing it raised {problem}. Write `module:Name`" in str(caught.value)


def test_an_interrupted_import_stays_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stopped.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        checks_of(schema_class="stopped:Orders")


def test_the_facts_of_a_reference_are_attributes() -> None:
    error = dd.errors.InvalidReferenceError("shop:Ordrs", "a schema", "it is not", ["shop:Orders"])
    assert (error.reference, error.wanted, error.problem, error.known) == (
        "shop:Ordrs",
        "a schema",
        "it is not",
        ("shop:Orders",),
    )
