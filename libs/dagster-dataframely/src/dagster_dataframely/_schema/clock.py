"""Describe what a rule does, whatever the clock says when it is read."""

import re
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from dagster_dataframely._schema.rules import Rule

_CLOCK = frozenset(
    {"now", "today", "utcnow", "time", "time_ns", "monotonic", "localtime", "gmtime"}
)
"""Names by which Python code asks for the time."""
_NUMBER = re.compile(r"\d+(\.\d+)?")


def describe_logic(rule: Rule) -> str:
    """The expression as Polars prints it.

    Where the author's function asks for the time, the numbers in the text are those of the clock: in
    their place stand the constants of the function.
    """
    text = str(rule.expression)
    codes = list(_codes(rule.function, set()))
    if not any(_CLOCK.intersection(code.co_names) for code in codes):
        return text
    constants = [_show(c) for code in codes for c in code.co_consts if not isinstance(c, CodeType)]
    return f"{_NUMBER.sub('#', text)}, {constants}"


def _codes(function: Any, seen: set[int]) -> Iterator[CodeType]:
    """The code of a function, of those inside it, and of those that it calls by a global name."""
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return
    seen.add(id(code))
    scope: dict[str, Callable[..., object]] = getattr(function, "__globals__", {})
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    pending = [code]
    while pending:
        current = pending.pop()
        yield current
        pending += [constant for constant in current.co_consts if isinstance(constant, CodeType)]
        for name in current.co_names:
            yield from _codes(scope.get(name), seen)
    for cell in cells:
        yield from _codes(cell, seen)


def _show(constant: object) -> str:
    # The order of a set differs from process to process.
    return str(sorted(map(str, constant)) if isinstance(constant, frozenset) else constant)
