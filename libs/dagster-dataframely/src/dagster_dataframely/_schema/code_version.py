"""Derive a code version that changes with the schema and with nothing else."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import dataframely as dy

from dagster_dataframely._schema.clock import describe_logic
from dagster_dataframely._schema.rules import SchemaRules, dtype_rule_name
from dagster_dataframely._schema.words import describe_dtype

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


_LENGTH = 16


def derive_code_version(rules: SchemaRules, plans: Mapping[str, str] | None = None) -> str:
    """Sixteen hex digits from columns, dtypes, rules and severities; the same on every machine.

    `plans` has in words what the filters of a collection do, by name.
    """
    lines = [rules.name]
    lines += [
        f"column {name}: {describe_dtype(column, None)}, {_arguments(column)}"
        for name, column in rules.columns.items()
    ]
    for rule in rules.rules:
        # The other rules follow from the arguments of their column, which are above.
        logic = describe_logic(rule) if rule.written_by_hand else ""
        logic = (plans or {}).get(rule.name, logic)
        lines.append(f"rule {rule.name}: {rule.severity}, {logic}")
    lines += [f"rule {dtype_rule_name(name)}: warn" for name in sorted(rules.dtype_warns)]
    # A function prints with its address in memory, which differs from process to process.
    text = _ADDRESS.sub("", "\n".join(lines))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _arguments(column: dy.Column) -> dict[str, Any]:
    """What the column was declared with, but its words; `repr` says the same, ten times as slowly."""
    return {
        name: value
        for name, value in vars(column).items()
        if not (value is None or value is False or name.startswith("_") or name == "description")
    }
