"""What each module may touch."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest

import dagster_dataframely as dd

LIBRARY = Path(dd.__file__).parent
ROOT = Path(__file__).parents[3]
MODULES = {
    path.relative_to(LIBRARY).as_posix(): ast.parse(path.read_text())
    for path in LIBRARY.rglob("*.py")
}
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


@pytest.mark.parametrize("name", sorted(n for n in MODULES if not n.startswith("_upstream/")))
def test_only_upstream_touches_private_names(name: str) -> None:
    private = re.compile(rf"^({'|'.join(UPSTREAM)})\..*\b_[a-z]")
    assert [path for path in imported(MODULES[name]) if private.match(path)] == []
    attributes = {
        node.attr
        for node in ast.walk(MODULES[name])
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)
    }
    assert attributes <= {"_asdict"}  # A public name of named tuples.


def test_packages_stand_in_the_order_of_the_layers() -> None:
    """import-linter compares the imports with the layers; each package has to be in them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers, forbidden = settings["tool"]["importlinter"]["contracts"]
    placed = {name for layer in layers["layers"] for name in layer.split(" | ")}
    here = {path.name.removesuffix(".py") for path in LIBRARY.iterdir()} - {"py.typed", "__init__"}
    assert placed == {name for name in here if name != "__pycache__"}
    assert layers["exhaustive"]
    assert forbidden["source_modules"] == ["dagster_dataframely._validation"]
    validation = {path: tree for path, tree in MODULES.items() if path.startswith("_validation/")}
    roots = {name.partition(".")[0] for tree in validation.values() for name in imported(tree)}
    assert validation
    assert "dagster" not in roots


PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_page_for_contributors_lists_the_packages() -> None:
    listed = re.findall(r"^(_\w+)/ ", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted({path.parent.name for path in LIBRARY.glob("_*/*.py")})


def test_the_page_for_contributors_names_files_that_are_there() -> None:
    whole = set(re.findall(r"`(_\w+/\w+\.py)`", PAGE))
    assert whole <= MODULES.keys()
    inside = set(re.findall(r"`(\w+\.py)`", PAGE)) - {"noxfile.py"}
    assert inside <= {path.rpartition("/")[2] for path in MODULES if "/" in path}
    questions = re.search(r"To change\n\n(.*?)\n\n", PAGE, re.DOTALL)
    assert questions is not None
    assert len(re.findall(r"^- .*: `_\w+/\w+\.py`$", questions[1], re.MULTILINE)) == 5


def test_no_module_is_long() -> None:
    """`errors.py` and `wiring.py` are catalogues of one entry after the other."""
    lines = {path: len((LIBRARY / path).read_text().splitlines()) for path in MODULES}
    assert {path for path, count in lines.items() if count > 350} <= {"errors.py"}


def test_the_library_imports_what_it_depends_on() -> None:
    roots = {name.partition(".")[0] for module in MODULES.values() for name in imported(module)}
    third_party = roots - set(sys.stdlib_module_names) - {"dagster_dataframely"}
    required = importlib.metadata.requires("dagster-dataframely") or []
    declared = {re.split(r"[^a-z-]", line)[0] for line in required if "extra ==" not in line}
    assert {DISTRIBUTIONS.get(name, name) for name in third_party} == declared
