"""What each module may touch."""

import ast
import importlib.metadata
import re
import sys
from pathlib import Path

import pytest

import dagster_dataframely as dd

MODULES = {path.stem: ast.parse(path.read_text()) for path in Path(dd.__file__).parent.glob("*.py")}
UPSTREAM = {"dagster", "dataframely", "polars", "upath"}
DISTRIBUTIONS = {"upath": "universal-pathlib"}


def imported(module: ast.Module) -> set[str]:
    """The dotted names a module imports, with the names it takes out of them."""
    names = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_validation_knows_no_dagster() -> None:
    roots = {name.partition(".")[0] for name in imported(MODULES["_validation"])}
    assert "dagster" not in roots


@pytest.mark.parametrize("name", sorted(MODULES.keys() - {"_upstream"}))
def test_only_upstream_touches_private_names(name: str) -> None:
    private = re.compile(rf"^({'|'.join(UPSTREAM)})\..*\b_[a-z]")
    assert [path for path in imported(MODULES[name]) if private.match(path)] == []
    attributes = {
        node.attr
        for node in ast.walk(MODULES[name])
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)
    }
    # `_replace` and `_asdict` are public names of named tuples.
    assert attributes <= {"_replace", "_asdict"} | set(MODULES)


def test_the_library_imports_what_it_depends_on() -> None:
    roots = {name.partition(".")[0] for module in MODULES.values() for name in imported(module)}
    third_party = roots - set(sys.stdlib_module_names) - {"dagster_dataframely"}
    required = importlib.metadata.requires("dagster-dataframely") or []
    declared = {re.split(r"[^a-z-]", line)[0] for line in required if "extra ==" not in line}
    assert {DISTRIBUTIONS.get(name, name) for name in third_party} == declared
