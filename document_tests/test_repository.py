"""What the repository says about itself is true."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORDS = sorted(path for path in (ROOT / "adr").glob("*.md") if path.name[0].isdigit())
TEST_FOLDERS = ["document_tests", "libs/dagster-dataframely/tests", "examples/warehouse/tests"]


def nox_sessions() -> dict[str, ast.FunctionDef]:
    module = ast.parse((ROOT / "noxfile.py").read_text())
    return {
        node.name: node
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any("nox.session" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def names_of_tests() -> set[str]:
    files = [file for folder in TEST_FOLDERS for file in (ROOT / folder).rglob("test_*.py")]
    return {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text())}


def confirming_tests(record: Path) -> set[str]:
    return set(re.findall(r"`(test_\w+)`", record.read_text().partition("## Confirmed by")[2]))


def test_ci_runs_the_readmes_test_command_and_then_the_rest() -> None:
    *_, command, rest = (ROOT / ".ci/run").read_text().splitlines()
    readme = (ROOT / "README.md").read_text()
    assert command in readme.splitlines()
    assert f"`{rest}`" in readme


def test_nothing_tells_to_install_the_project_that_has_the_name_on_pypi() -> None:
    other = re.compile(r"(?:pip install|uv add) [\"']?dagster-dataframely(?!\S* @ git)")
    warnings = ("Do not run", "do not run", "installs something else", "would install another")
    files = [
        *ROOT.glob("*.md"),
        *(file for folder in ("docs", "adr", "libs", "examples") for file in texts(ROOT / folder)),
    ]
    assert files
    told = [
        f"{file.relative_to(ROOT)}: {line}"
        for file in files
        for line in file.read_text().splitlines()
        if other.search(line) and not any(warning in line for warning in warnings)
    ]
    assert told == []


def texts(folder: Path) -> list[Path]:
    return [file for kind in ("*.md", "*.py", "*.yaml") for file in folder.rglob(kind)]


def test_the_library_ships_the_same_licence() -> None:
    shipped = ROOT / "libs/dagster-dataframely/LICENSE"
    assert shipped.read_text() == (ROOT / "LICENSE").read_text()


def test_every_nox_session_has_a_docstring_and_under_fifteen_lines() -> None:
    sessions = nox_sessions()
    assert sessions
    assert [name for name, node in sessions.items() if not ast.get_docstring(node)] == []
    lengths = {name: len(ast.unparse(node).splitlines()) for name, node in sessions.items()}
    assert {name: lines for name, lines in lengths.items() if lines >= 15} == {}


def test_contributing_lists_every_nox_session() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert rows == list(nox_sessions())


def test_adr_index_lists_every_record() -> None:
    linked = re.findall(r"\]\((\d[^)]*\.md)\)", (ROOT / "adr/README.md").read_text())
    assert linked == [record.name for record in RECORDS]


def test_every_adr_is_confirmed_by_an_existing_test() -> None:
    known = names_of_tests()
    unconfirmed = {
        record.name
        for record in RECORDS
        if not confirming_tests(record) or not confirming_tests(record) <= known
    }
    assert unconfirmed == set()


def read_toml(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text())


def test_the_lock_and_the_extras_hold_polars_and_duckdb_below_2() -> None:
    locked = {package["name"]: package["version"] for package in read_toml("uv.lock")["package"]}
    assert (locked["polars"][:2], locked["duckdb"][:2]) == ("1.", "1.")
    project = read_toml("libs/dagster-dataframely/pyproject.toml")["project"]
    extras = project["optional-dependencies"]
    assert "polars<2" in extras["parquet"]
    assert {"polars<2", "duckdb>=1.1.3,<2"} <= set(extras["duckdb"])
    assert not any("<" in dependency for dependency in project["dependencies"])


def section_of(key: str) -> str:
    """What belongs to one of the keys of `mkdocs.yml`."""
    text = (ROOT / "mkdocs.yml").read_text()
    return re.split(r"^\w", text.partition(f"\n{key}:\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_the_site_uses_only_what_zensical_builds_too() -> None:
    sections = section_of("plugins") + section_of("markdown_extensions")
    names = re.findall(r"^  - ([\w.]+)", sections, re.MULTILINE)
    tried = {"search", "mkdocstrings", "admonition", "attr_list", "tables", "toc"}
    assert names
    assert {name for name in names if not name.startswith("pymdownx.")} <= tried


def test_the_site_has_every_decision_as_a_link_to_it() -> None:
    """After adding one: `ln -s ../../adr/0007-short-verb-phrase.md docs/adr/`."""
    links = {path.name: path.resolve() for path in (ROOT / "docs/adr").iterdir()}
    assert links == {path.name: path for path in (ROOT / "adr").glob("*.md")}
    assert all((ROOT / "docs/adr" / name).is_symlink() for name in links)
    assert "adr/README.md" in section_of("nav")


def test_the_workflow_runs_every_default_and_full_session_and_the_distributed_one() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    matrix = re.findall(r"session: \[(.*)\]", workflow)[0].split(", ")
    asked_for = [
        name
        for name, node in nox_sessions().items()
        if any("default=False" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    assert {*matrix} == {*nox_sessions()} - {*asked_for} | {"distributed"}


def test_the_workflow_uses_actions_by_commit() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    uses = re.findall(r"uses: (\S+)@(\S+)", workflow)
    assert uses
    assert [action for action, sha in uses if not re.fullmatch(r"[0-9a-f]{40}", sha)] == []


def test_pictures_are_small_and_come_light_and_dark() -> None:
    pictures = {path.name: path.stat().st_size for path in (ROOT / "docs/assets").glob("*.png")}
    assert pictures
    assert {name: size for name, size in pictures.items() if size > 150_000} == {}
    light = {name.removesuffix("-light.png") for name in pictures if name.endswith("-light.png")}
    dark = {name.removesuffix("-dark.png") for name in pictures if name.endswith("-dark.png")}
    assert light == dark
    assert len(pictures) == 2 * len(light)
