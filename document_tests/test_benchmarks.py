"""The benchmark runs, at a size that takes no time, and its tables say what was measured."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchmarks import __main__ as command
from benchmarks import child, data, environments, limits, pages, processes
from benchmarks.lineitem import Lineitem, plan
from benchmarks.processes import Measurement
from benchmarks.results import Results
from benchmarks.sides import CHECKS, GROUPS, SIDES, Side, choose
from benchmarks.targets import verdicts

SCALE = 0.01
ROWS, ASIDE = 60_175, 187
ASIDE_BY_ROW = 176
"""Rows that a rule about one row sets aside; the others repeat a key."""
SMALL: Mapping[str, Mapping[str, Any]] = {
    "definition": {"assets": 3},
    "fan-in": {"partitions": 4},
    "hours": {"hours": 3},
}
FACTS: Mapping[str, Mapping[str, int]] = {
    "lazy": {"table": ROWS - ASIDE, "aside": ASIDE},
    "frame": {"table": ROWS - ASIDE, "aside": ASIDE},
    "fan-in": {"table": 4000, "aside": 0},
}
UNFILTERED = {"plain-lazy", "plain-frame", "library-lazy", "library-frame", "memory-lazy"}
HERE = [side for side in SIDES if side.environment == "library" and side.group != "wide"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.generate(SCALE, tmp_path_factory.mktemp("lineitem"))


# What is measured.


def test_the_planted_rows_fail_and_the_clean_ones_do_not(source: Path) -> None:
    assert Lineitem.is_valid(plan(source, clean=True).collect())
    _, failed = Lineitem.filter(plan(source, clean=False).collect())
    assert set(failed.counts()) == {
        "primary_key",
        "received_after_shipped",
        "l_quantity|min",
        "l_shipmode|nullability",
    }
    assert len(failed) == ASIDE


@pytest.mark.parametrize("side", HERE, ids=lambda side: side.name)
def test_every_side_of_this_environment_does_what_its_row_says(
    side: Side, source: Path, tmp_path: Path
) -> None:
    program = f"benchmarks.programs.{side.program}"
    arguments = {**side.arguments, **SMALL.get(side.group, {})}
    report = child.measure(program, arguments, source=source, folder=tmp_path, laps=1)
    assert report["seconds"] > 0
    facts = report["facts"]
    if side.name in UNFILTERED:
        assert facts == {"table": ROWS, "aside": 0}
    elif side.name.startswith("unique"):
        assert facts == {"table": ROWS - ASIDE_BY_ROW, "aside": ASIDE_BY_ROW}
    elif side.group in FACTS:
        assert facts == FACTS[side.group]
    elif side.group == "hours":
        assert facts == {
            "checks": {"plain": 0, "rule": 12, "schema": 2}[side.name.split("-")[0]],
            "partitions": 3,
        }
    elif side.group == "definition":
        assert facts["checks"] == 3 * 31
    else:
        numbers = {"plain": 0, "checked": CHECKS, "rule": CHECKS, "column": 18, "schema": 2}
        assert facts == {"checks": numbers[side.name.partition("-")[0]]}


def test_several_laps_give_their_median(source: Path, tmp_path: Path) -> None:
    report = child.measure(
        "benchmarks.programs.definitions:plain",
        {"assets": 1},
        source=source,
        folder=tmp_path,
        laps=3,
    )
    assert 0 < report["seconds"] < 60


def test_every_side_is_in_a_group_that_has_its_reference() -> None:
    names = {side.name: side.group for side in SIDES}
    assert len(names) == len(SIDES)
    assert {group.name: names[group.reference] for group in GROUPS} == {
        group.name: group.name for group in GROUPS
    }
    assert set(names.values()) == {group.name for group in GROUPS}


def test_sides_are_chosen_by_name_and_by_group() -> None:
    assert [side.name for side in choose(["definition", "plain-lazy"])] == [
        "plain-lazy",
        "plain-definition",
        "library-definition",
        "shared-definition",
    ]
    assert choose([]) == SIDES
    with pytest.raises(SystemExit, match="No such side: slow"):
        choose(["slow"])


def test_every_environment_has_the_versions_of_this_one() -> None:
    here = environments.pinned([])
    assert f"polars=={pl.__version__}" in here
    assert environments.pinned(["polars==2.1.0"]) == [
        "polars==2.1.0" if line.startswith("polars==") else line for line in here
    ]
    assert {side.environment for side in SIDES} == set(environments.OWN)


# Processes.


def order(source: Path, program: str) -> dict[str, Any]:
    return {"program": program, "arguments": {}, "laps": 1, "source": str(source)}


def test_the_command_measures_prints_and_keeps(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.json"
    work = source.parents[1]
    options = [f"--scale={SCALE}", "--repeat=1", f"--work={work}", f"--json={kept}"]
    command.main([*options, "--sides", "plain-lazy", "quarantine-lazy"])
    results = Results.read(kept)
    assert (results.rows, list(results.sides)) == (ROWS, ["plain-lazy", "quarantine-lazy"])
    for (found,) in results.sides.values():
        assert found.outcome == "completed"
        assert min(found.startup_seconds, found.seconds, found.cpu_seconds) > 0
        assert found.peak_gb > found.anonymous_gb > 0
    assert results.versions["library"]["polars"] == pl.__version__
    printed = capsys.readouterr().out
    assert "[2/2] lazy: this library, quarantine ... " in printed
    assert pages.group_table(results, "lazy") in printed
    assert "- Definition: time of Dagster's own, at most 1.2 times: not measured\n" in printed
    assert sorted(path.name for path in work.iterdir()) == [f"scale-{SCALE}"]


def test_a_process_that_fails_says_why(source: Path, tmp_path: Path) -> None:
    found = processes.start(order(source, "benchmarks.programs.plain:missing"), tmp_path)
    assert found.outcome == "failed"
    assert "AttributeError" in found.message


def test_a_process_that_takes_too_long_is_stopped(source: Path, tmp_path: Path) -> None:
    found = processes.start(order(source, "benchmarks.programs.plain:lazy"), tmp_path, timeout=0)
    assert (found.outcome, found.seconds) == ("timed out", 0)


def test_a_process_that_the_system_kills_is_told_apart(source: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    found = processes.start(order(source, "any:thing"), tmp_path, python=str(python))
    assert found.outcome == "killed"


def pretend(monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
    """Give each new folder these files, as the kernel does for a control group."""

    def make(group: Path, *, exist_ok: bool) -> None:
        os.mkdir(group)
        for file in files:
            (group / file).write_text("")

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)


def written_below(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_memory_limit_is_a_control_group_of_version_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "membership").write_text("9:name=systemd:/\n4:memory:/own\n0::/\n")
    own = tmp_path / "root/memory/own"
    own.mkdir(parents=True)
    pretend(monkeypatch, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
    with limits.memory_group(
        3, root=tmp_path / "root", membership=tmp_path / "membership"
    ) as group:
        assert group is not None
        assert group.parent == own
        assert written_below(group) == {
            "memory.limit_in_bytes": "3000000000",
            "memory.memsw.limit_in_bytes": "3000000000",
        }
    assert not group.exists()


def test_a_memory_limit_is_a_control_group_of_version_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the closest group that may limit the memory of its own: one with processes may not."""
    (tmp_path / "membership").write_text("0::/outer/own\n")
    root = tmp_path / "root"
    for folder, controllers in (("outer/own", "cpu"), ("outer", "cpu memory")):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "cgroup.subtree_control").write_text(controllers)
    pretend(monkeypatch, "memory.max", "memory.swap.max")
    with limits.memory_group(3, root=root, membership=tmp_path / "membership") as group:
        assert group is not None
        assert group.parent == root / "outer"
        assert written_below(group) == {"memory.max": "3000000000", "memory.swap.max": "0"}


def test_a_memory_limit_that_cannot_be_set_says_why(tmp_path: Path) -> None:
    (tmp_path / "membership").write_text("0::/own\n")
    with (
        pytest.raises(limits.LimitError, match=r"No control group above .* gives its groups"),
        limits.memory_group(3, root=tmp_path, membership=tmp_path / "membership"),
    ):
        pass
    (tmp_path / "membership").write_text("4:memory:/own\n")
    (tmp_path / "memory").mkdir()
    with (
        pytest.raises(limits.LimitError, match="A memory limit needs the right to make"),
        limits.memory_group(3, root=tmp_path, membership=tmp_path / "membership"),
    ):
        pass


def test_without_a_limit_there_is_no_control_group() -> None:
    with limits.memory_group(None) as group:
        assert group is None


# Figures.


def took(seconds: float, peak: float = 1.0, **facts: float) -> Measurement:
    return Measurement("completed", 0.5, seconds, 2 * seconds, peak, 0.1, facts, 0.7)


def results_of(limit: float | None = None, **sides: list[Measurement]) -> Results:
    named = {name.replace("_", "-"): found for name, found in sides.items()}
    machine = {"cores": 2, "memory_gb": 24, "python": "3.12.1"}
    return Results(10, limit, machine, {"library": {"polars": "1.44.2"}}, named)


KILLED = Measurement("killed")
MEASURED = results_of(
    plain_lazy=[took(5.0, table=100, aside=0), took(3.0), took(4.0)],
    quarantine_lazy=[took(6.0, 1.25, table=97, aside=3)],
    published_filter_lazy=[took(9.0, 8.0), KILLED],
    dataframely_frame=[took(4.0)],
    quarantine_frame=[took(5.0)],
    plain_definition=[took(1.0, checks=31)],
    library_definition=[took(1.1, checks=31)],
    plain_ephemeral=[took(0.1, checks=0)],
    checked_ephemeral=[took(0.23, checks=26)],
)


def test_figures_are_medians_and_ratios_are_of_medians() -> None:
    assert MEASURED.median("plain-lazy") == took(4.0)
    assert MEASURED.median("published-filter-lazy") == KILLED
    assert MEASURED.median("pandera-lazy") is None
    assert MEASURED.ratio("quarantine-lazy", "plain-lazy", "seconds") == 1.5
    assert MEASURED.ratio("quarantine-lazy", "published-filter-lazy", "seconds") is None
    assert results_of(a=[took(1)], b=[took(0)]).ratio("a", "b", "seconds") is None
    assert (MEASURED.rows, results_of().rows) == (100, None)


def test_figures_are_kept_without_messages_and_with_the_versions_once(tmp_path: Path) -> None:
    results = Results.of_this_machine(1, None)
    found = Measurement("failed", 0.123456, versions={"polars": "1"}, message="/some/path")
    results.add(choose(["plain-lazy"])[0], found)
    results.write(tmp_path / "kept.json")
    kept = Results.read(tmp_path / "kept.json")
    assert kept == results
    assert kept.sides == {"plain-lazy": [Measurement("failed", 0.1235)]}
    assert kept.versions == {"library": {"polars": "1"}}
    assert set(kept.machine) == {"cores", "memory_gb", "python"}


def test_targets_are_reached_or_not_in_plain_words() -> None:
    assert [str(verdict) for verdict in verdicts(MEASURED)] == [
        "LazyFrame, rows fail rules about one row: time of a plain sink, at most 1.6 times: "
        "not measured",
        "LazyFrame, the same without statistics: time of a plain sink, at most 1.4 times: "
        "not measured",
        "LazyFrame, some keys repeat: time of a plain sink, at most 2.4 times: "
        "reached (1.50: 6.00 against 4.00 s; of processor time 1.50)",
        "LazyFrame, every row passes: time of a plain sink, at most 1.5 times: not measured",
        "LazyFrame: memory of a plain sink that is not of files, at most 1.2 times: "
        "reached (1.00: 0.70 against 0.70 GB)",
        "LazyFrame: peak memory, under 2 GB: reached (1.25 GB)",
        "LazyFrame: time of PyPI's package, at most 1 times: reached (completed against killed)",
        "LazyFrame: peak memory of PyPI's package, at most 0.25 times: "
        "reached (completed against killed)",
        "DataFrame: time of Dataframely alone, at most 1.15 times: "
        "not reached (1.25: 5.00 against 4.00 s; of processor time 1.25)",
        "DataFrame: time of PyPI's package, at most 1 times: not measured",
        "Definition: time of Dagster's own, at most 1.2 times: "
        "reached (1.10: 1.10 against 1.00 s; of processor time 1.10)",
    ]


def test_a_side_that_does_not_complete_reaches_no_target_of_its_own() -> None:
    results = results_of(plain_lazy=[took(1)], quarantine_lazy=[KILLED])
    words = {verdict.target: verdict.word for verdict in verdicts(results)}
    assert words["LazyFrame: peak memory, under 2 GB"] == "not reached"
    repeat = "LazyFrame, some keys repeat: time of a plain sink, at most 2.4 times"
    assert words[repeat] == "not reached"


def test_within_a_small_memory_it_counts_who_completes() -> None:
    limited = results_of(3.0, quarantine_lazy=[took(9)], published_filter_lazy=[KILLED])
    assert [str(verdict) for verdict in verdicts(limited)] == [
        "Within 3 GB, this library completes: reached (completed)",
        "Within 3 GB, PyPI's package does not: reached (killed)",
    ]
    nothing = verdicts(results_of(3.0))
    assert [verdict.word for verdict in nothing] == ["not measured", "not measured"]
    guarded = verdicts(results_of(20.0, quarantine_lazy=[took(9)]))
    assert "Within" not in "".join(map(str, guarded))


def test_tables_have_a_row_for_each_measured_side() -> None:
    assert pages.render(MEASURED, "lazy").splitlines()[2:] == [
        "| plain asset | 0.5 | 4.0 | 8.0 | 1.00 | 0.70 | 0.10 | 1.00 | 1.00 | 1.00 |",
        "| this library, quarantine | 0.5 | 6.0 | 12.0 | 1.25 | 0.70 | 0.10 | 1.50 | 1.50 | 1.25 |",
        "| PyPI's `dagster-dataframely` 0.12.0, `filter=True` | killed |  |  |  |  |  |  |  |  |",
    ]
    assert pages.render(MEASURED, "ephemeral").splitlines()[2:] == [
        "| plain asset | 0 | 100 | 200 | 1.00 | 1.00 |  |",
        "| plain asset, checks that always pass | 26 | 230 | 460 | 2.30 | 2.30 | 5.0 |",
    ]
    assert pages.render(MEASURED, "definition").splitlines()[2:] == [
        "| `@dg.asset` with as many checks | 31 | 1.00 | 2.00 | 1.00 | 1.00 |",
        "| this library | 31 | 1.10 | 2.20 | 1.10 | 1.10 |",
    ]
    assert pages.render(MEASURED, "versions").splitlines()[2:] == [
        "| machine | 2 cores, 24 GB, Python 3.12.1 |",
        "| rows | 100 |",
        "| `library` | polars 1.44.2 |",
    ]
    assert pages.render(results_of(3.0), "versions").splitlines()[2:4] == [
        "| machine | 2 cores, 24 GB, Python 3.12.1, 3 GB for each process |",
        "| rows | not known |",
    ]
    measured = [verdict.target for verdict in verdicts(MEASURED) if verdict.reached is not None]
    targets = pages.render(MEASURED, "targets").splitlines()[2:]
    assert [line.split(" | ")[0] for line in targets] == [f"| {target}" for target in measured]


# The page.


def test_the_page_shows_the_kept_figures() -> None:
    """After measuring: `python -m benchmarks --render`."""
    text = pages.PAGE.read_text()
    assert pages.rewrite(text) == text
    shown = set(re.findall(r"<!-- figures: (\S+)", text))
    assert shown == {path.stem for path in pages.RESULTS.glob("*.json")} != set()


def test_the_page_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MEASURED.write(tmp_path / "made-up.json")
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- figures: made-up definition -->\nold\n<!-- end -->\nAfter.\n")
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    monkeypatch.setattr(pages, "PAGE", page)
    command.main(["--render"])
    assert page.read_text() == (
        "Before.\n<!-- figures: made-up definition -->\n\n"
        f"{pages.render(MEASURED, 'definition')}\n<!-- end -->\nAfter.\n"
    )


def test_the_kept_figures_are_small_and_name_no_machine() -> None:
    for path in pages.RESULTS.glob("*.json"):
        text = path.read_text()
        assert len(text) < 60_000
        assert re.fullmatch(rf"scale-{Results.read(path).scale:g}(-.+)?", path.stem)
        assert set(Results.read(path).machine) == {"cores", "memory_gb", "python"}
        assert {
            one["message"] for found in json.loads(text)["sides"].values() for one in found
        } == {""}
        assert "/" not in text


@pytest.mark.parametrize("lazy", [False, True])
def test_a_wide_table_is_measured_with_its_events(tmp_path: Path, *, lazy: bool) -> None:
    plain = child.measure(
        "benchmarks.programs.wide:plain", {"columns": 20}, source=tmp_path, folder=tmp_path, laps=1
    )
    arguments = {"columns": 20, "rules": 10, "lazy": lazy}
    wide = child.measure(
        "benchmarks.programs.wide:library", arguments, source=tmp_path, folder=tmp_path, laps=1
    )
    assert (plain["facts"]["checks"], wide["facts"]["checks"]) == (0, 11)
    assert wide["facts"]["event_kb"] > plain["facts"]["event_kb"]
