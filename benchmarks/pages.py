"""Kept figures to tables, and the tables into the page that shows them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.processes import ROOT, Measurement
from benchmarks.results import Results
from benchmarks.sides import GROUPS, SIDES, Side
from benchmarks.targets import verdicts

RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs/performance.md"
_MARKED = re.compile(r"(<!-- figures: ([\w.-]+) ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Cells = Sequence[str]
HEADING_LINES = 2


def rewrite(page: str) -> str:
    """The text of a page with every marked table made from the figures it names, anew."""

    def fill(match: re.Match[str]) -> str:
        start, name, what, end = match.groups()
        results = Results.read(RESULTS / f"{name}.json")
        return f"{start}\n{render(results, what)}\n{end}"

    return _MARKED.sub(fill, page)


def render(results: Results, what: str) -> str:
    """One table: of a group, of the targets, or of the machine and the versions."""
    tables = {"targets": _targets, "versions": _versions}
    if what in tables:
        return _table(*tables[what](results))
    return group_table(results, what)


def group_table(results: Results, name: str) -> str:
    """The sides of a group, and how each compares with the reference."""
    (group,) = (group for group in GROUPS if group.name == name)
    columns = _COLUMNS.get(name, _PROCESS)
    rows = []
    for side in SIDES:
        found = results.median(side.name)
        if side.group != name or found is None:
            continue
        if found.outcome == "completed":
            row = [cell(results, side, found, group.reference) for cell in columns.values()]
        else:
            row = [found.outcome, *[""] * (len(columns) - 1)]
        rows.append([side.title, *row])
    return _table(["", *columns], rows)


def _table(heading: Cells, rows: Sequence[Cells]) -> str:
    lines = [heading, ["---", *["--:"] * (len(heading) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


Cell = Callable[[Results, Side, Measurement, str], str]


def _figure(name: str, scale: float = 1.0, digits: int = 1) -> Cell:
    return lambda _results, _side, found, _reference: f"{getattr(found, name) * scale:,.{digits}f}"


def _times(name: str) -> Cell:
    def cell(results: Results, side: Side, found: Measurement, reference: str) -> str:
        ratio = results.ratio(side.name, reference, name)
        return "" if ratio is None else f"{ratio:.2f}"

    return cell


def _checks(results: Results, side: Side, found: Measurement, reference: str) -> str:
    return f"{found.facts['checks']:,.0f}"


def _per_partition(results: Results, side: Side, found: Measurement, reference: str) -> str:
    return f"{found.seconds / found.facts['partitions'] * 1000:.0f}"


def _event_kb(results: Results, side: Side, found: Measurement, reference: str) -> str:
    return f"{found.facts['event_kb']:,.0f}"


def _per_check(results: Results, side: Side, found: Measurement, reference: str) -> str:
    """What checks that do nothing take, each; this library's take time for the rows as well."""
    plain, checks = results.median(reference), found.facts["checks"]
    if plain is None or not checks or not side.program.endswith(":plain"):
        return ""
    return f"{(found.seconds - plain.seconds) / checks * 1000:.1f}"


_PROCESS: dict[str, Cell] = {
    "start-up, s": _figure("startup_seconds"),
    "run, s": _figure("seconds"),
    "CPU, s": _figure("cpu_seconds"),
    "peak, GB": _figure("peak_gb", digits=2),
    "without files, GB": _figure("anonymous_gb", digits=2),
    "temporary, GB": _figure("temporary_gb", digits=2),
    "run ratio": _times("seconds"),
    "CPU ratio": _times("cpu_seconds"),
    "peak ratio": _times("peak_gb"),
}
_RUN: dict[str, Cell] = {
    "checks": _checks,
    "run, ms": _figure("seconds", 1000, 0),
    "CPU, ms": _figure("cpu_seconds", 1000, 0),
    "run ratio": _times("seconds"),
    "CPU ratio": _times("cpu_seconds"),
    "ms for each check": _per_check,
}
_COLUMNS: dict[str, dict[str, Cell]] = {
    "definition": {
        "checks": _checks,
        "seconds": _figure("seconds", digits=2),
        "CPU, s": _figure("cpu_seconds", digits=2),
        "ratio": _times("seconds"),
        "CPU ratio": _times("cpu_seconds"),
    },
    "hours": {
        "checks": _checks,
        "run, s": _figure("seconds"),
        "CPU, s": _figure("cpu_seconds"),
        "ms for each partition": _per_partition,
    },
    "wide": {
        "checks": _checks,
        "run, s": _figure("seconds"),
        "CPU, s": _figure("cpu_seconds"),
        "events, kB": _event_kb,
        "peak, GB": _figure("peak_gb", digits=2),
    },
    "ephemeral": _RUN,
    "sqlite": _RUN,
}


def _targets(results: Results) -> tuple[Cells, list[Cells]]:
    """Those that the figures are about."""
    return ["target", "found", ""], [
        [verdict.target, verdict.found, verdict.word]
        for verdict in verdicts(results)
        if verdict.reached is not None
    ]


def _versions(results: Results) -> tuple[Cells, list[Cells]]:
    machine = "{cores} cores, {memory_gb} GB, Python {python}".format_map(results.machine)
    limit = results.memory_limit_gb
    return ["", "measured with"], [
        ["machine", machine + (f", {limit:g} GB for each process" if limit else "")],
        ["rows", f"{results.rows:,}" if results.rows else "not known"],
        *(
            [f"`{name}`", ", ".join(f"{package} {version}" for package, version in found.items())]
            for name, found in results.versions.items()
        ),
    ]
