"""What the library aims for, and whether the figures reach it."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.results import Results

SMALL_MEMORY_GB = 3.0
"""A limit up to this is what is tried; a larger one only guards the machine."""

SECONDS, PEAK, ANONYMOUS = "seconds", "peak_gb", "anonymous_gb"
UNITS = {SECONDS: "s", PEAK: "GB", ANONYMOUS: "GB"}


@dataclass(frozen=True)
class Verdict:
    """One target and what was measured."""

    target: str
    found: str
    reached: bool | None
    """`None` where it was not measured."""

    @property
    def word(self) -> str:
        """The outcome in words."""
        return {True: "reached", False: "not reached", None: "not measured"}[self.reached]

    def __str__(self) -> str:
        return f"{self.target}: {self.word}" + (f" ({self.found})" if self.found else "")


def verdicts(results: Results) -> Iterator[Verdict]:
    """Every target: those of 60 million rows, or of 180 million within a small memory."""
    if is_small(results.memory_limit_gb):
        yield from _within_the_limit(results)
        return
    sink, ours, published = "plain-lazy", "quarantine-lazy", "published-filter-lazy"
    for words, side, limit in (
        ("rows fail rules about one row", "unique-lazy", 1.6),
        ("the same without statistics", "unique-no-statistics-lazy", 1.4),
        ("some keys repeat", ours, 2.4),
        ("every row passes", "library-lazy", 1.5),
    ):
        yield _at_most(
            results, f"LazyFrame, {words}: time of a plain sink", side, sink, SECONDS, limit
        )
    yield _at_most(
        results,
        "LazyFrame: memory of a plain sink that is not of files",
        ours,
        sink,
        ANONYMOUS,
        1.2,
    )
    yield _below(results, "LazyFrame: peak memory", ours, PEAK, 2.0)
    yield _at_most(results, "LazyFrame: time of PyPI's package", ours, published, SECONDS, 1.0)
    yield _at_most(results, "LazyFrame: peak memory of PyPI's package", ours, published, PEAK, 0.25)
    alone, ours, published = "dataframely-frame", "quarantine-frame", "published-filter-frame"
    yield _at_most(results, "DataFrame: time of Dataframely alone", ours, alone, SECONDS, 1.15)
    yield _at_most(results, "DataFrame: time of PyPI's package", ours, published, SECONDS, 1.0)
    plain, ours = "plain-definition", "library-definition"
    yield _at_most(results, "Definition: time of Dagster's own", ours, plain, SECONDS, 1.2)


def is_small(memory_limit_gb: float | None) -> bool:
    """Whether a limit is what is tried."""
    return memory_limit_gb is not None and memory_limit_gb <= SMALL_MEMORY_GB


def _within_the_limit(results: Results) -> Iterator[Verdict]:
    limit = f"{results.memory_limit_gb:g} GB"
    for side, words, completes in (
        ("quarantine-lazy", "this library completes", True),
        ("published-filter-lazy", "PyPI's package does not", False),
    ):
        found = results.median(side)
        reached = None if found is None else (found.outcome == "completed") is completes
        yield Verdict(f"Within {limit}, {words}", found.outcome if found else "", reached)


def _at_most(
    results: Results, what: str, side: str, reference: str, figure: str, limit: float
) -> Verdict:
    target = f"{what}, at most {limit:g} times"
    ratio = results.ratio(side, reference, figure)
    one, other = results.median(side), results.median(reference)
    if one is None or other is None:
        return Verdict(target, "", None)
    if ratio is None:
        # Who completes where the other does not is better by any measure.
        outcomes = f"{one.outcome} against {other.outcome}"
        return Verdict(target, outcomes, one.outcome == "completed")
    figures = [getattr(found, figure) for found in (one, other)]
    found = f"{ratio:.2f}: {figures[0]:.2f} against {figures[1]:.2f} {UNITS[figure]}"
    if figure == SECONDS:
        found += f"; of processor time {results.ratio(side, reference, 'cpu_seconds'):.2f}"
    return Verdict(target, found, ratio <= limit)


def _below(results: Results, what: str, side: str, figure: str, limit: float) -> Verdict:
    target = f"{what}, under {limit:g} {UNITS[figure]}"
    found = results.median(side)
    if found is None:
        return Verdict(target, "", None)
    value: float = getattr(found, figure)
    return Verdict(
        target, f"{value:.2f} {UNITS[figure]}", found.outcome == "completed" and value < limit
    )
