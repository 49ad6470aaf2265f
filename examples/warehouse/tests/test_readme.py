"""The README says what is so."""

import re

from warehouse.job import EXPECTED, planned_runs
from warehouse.storage import PROJECT

README = (PROJECT / "README.md").read_text()
PACKAGE = PROJECT / "src" / "warehouse"


def test_the_summary_has_the_pinned_totals() -> None:
    lines = re.findall(r"^(\w+) +([\d,]+) +([\d,]+) .*?(\d+) +[\d.]+$", README, re.MULTILINE)
    totals = {
        asset: tuple(int(number.replace(",", "")) for number in numbers)
        for asset, *numbers in lines
    }
    assert totals == {
        asset: (each.rows_written, each.rows_quarantined, each.skipped_partitions)
        for asset, each in EXPECTED.items()
    }
    assert f"{len(planned_runs())} runs" in README


def test_every_check_that_fails_is_explained() -> None:
    explained = README.partition("## What is red, and why")[2].partition("\n## ")[0]
    failing = {
        (asset, check) for asset, totals in EXPECTED.items() for check in totals.failed_checks
    }
    assert [
        (asset, check)
        for asset, check in failing
        if f"`{asset}`" not in explained or f"`{check}`" not in explained
    ] == []


def test_every_file_to_copy_from_is_there() -> None:
    files = set(re.findall(r"`((?:\w+/)?\w+\.py)`", README))
    missing = {
        file
        for file in files
        if not any((PACKAGE / folder / file).exists() for folder in ("", "defs"))
    }
    assert len(files) > 10
    assert missing == set()


def test_every_environment_variable_is_documented() -> None:
    modules = [path.read_text() for path in PACKAGE.rglob("*.py")]
    read = {name for module in modules for name in re.findall(r"WAREHOUSE_[A-Z_]+", module)}
    assert len(read) == 4
    assert {name for name in read if f"`{name}`" not in README} == set()
