"""Report a run in Markdown, for people; other metadata is for queries and plots."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import dagster as dg

from dagster_dataframely import _names
from dagster_dataframely._cells import render_cell
from dagster_dataframely._metadata.budget import fit_names, shrink
from dagster_dataframely._metadata.tables import Table
from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._text import count, cut, printable, share
from dagster_dataframely._validation.verdict import Verdict

_MAX_LINES = 20
"""Of the table of failing rules."""


_MAX_NAMES = 5
"""Names in a sentence."""


_MAX_NAME = 60


_MAX_REASON = 240
"""A cell has no more characters."""


_LENGTH = 100
"""Pixels of a full bar."""


# Dagster's UI shows a report in its place if that is shorter than 1,000 characters (1.13).
_SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='{whole}' height='9' style='background:#8884'>"
    "<rect width='{part}' height='9' fill='{colour}'/></svg>"
)


_COLOURS = {"error": "#d33", "warn": "#d92"}


_SAFE = "/:='"
"""Beside letters and digits, what a link in Markdown may have as it is."""


@dataclass(frozen=True)
class Earlier:
    """What an earlier materialization says of its run."""

    rows_written: int
    error_rows: int
    failed: Mapping[str, int | None]
    """The value that `count_failures` recorded."""


def read_earlier(materialization: dg.AssetMaterialization | None) -> Earlier | None:
    """`None` where there is no earlier materialization, or one that does not say all of this."""
    if materialization is None:
        return None
    keys = (_names.ROWS_WRITTEN, _names.ERROR_ROWS, _names.FAILURES_BY_RULE)
    values: dict[str, Any] = {key: m.value for key, m in materialization.metadata.items()}
    rows, error_rows, failed = (values.get(key) for key in keys)
    if isinstance(rows, int) and isinstance(error_rows, int) and isinstance(failed, Mapping):
        return Earlier(rows, error_rows, failed)
    return None


def count_failures(
    failed: Mapping[str, int], max_bytes: int, noun: str = "rule"
) -> dict[str, int | None]:
    """Count the rows that fail each failing rule, the worst first; a long name is cut as a cell is."""
    counts: dict[str, int | None] = {}
    for name, rows in sorted(failed.items(), key=lambda item: -item[1]):
        counts.setdefault(_key(name), rows)
    return fit_names(counts, noun, max_bytes)


def write_report(
    rules: SchemaRules,
    verdict: Verdict[Any],
    combinations: Table | None,
    earlier: Earlier | None,
    max_bytes: int,
    empty_partitions: Sequence[str] = (),
) -> dg.MarkdownMetadataValue:
    """Write a headline, the failing rules, the others in short, and what changed.

    `combinations` has the sets of rules that fail together, biggest first. Where names are long the
    report has fewer of them, or the headline alone, which may exceed `max_bytes`. `empty_partitions`
    got no row, and are marked materialized all the same: Dagster marks a range as a whole (1.13).
    """
    failed = verdict.failed(rules.rules)
    passing = [rule.name for rule in rules.rules if rule.name not in failed] if failed else []

    def build(most: int) -> dg.MarkdownMetadataValue:
        paragraphs = [_headline(verdict, len(failed), len(rules.rules))]
        if most:
            paragraphs += [
                _table(rules, verdict, most),
                _passing(passing, most),
                _most_frequent(combinations, verdict.error_count),
                _changes(verdict, failed, earlier, most),
                f"No rows for {_listed(empty_partitions, most)}." if empty_partitions else "",
            ]
        return dg.MetadataValue.md("\n\n".join(filter(None, paragraphs)))

    return shrink(build, _MAX_LINES, max_bytes)


def _headline(verdict: Verdict[Any], failed: int, rules: int) -> str:
    rows = count(verdict.rows_in, "row")
    if verdict.error_count:
        written = f"**{verdict.survivor_count:,} of {rows} written**"
        of_all = share(verdict.error_count, verdict.rows_in)
        head = f"{written}, {verdict.error_count:,} set aside ({of_all})."
    else:
        head = f"**{rows} written.**"
    if not rules:
        return head
    if not failed:
        return f"{head} {'The rule passes' if rules == 1 else f'All {rules:,} rules pass'}."
    return f"{head}\n\n{failed:,} of {count(rules, 'rule')} {'fails' if failed == 1 else 'fail'}."


def _table(rules: SchemaRules, verdict: Verdict[Any], most: int) -> str:
    failing = [rule for rule in rules.rules if verdict.counts[rule.name]]
    if not failing:
        return ""
    # A rule over the whole table comes first: its count is of tables, not of rows.
    failing.sort(key=lambda rule: (not rule.whole_table, -verdict.counts[rule.name]))
    lines = ["| rule | severity | rows | share | |", "| --- | --- | ---: | ---: | --- |"]
    lines += [_line(rule, verdict) for rule in failing[:most]]
    hidden = len(failing) - most
    if hidden > 0:
        lines.append(f"| and {count(hidden, 'more rule')} | | | | |")
    return "\n".join(lines)


def _line(rule: Rule, verdict: Verdict[Any]) -> str:
    # A `|` would end the cell, also after a backslash that a backslash escapes.
    name = re.sub(r"(\\*)\|", r"\1\1\\|", _code(rule.name))
    head = f"| {name} | {rule.severity}"
    if rule.whole_table:
        return f"{head} | the whole table | | |"
    failing, rows = verdict.counts[rule.name], verdict.rows_in
    return f"{head} | {failing:,} | {share(failing, rows)} | {_bar(rule, failing, rows)} |"


def _passing(names: Sequence[str], most: int) -> str:
    if not names:
        return ""
    if len(names) > min(2 * _MAX_NAMES, most):
        return f"{count(len(names), 'other rule')} {'passes' if len(names) == 1 else 'pass'}."
    return f"{', '.join(map(_code, names))} {'passes' if len(names) == 1 else 'pass'}."


def _most_frequent(combinations: Table | None, error_rows: int) -> str:
    if combinations is None:
        return ""
    names, rows = combinations.rows[0].values()
    reason = _code(str(names), _MAX_REASON)
    return f"Most frequent reason: {reason} ({rows:,} of {count(error_rows, 'error row')})."


def _changes(
    verdict: Verdict[Any], failed: Mapping[str, int], earlier: Earlier | None, most: int
) -> str:
    if earlier is None:
        return ""
    changes = [
        _difference(verdict.survivor_count - earlier.rows_written, "row"),
        _difference(verdict.error_count - earlier.error_rows, "error row"),
    ]
    now = {_key(name) for name in failed}
    known = None not in earlier.failed.values()  # Else, what is not listed may have failed too.
    if known and (new := [name for name in failed if _key(name) not in earlier.failed]):
        changes.append(f"newly failing {_listed(new, most)}")
    listed = [name for name, rows in earlier.failed.items() if rows is not None]
    if gone := [name for name in listed if name not in now]:
        changes.append(f"no longer failing {_listed(gone, most)}")
    if not any(changes):
        return "No change since the last materialization." if known else ""
    return f"Since the last materialization: {'; '.join(filter(None, changes))}."


def _difference(number: int, noun: str) -> str:
    if not number:
        return ""
    return f"{count(abs(number), noun)} {'more' if number > 0 else 'fewer'}"


def _listed(names: Sequence[str], most: int) -> str:
    shown = names[: min(_MAX_NAMES, most)]
    hidden = len(names) - len(shown)
    more = f" and {hidden:,} more" if hidden else ""
    return f"{', '.join(map(_code, shown))}{more}"


def _key(name: str) -> str:
    """What stands for a rule in JSON."""
    return str(render_cell(name))


def _code(name: str, most: int = _MAX_NAME) -> str:
    """A rule's name, which can have any character, as code that does not end before it."""
    short = cut(printable(name.replace("`", "'")), most)
    return f"`{' '.join(short.split())}`"


def _bar(rule: Rule, failing: int, rows: int) -> str:
    """A bar as long as the share, and to be seen however small that is.

    An SVG image, since that is the one kind of chart that Dagster's UI shows in Markdown (1.13); it
    cannot hold a script there. Its colours go with a light and a dark page.
    """
    length = max(1, round(_LENGTH * failing / rows))
    svg = _SVG.format(whole=_LENGTH, part=length, colour=_COLOURS[rule.severity])
    return f"![{share(failing, rows)}](data:image/svg+xml,{quote(svg, safe=_SAFE)})"
