"""The sides that are compared, in groups; within a group each is compared with a reference."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Group:
    """Sides that do the same work."""

    name: str
    title: str
    reference: str
    """The side that the others' figures are divided by."""


@dataclass(frozen=True)
class Side:
    """One row of a table of results."""

    group: str
    name: str
    title: str
    program: str
    """The function below `benchmarks.programs` that is measured."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    environment: str = "library"
    laps: int = 1


GROUPS = [
    Group("lazy", "The asset returns a LazyFrame", "plain-lazy"),
    Group("frame", "The asset returns a DataFrame", "dataframely-frame"),
    Group("fan-in", "A table from 1,000 Parquet partitions", "plain-fan-in"),
    Group("definition", "200 assets with 30 rules each are defined", "plain-definition"),
    Group("ephemeral", "A run on 1,000 rows, ephemeral instance", "plain-ephemeral"),
    Group("sqlite", "A run on 1,000 rows, SQLite", "plain-sqlite"),
    Group("hours", "One run over 168 hourly partitions, SQLite", "plain-hours"),
    Group("wide", "5,000 columns and 2,000 rules that fail", "plain-wide"),
]

CHECKS = 26
"""Of `Lineitem`, at the granularity `rule`."""
LAPS = 11
QUARANTINE = {"quarantine": True}
FILTER = {"filter": True}
IN_MEMORY = {"engine": "in-memory"}
UNIQUE = {"unique": True}
NO_STATISTICS = {"statistics": False}


def _lazy(name: str, title: str, program: str, **options: Any) -> Side:
    return Side("lazy", f"{name}-lazy", title, f"{program}:lazy", **options)


def _frame(name: str, title: str, program: str, **options: Any) -> Side:
    return Side("frame", f"{name}-frame", title, f"{program}:frame", **options)


def _small(storage: str) -> Iterable[Side]:
    def side(name: str, title: str, program: str, **arguments: Any) -> Side:
        given = {**arguments, "storage": storage}
        return Side(storage, f"{name}-{storage}", title, f"small_runs:{program}", given, laps=LAPS)

    yield side("plain", "plain asset", "plain")
    yield side("checked", "plain asset, checks that always pass", "plain", checks=CHECKS)
    for granularity in ("rule", "column", "schema"):
        title = f'this library, `check_granularity="{granularity}"`'
        yield side(granularity, title, "library", check_granularity=granularity)


def _hours() -> Iterable[Side]:
    def side(name: str, title: str, program: str, **arguments: Any) -> Side:
        given = {"hours": 168, **arguments}
        return Side("hours", f"{name}-hours", title, f"hours:{program}", given)

    yield side("plain", "plain asset", "plain")
    for granularity in ("rule", "schema"):
        title = f'this library, `check_granularity="{granularity}"`'
        yield side(granularity, title, "library", check_granularity=granularity)


def _wide() -> Iterable[Side]:
    def side(name: str, title: str, program: str, **arguments: Any) -> Side:
        given = {"columns": 5000, **arguments}
        return Side("wide", f"{name}-wide", title, f"wide:{program}", given)

    yield side("plain", "plain asset", "plain")
    for granularity in ("rule", "column", "schema"):
        for lazy in (False, True):
            yield side(
                f"{granularity}-{'lazy' if lazy else 'frame'}",
                f'{"LazyFrame" if lazy else "DataFrame"}, `check_granularity="{granularity}"`',
                "library",
                rules=2000,
                lazy=lazy,
                check_granularity=granularity,
            )
    for rules in (500, 1000):
        title = f'DataFrame, `check_granularity="rule"`, {rules:,} rules'
        yield side(f"rules-{rules}", title, "library", rules=rules, lazy=False)


SIDES = [
    _lazy("plain", "plain asset", "plain"),
    _lazy("quarantine", "this library, quarantine", "library", arguments=QUARANTINE),
    _lazy(
        "unique",
        "this library, quarantine, no key repeats",
        "library",
        arguments={**QUARANTINE, **UNIQUE},
    ),
    _lazy(
        "unique-no-statistics",
        "this library, quarantine, no key repeats, `statistics=False`",
        "library",
        arguments={**QUARANTINE, **UNIQUE, **NO_STATISTICS},
    ),
    _lazy("library", "this library, no quarantine", "library"),
    _lazy(
        "memory-quarantine",
        'this library, quarantine, `engine="in-memory"`',
        "library",
        arguments={**QUARANTINE, **IN_MEMORY},
    ),
    _lazy(
        "memory",
        'this library, no quarantine, `engine="in-memory"`',
        "library",
        arguments=IN_MEMORY,
    ),
    _lazy("dataframely", "Dataframely alone, lazy", "dataframely_alone"),
    Side("lazy", "collected", "Dataframely alone, collected first", "dataframely_alone:collected"),
    _lazy(
        "published-filter",
        "PyPI's `dagster-dataframely` 0.12.0, `filter=True`",
        "published",
        arguments=FILTER,
        environment="published",
    ),
    _lazy("published", "PyPI's `dagster-dataframely` 0.12.0", "published", environment="published"),
    _lazy("pandera", "dagster-pandera, collected first", "with_pandera", environment="pandera"),
    _frame("dataframely", "Dataframely alone", "dataframely_alone"),
    Side("frame", "in-asset", "Dataframely in a plain asset", "dataframely_alone:frame_in_asset"),
    _frame("plain", "plain asset, no validation", "plain"),
    _frame("quarantine", "this library, quarantine", "library", arguments=QUARANTINE),
    _frame(
        "no-statistics",
        "this library, quarantine, `statistics=False`",
        "library",
        arguments={**QUARANTINE, **NO_STATISTICS},
    ),
    _frame("library", "this library, no quarantine", "library"),
    _frame(
        "published-filter",
        "PyPI's `dagster-dataframely` 0.12.0, `filter=True`",
        "published",
        arguments=FILTER,
        environment="published",
    ),
    _frame("pandera", "dagster-pandera", "with_pandera", environment="pandera"),
    Side("fan-in", "plain-fan-in", "plain asset", "fan_in:plain"),
    Side("fan-in", "library-fan-in", "this library", "fan_in:library"),
    Side("definition", "plain-definition", "`@dg.asset` with as many checks", "definitions:plain"),
    Side("definition", "library-definition", "this library", "definitions:library"),
    Side(
        "definition",
        "shared-definition",
        "this library, 10 assets for each schema",
        "definitions:library",
        {"schemas": 20},
    ),
    *_small("ephemeral"),
    *_small("sqlite"),
    *_hours(),
    *_wide(),
]


def choose(names: Iterable[str]) -> list[Side]:
    """The sides of these names or groups, in the order of the list; all of them for no names."""
    wanted = set(names)
    known = [group.name for group in GROUPS] + [side.name for side in SIDES]
    if unknown := sorted(wanted.difference(known)):
        raise SystemExit(f"No such side: {', '.join(unknown)}. There are: {', '.join(known)}.")
    return [side for side in SIDES if not wanted or wanted & {side.name, side.group}]
