"""The example in every public docstring runs, and prints what it says."""

import inspect
from pathlib import Path

import pytest
from pytest_examples import CodeExample, EvalExample, find_examples

import dagster_dataframely as dd

PACKAGE = Path(dd.__file__).parent
EXAMPLES = list(find_examples(PACKAGE))


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_docstring_example(example: CodeExample, eval_example: EvalExample) -> None:
    eval_example.run_print_check(example)


def test_every_fence_in_the_package_is_collected() -> None:
    fences = sum(path.read_text().count("```python") for path in PACKAGE.rglob("*.py"))
    assert len(EXAMPLES) == fences


@pytest.mark.parametrize("module", [dd, dd.data, dd.testing, dd.wiring])
def test_every_public_function_has_an_example(module: object) -> None:
    values = [getattr(module, name) for name in module.__all__]  # type: ignore[attr-defined]
    functions = [value for value in values if inspect.isfunction(value)]
    assert [f.__name__ for f in functions if "Example:" not in (f.__doc__ or "")] == []
