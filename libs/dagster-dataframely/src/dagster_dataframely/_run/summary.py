"""Sum up a run in its log."""

from dagster_dataframely._run.outcome import Outcome
from dagster_dataframely._text import count, cut, printable, share

_MAX_RULES = 10
"""Lines; one more says how many there are left."""

_MAX_NAME = 100


def summarize(outcome: Outcome, seconds: float | None = None) -> str:
    """Say how many rows came in, were written and set aside; then the failing rules, worst first.

    `seconds`: how long the IO manager took to write the table; `None` where none was written.
    """
    verdict, declared = outcome.verdict, outcome.declaration
    rules = declared.rules.rules
    parts = [f"{count(verdict.rows_in, 'row')} in"]
    parts.append(
        "no table written"
        if seconds is None
        else f"{verdict.survivor_count:,} written in {seconds:.1f} s"
    )
    if verdict.error_count:
        became = "failed an error rule" if outcome.address is None else "set aside"
        of_all = share(verdict.error_count, verdict.rows_in)
        parts.append(f"{verdict.error_count:,} {became} ({of_all})")
    failing = [rule for rule in rules if verdict.counts[rule.name]]
    failing.sort(
        key=lambda rule: (
            rule.severity == "warn",
            not rule.whole_table,
            -verdict.counts[rule.name],
        )
    )
    lines = [
        f"{cut(printable(rule.name), _MAX_NAME)} ({rule.severity}): "
        f"{'the table' if rule.whole_table else count(verdict.counts[rule.name], 'row')}"
        for rule in failing[:_MAX_RULES]
    ]
    if (hidden := len(failing) - _MAX_RULES) > 0:
        lines.append(f"and {count(hidden, 'more rule')}")
    head = f"{printable(declared.asset_name)}: {', '.join(parts)}."
    if lines:
        verb = "fails" if len(failing) == 1 else "fail"
        head += f" {len(failing):,} of {count(len(rules), 'rule')} {verb}:"
    return "\n  ".join([head, *lines])
