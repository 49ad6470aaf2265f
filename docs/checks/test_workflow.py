"""The linters of the CI workflow find nothing in it, and find a mistake that is put into it."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

WORKFLOW = Path(__file__).parents[2] / ".github/workflows/ci.yml"
# Without these, actionlint calls programs that may be missing, and zizmor asks GitHub.
LINTERS = {
    "actionlint": ["-shellcheck=", "-pyflakes=", "-no-color"],
    "zizmor": ["--offline", "--quiet", "--no-progress", "--color=never"],
}


def lint(linter: str, workflow: Path) -> tuple[int, str]:
    program = Path(sysconfig.get_path("scripts"), linter)
    words = [str(program), *LINTERS[linter], str(workflow)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize("linter", LINTERS)
def test_the_workflow_has_no_findings(linter: str) -> None:
    code, output = lint(linter, WORKFLOW)
    assert code == 0, output


@pytest.mark.parametrize(
    ("linter", "line", "mistake", "finding"),
    [
        ("actionlint", "    branches: [main]", "    branch: [main]", 'unexpected key "branch"'),
        ("actionlint", "needs: check", "needs: checks", 'needs job "checks" which does not exist'),
        ("actionlint", "SESSION: ${{ matrix.session", "SESSION: ${{ matrix.sesion", '"sesion"'),
        ("zizmor", "persist-credentials: false", "fetch-depth: 1", "artipacked"),
        ("zizmor", '-s "$SESSION"', "-s ${{ github.head_ref }}", "template-injection"),
    ],
)
def test_a_mistake_is_found(
    linter: str, line: str, mistake: str, finding: str, tmp_path: Path
) -> None:
    text = WORKFLOW.read_text()
    assert text.count(line) == 1
    # zizmor takes a file for a workflow by its folder.
    workflow = tmp_path / ".github/workflows/ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(text.replace(line, mistake))
    code, output = lint(linter, workflow)
    assert code != 0
    assert finding in output
