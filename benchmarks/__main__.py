"""Measure the sides, taking turns, print what came of the targets, and keep the figures."""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from benchmarks import data, environments, pages
from benchmarks.limits import memory_group
from benchmarks.processes import Measurement, start
from benchmarks.results import Results
from benchmarks.sides import GROUPS, Side, choose
from benchmarks.targets import is_small, verdicts


def main(arguments: list[str] | None = None) -> None:
    """Measure, or with `--render` write the tables of the kept figures into the page."""
    options = _parser().parse_args(arguments)
    if options.render:
        pages.PAGE.write_text(pages.rewrite(pages.PAGE.read_text()))
        return
    sides = choose(options.sides)
    work = options.work or Path(tempfile.mkdtemp())
    try:
        results = measure(sides, options, work)
    finally:
        if not options.work:
            shutil.rmtree(work)
    report(results)


def measure(sides: list[Side], options: argparse.Namespace, work: Path) -> Results:
    """Measure every side as often as asked, taking turns, each in a process of its own."""
    print(f"Generating lineitem at scale {options.scale:g}.", flush=True)
    source = data.generate(options.scale, work)
    pythons = {}
    for name in dict.fromkeys(side.environment for side in sides):
        print(f"Preparing the environment `{name}`.", flush=True)
        pythons[name] = environments.build(name, options.replaced, work)
    results = Results.of_this_machine(options.scale, options.memory_limit)
    turns = [side for _ in range(options.repeat) for side in sides]
    for number, side in enumerate(turns, start=1):
        print(f"[{number}/{len(turns)}] {side.group}: {side.title} ... ", end="", flush=True)
        found = take_turn(side, source, pythons[side.environment], options, work)
        results.add(side, found)
        if options.json:  # After each turn: a long measurement may not come to its end.
            results.write(options.json)
        print(_words(found), flush=True)
    return results


def take_turn(
    side: Side, source: Path, python: str, options: argparse.Namespace, work: Path
) -> Measurement:
    """Measure one side once."""
    order = {
        "program": f"benchmarks.programs.{side.program}",
        "arguments": side.arguments,
        "laps": side.laps,
        "source": str(source.resolve()),
    }
    os.sync()  # What the one before has written must not be on its way during this one.
    if is_small(options.memory_limit):
        data.forget(source)
    else:
        data.read_through(source)
    with (
        tempfile.TemporaryDirectory(dir=work) as folder,
        memory_group(options.memory_limit) as cgroup,
    ):
        return start(
            order, Path(folder).resolve(), python=python, cgroup=cgroup, timeout=options.timeout
        )


def report(results: Results) -> None:
    """Print the tables, and whether the targets are reached."""
    for group in GROUPS:
        table = pages.group_table(results, group.name)
        if table.count("\n") > pages.HEADING_LINES:
            print(f"\n{group.title}\n\n{table}")
    print(f"\nRows of the table: {results.rows or 'not known'}. Targets:\n")
    for verdict in verdicts(results):
        print(f"- {verdict}")


def _words(found: Measurement) -> str:
    if found.outcome != "completed":
        return f"{found.outcome} at {found.peak_gb:.2f} GB\n{found.message}"
    return (
        f"{found.seconds:.2f} s, {found.cpu_seconds:.2f} s of processor, "
        f"{found.peak_gb:.2f} GB, after {found.startup_seconds:.1f} s of start-up"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    add = parser.add_argument
    add("--scale", type=float, default=1.0, help="of TPC-H: 6 million rows each (1)")
    add("--sides", nargs="*", default=[], help="names of sides or groups (all)")
    add("--repeat", type=int, default=3, help="turns of each side (3)")
    add("--memory-limit", type=float, metavar="GB", help="for each process, by a control group")
    add("--timeout", type=float, metavar="SECONDS", help="for each process")
    add(
        "--with",
        dest="replaced",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="another version for every environment, like polars==2.1.0",
    )
    add("--work", type=Path, help="a folder that keeps the input and the environments")
    add("--json", type=Path, metavar="FILE", help="keep the figures")
    add("--render", action="store_true", help="only write kept figures into the docs' page")
    return parser


if __name__ == "__main__":
    main()
