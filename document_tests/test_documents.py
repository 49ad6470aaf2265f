"""Every Python fence of the documents runs, and prints what it says."""

import re
from pathlib import Path
from unittest.mock import patch

import pytest
from pytest_examples import CodeExample, EvalExample, find_examples

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = sorted(path for path in DOCS.rglob("*.md") if "adr" not in path.relative_to(DOCS).parts)
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "libs/dagster-dataframely/README.md",
    ROOT / "examples/warehouse/README.md",
    *SITE,
]
INCLUDE = re.compile(r'--8<-- "([^":]+)(?::\w+)?"\s*')
FENCES = [example for document in DOCUMENTS for example in find_examples(document)]
INCLUDES = [fence for fence in FENCES if "--8<--" in fence.source]
EXAMPLES = [fence for fence in FENCES if "--8<--" not in fence.source]
MOST_LINES = 10


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_fence(example: CodeExample, eval_example: EvalExample) -> None:
    with patch.dict("os.environ"):  # What an example sets there ends with it.
        eval_example.run_print_check(example)


def test_every_python_fence_is_collected() -> None:
    fences = sum(
        len(re.findall(r"^ *(?:```+|~~~+) *(?:\{ *)?\.?(?:python|py)\b", text, re.MULTILINE))
        for text in (document.read_text() for document in DOCUMENTS)
    )
    assert len(EXAMPLES) + len(INCLUDES) == fences > 0


def test_a_long_example_of_the_site_is_a_file_that_runs() -> None:
    long = [str(e) for e in EXAMPLES if e.path in SITE and e.source.count("\n") > MOST_LINES]
    assert long == []


def test_a_fence_includes_one_snippet_and_each_snippet_is_included() -> None:
    included = set()
    for fence in INCLUDES:
        match = INCLUDE.fullmatch(fence.source)
        assert match, fence
        included.add(match[1])
    files = {
        path.relative_to(DOCS / "snippets").as_posix() for path in DOCS.rglob("snippets/**/*.py")
    }
    assert included == files
