"""The figures of one benchmark: kept as JSON, without a word on which machine it was."""

import json
import os
import platform
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.processes import Measurement
from benchmarks.sides import Side

FIGURES = ("startup_seconds", "seconds", "cpu_seconds", "peak_gb", "anonymous_gb", "temporary_gb")


@dataclass
class Results:
    """Every measurement, by the name of its side, in the order they were taken."""

    scale: float
    memory_limit_gb: float | None
    machine: Mapping[str, Any]
    versions: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Of packages, by environment."""
    sides: dict[str, list[Measurement]] = field(default_factory=dict)

    @classmethod
    def of_this_machine(cls, scale: float, memory_limit_gb: float | None) -> "Results":
        """Nothing measured yet."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        machine = {
            "cores": len(os.sched_getaffinity(0)),
            "memory_gb": round(memory / 1e9),
            "python": platform.python_version(),
        }
        return cls(scale, memory_limit_gb, machine)

    def add(self, side: Side, found: Measurement) -> None:
        """Keep what one process took."""
        if found.versions:
            self.versions[side.environment] = found.versions
        rounded = {name: round(getattr(found, name), 4) for name in FIGURES}
        # A message may name paths of this machine.
        kept = replace(found, **rounded, versions={}, message="")
        self.sides.setdefault(side.name, []).append(kept)

    def median(self, name: str) -> Measurement | None:
        """The medians of a side's figures; of one that did not always complete, that outcome."""
        found = self.sides.get(name)
        if not found:
            return None
        if incomplete := [one for one in found if one.outcome != "completed"]:
            return Measurement(incomplete[0].outcome)
        middle = {
            figure: statistics.median(getattr(one, figure) for one in found) for figure in FIGURES
        }
        return Measurement("completed", **middle, facts=found[-1].facts)

    def ratio(self, name: str, reference: str, figure: str) -> float | None:
        """One side's figure divided by another's, where both completed."""
        pair = self.median(name), self.median(reference)
        if any(found is None or found.outcome != "completed" for found in pair):
            return None
        ours, theirs = (float(getattr(found, figure)) for found in pair)
        return ours / theirs if theirs else None

    @property
    def rows(self) -> int | None:
        """Of the table; not known where no side wrote them all."""
        counts = {
            int(one.facts["table"] + one.facts["aside"])
            for name, found in self.sides.items()
            for one in found
            if name.endswith(("-lazy", "-frame")) and one.facts
        }
        return max(counts, default=None)

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Results":
        """What `write` wrote."""
        kept = json.loads(path.read_text())
        sides = {
            name: [Measurement(**one) for one in found] for name, found in kept["sides"].items()
        }
        return cls(**{**kept, "sides": sides})
