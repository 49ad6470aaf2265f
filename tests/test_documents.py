"""Every Python fence of the documents runs, and prints what it says."""

from pathlib import Path

import pytest
from pytest_examples import CodeExample, EvalExample, find_examples

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "libs/dagster-dataframely/README.md",
    ROOT / "examples/warehouse/README.md",
    *(ROOT / "docs").rglob("*.md"),
]
EXAMPLES = [example for document in DOCUMENTS for example in find_examples(document)]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_fence(example: CodeExample, eval_example: EvalExample) -> None:
    eval_example.run_print_check(example)


def test_every_python_fence_is_collected() -> None:
    fences = sum(document.read_text().count("```python") for document in DOCUMENTS)
    assert len(EXAMPLES) == fences > 0
