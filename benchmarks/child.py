"""What a measured process does: prepare, run under the clock, write down what it took."""

import importlib
import importlib.metadata
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGES = [
    "dagster",
    "dagster-dataframely",
    "dagster-pandera",
    "dagster-polars",
    "dataframely",
    "pandera",
    "polars",
]


def main(order: Mapping[str, Any]) -> None:
    """Carry out one order, which `processes.start` gives."""
    if order["cgroup"]:
        # Before anything else is imported, so that all of its memory counts.
        Path(order["cgroup"], "cgroup.procs").write_text(str(os.getpid()))
    report = measure(
        order["program"],
        order["arguments"],
        source=Path(order["source"]),
        folder=Path(order["folder"]),
        laps=order["laps"],
    )
    Path(order["report"]).write_text(json.dumps(report))


def measure(
    program: str, arguments: Mapping[str, Any], *, source: Path, folder: Path, laps: int
) -> dict[str, Any]:
    """Prepare a program, run it under the clock, and look at what it wrote.

    Several laps give their medians, after one that does not count.
    """
    from benchmarks.programs import Job

    module, _, name = program.partition(":")
    run = getattr(importlib.import_module(module), name)(Job(source, folder), **arguments)
    if laps > 1:
        run()
    began = time.monotonic()
    facts, times = None, []
    for _ in range(laps):
        start, cpu = time.monotonic(), time.process_time()
        facts = run()
        times.append((time.monotonic() - start, time.process_time() - cpu))
    seconds, cpu_seconds = map(statistics.median, zip(*times, strict=True))
    return {
        "began": began,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "facts": facts if isinstance(facts, dict) else count_rows(folder),
        "versions": versions(),
    }


def count_rows(folder: Path) -> dict[str, int]:
    """The rows of the table, and those that were set aside under other names."""
    import polars as pl

    counts = {
        path.stem: pl.scan_parquet(path).select(pl.len()).collect().item()
        for path in folder.glob("*.parquet")
    }
    table = counts.pop("table", 0)
    return {"table": table, "aside": sum(counts.values())}


def versions() -> dict[str, str]:
    """Of the packages that decide what is measured, as far as they are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
