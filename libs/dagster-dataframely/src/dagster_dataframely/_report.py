"""What one run did, in Markdown: for people, where other metadata is for queries and plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import dagster as dg

from dagster_dataframely import _names
from dagster_dataframely._cells import MAX_CHARACTERS
from dagster_dataframely._rules import Rule, SchemaRules
from dagster_dataframely._tables import Table
from dagster_dataframely._validation import Verdict

_MAX_FAILING = 20
"""Lines of the table of failing rules."""
_MAX_NAMES = 5
"""Names in a sentence."""
_MAX_NAME = 60
_LENGTH = 120
"""Pixels of a full bar."""
_SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='{whole}' height='9'>"
    "<rect width='{whole}' height='9' fill='#8884'/>"
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
    failed: Mapping[str, int]
    """Its failing rules."""


def read_earlier(materialization: dg.AssetMaterialization | None) -> Earlier | None:
    """`None` where there is no earlier materialization, or another tool made it."""
    if materialization is None or _names.REPORT not in materialization.metadata:
        return None
    values: dict[str, Any] = {key: m.value for key, m in materialization.metadata.items()}
    return Earlier(
        rows_written=values[_names.ROWS_WRITTEN],
        error_rows=values[_names.ERROR_ROWS],
        failed=values.get(_names.FAILURES_BY_RULE) or {},
    )


def write_report(
    rules: SchemaRules,
    verdict: Verdict[Any],
    together: Table | None,
    earlier: Earlier | None,
    most: int,
) -> str:
    """A headline, the failing rules, the others in short, and what changed.

    `together` has the sets of rules that error rows fail, biggest first; `most` rules get a line. The
    length depends on the names of the rules, and not on the rows.
    """
    failed = verdict.failed(rules.rules)
    paragraphs = [
        _headline(verdict, len(failed), len(rules.rules)),
        _table(rules, verdict, min(most, _MAX_FAILING)),
        _passing([rule.name for rule in rules.rules if rule.name not in failed]) if failed else "",
        _together(together, verdict.error_count),
        _changes(verdict, failed, earlier),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _headline(verdict: Verdict[Any], failed: int, rules: int) -> str:
    rows = _number(verdict.rows_in, "row")
    if verdict.error_count:
        written = f"**{verdict.survivor_count:,} of {rows} written**"
        share = _share(verdict.error_count, verdict.rows_in)
        head = f"{written}, {verdict.error_count:,} set aside ({share})."
    else:
        head = f"**{rows} written.**"
    if not rules:
        return head
    if not failed:
        return f"{head} {'The rule passes' if rules == 1 else f'All {rules:,} rules pass'}."
    return f"{head} {failed:,} of {_number(rules, 'rule')} {'fails' if failed == 1 else 'fail'}:"


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
        lines.append(f"| and {_number(hidden, 'more rule')} | | | | |")
    return "\n".join(lines)


def _line(rule: Rule, verdict: Verdict[Any]) -> str:
    name = _code(rule.name).replace("|", "\\|")  # Else it would end the cell.
    head = f"| {name} | {rule.severity}"
    if rule.whole_table:
        return f"{head} | the whole table | | |"
    count, rows = verdict.counts[rule.name], verdict.rows_in
    return f"{head} | {count:,} | {_share(count, rows)} | {_bar(rule, count, rows)} |"


def _passing(names: Sequence[str]) -> str:
    if not names:
        return ""
    if len(names) > 2 * _MAX_NAMES:
        return f"{len(names):,} rules pass."
    return f"{', '.join(map(_code, names))} {'passes' if len(names) == 1 else 'pass'}."


def _together(together: Table | None, error_rows: int) -> str:
    if together is None:
        return ""
    names, rows = together.rows[0]
    reason = _code(str(names), MAX_CHARACTERS)
    return f"The most frequent reason, of {rows:,} of {_number(error_rows, 'error row')}: {reason}."


def _changes(verdict: Verdict[Any], failed: Mapping[str, int], earlier: Earlier | None) -> str:
    if earlier is None:
        return ""
    changes = [
        _difference(verdict.survivor_count - earlier.rows_written, "row"),
        _difference(verdict.error_count - earlier.error_rows, "error row"),
    ]
    if new := [name for name in failed if name not in earlier.failed]:
        changes.append(f"newly failing {_listed(new)}")
    if gone := [name for name in earlier.failed if name not in failed]:
        changes.append(f"failing no more {_listed(gone)}")
    return f"Since the last materialization: {'; '.join(filter(None, changes)) or 'no change'}."


def _difference(number: int, noun: str) -> str:
    if not number:
        return ""
    return f"{_number(abs(number), noun)} {'more' if number > 0 else 'fewer'}"


def _listed(names: Sequence[str]) -> str:
    hidden = len(names) - _MAX_NAMES
    more = f" and {hidden:,} more" if hidden > 0 else ""
    return f"{', '.join(map(_code, names[:_MAX_NAMES]))}{more}"


def _code(name: str, most: int = _MAX_NAME) -> str:
    """A rule's name, which can have any character, as code that does not end before it."""
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    return f"`{' '.join(short.replace('`', chr(39)).split())}`"


def _share(count: int, rows: int) -> str:
    share = count / rows
    return f"{share:.1%}" if share >= 0.001 else "< 0.1%"


def _bar(rule: Rule, count: int, rows: int) -> str:
    """A bar as long as the share, and to be seen however small that is.

    An SVG image, since that is the one kind of chart that Dagster's UI shows in Markdown (1.13); it
    cannot hold a script there. Its colours go with a light and a dark page.
    """
    length = max(1, round(_LENGTH * count / rows))
    svg = _SVG.format(whole=_LENGTH, part=length, colour=_COLOURS[rule.severity])
    return f"![{_share(count, rows)}](data:image/svg+xml,{quote(svg, safe=_SAFE)})"


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
