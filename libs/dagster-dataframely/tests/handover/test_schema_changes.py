"""What was judged is what is stored, on each IO manager, after each change of a schema."""

from pathlib import Path

import dagster as dg
import pytest
from handover.changes import CHANGES, Change
from handover.managers import Manager, parameters
from handover.matrix import assert_judged_is_stored
from handover.place import Place

FEW = [change for change in CHANGES if change.name in {"columns reordered", "Int64 to Float64"}]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize(
    "manager", parameters("keep", "parquet", "duckdb", "delta", "iceberg", "deltalake"), ids=str
)
def test_what_was_judged_is_stored_after_each_change(
    manager: Manager, change: Change, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    assert_judged_is_stored(Place(manager, tmp_path, instance), change)


@pytest.mark.parametrize("change", FEW, ids=str)
@pytest.mark.parametrize("partition", [None, "a"])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("manager", parameters(), ids=str)
def test_what_was_judged_is_stored_in_each_form(
    manager: Manager,
    lazy: bool,
    partition: str | None,
    change: Change,
    tmp_path: Path,
    instance: dg.DagsterInstance,
) -> None:
    assert_judged_is_stored(Place(manager, tmp_path, instance, lazy, partition), change)
