"""Say in words what a check found, and what became of the rows."""

from collections.abc import Mapping, Sequence
from enum import Enum

import polars as pl

from dagster_dataframely._schema.granularity import CheckGroup
from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._text import count, list_within, printable
from dagster_dataframely._validation.verdict import Findings

_MAX_LENGTH = 300
"""Characters of a description, except where one name is longer."""

SKIPPED = "Skipped: there is no table"


class Fate(Enum):
    """What a run does with the rows of a table, as a check of them says it.

    The first text follows a failing error rule, the second one a rule that only warns.
    """

    REPORTED = ("", "the rule only warns")
    """Nothing: the rows are only looked at."""
    WRITTEN = ("", "written, since the rule only warns")
    SET_ASIDE = (
        "set aside",
        "written, since the rule only warns, unless an error rule fails too",
    )
    """Error rows are in the quarantine, and the others are written."""
    HELD = ("set aside, and no table was written", "the rule only warns, but no table was written")
    """Error rows are in the quarantine, and the others are written nowhere."""
    ABORTED = ("nothing was written", "the rule only warns, but nothing was written")


def describe_rules(group: CheckGroup, findings: Findings | None, fate: Fate) -> str:
    """One check of rules in a line: `2 rows fail; set aside`."""
    if findings is None:
        return SKIPPED
    failing = [rule for rule in group.rules if findings.counts[rule.name]]
    if not failing:
        if group.collapsed:
            return (
                f"{count(len(group.rules), 'rule')} {'passes' if len(group.rules) == 1 else 'pass'}"
            )
        return "The table passes" if group.rules[0].whole_table else "No row fails"
    warns = all(rule.severity == "warn" for rule in failing)
    tail = fate.value[warns]
    if not group.collapsed:
        (rule,) = failing
        words = _rows(rule, findings.counts)
        found = f"{words} {'fail' if words.endswith('rows') else 'fails'}"
        if rule.whole_table and not warns and fate is Fate.HELD:
            tail = "no table was written"
        return "; ".join(filter(None, [found, tail]))
    if warns:
        tail = tail.replace("the rule only warns", "the rules only warn")
    elif fate in (Fate.SET_ASIDE, Fate.HELD):
        tail = f"error rows {tail}"
    verb = "fails" if len(failing) == 1 else "fail"
    failing.sort(key=lambda rule: (rule.severity == "warn", -findings.counts[rule.name]))
    return list_within(
        _MAX_LENGTH,
        f"{len(failing):,} of {count(len(group.rules), 'rule')} {verb}: ",
        [
            f"`{printable(rule.name)}` ({_rows(rule, findings.counts)}"
            f"{', only warns' if rule.severity == 'warn' and not warns else ''})"
            for rule in failing
        ],
        f"; {tail}" if tail else "",
    )


def describe_columns(rules: SchemaRules, found: pl.Schema | None) -> str:
    """The check of columns and dtypes in a line."""
    if found is None:
        return SKIPPED
    mismatches = rules.mismatches(found)
    extra = sum(name not in rules.row_columns for name in found)
    tail = f"; {count(extra, 'other')} not declared" if extra else ""
    if not mismatches:
        return f"Columns and dtypes match{tail}"
    verb = "does not match" if len(mismatches) == 1 else "do not match"
    parts = [
        f"`{printable(m.column)}` is {m.found or 'missing'}, declared {m.expected}"
        for m in mismatches
    ]
    head = f"{count(len(mismatches), 'column')} {verb}: "
    return list_within(_MAX_LENGTH, head, parts, tail, separator="; ")


def describe_lost(failed: Sequence[Rule], findings: Findings, fate: Fate) -> str:
    """The check of columns and dtypes in a line, where `dd.parse` could not parse values."""
    tail = fate.value[all(rule.severity == "warn" for rule in failed)]
    worst_first = sorted(failed, key=lambda rule: -findings.counts[rule.name])
    return list_within(
        _MAX_LENGTH,
        f"{count(len(failed), 'column')} with values that cannot be parsed: ",
        [f"`{printable(str(r.column))}` ({_rows(r, findings.counts)})" for r in worst_first],
        f"; {tail}" if tail else "",
    )


def _rows(rule: Rule, counts: Mapping[str, int]) -> str:
    return "the table" if rule.whole_table else count(counts[rule.name], "row")
