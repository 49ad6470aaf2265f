"""A run without error rows leaves none in the quarantine, and the table is its own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from handover.changes import same
from handover.managers import Manager, parameters
from handover.matrix import NAMED, assert_stored, compare
from handover.own_managers import Keeping
from handover.place import Place

DIRTY = same().new
CLEAN = replace(DIRTY, frame=DIRTY.survivors)


@pytest.mark.parametrize(("lazy", "partition"), [(False, None), (True, None), (False, "a")])
@pytest.mark.parametrize("manager", parameters(), ids=str)
def test_a_clean_run_clears_the_quarantine_of_a_dirty_one(
    manager: Manager,
    lazy: bool,
    partition: str | None,
    tmp_path: Path,
    instance: dg.DagsterInstance,
) -> None:
    place = Place(manager, tmp_path, instance, lazy, partition)
    for version in (CLEAN, DIRTY, CLEAN):
        fitted = place.fit(version)
        assert place.run(fitted) is None
        assert_stored(place, fitted)


@pytest.mark.parametrize("manager", parameters(), ids=str)
def test_a_run_leaves_the_rows_and_error_rows_of_other_partitions(
    manager: Manager, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    place = Place(manager, tmp_path, instance, partition="b")
    other = place.fit(DIRTY)
    assert place.run(other) is None
    before = assert_stored(place, other)
    for version in (DIRTY, CLEAN):
        place.partition = "a"
        assert place.run(place.fit(version)) is None
        place.partition = "b"
        compare(before, place.load(other))


class Unreadable(Keeping):
    """Stores what it gets, and cannot read what is below some keys."""

    def load_input(self, context: dg.InputContext) -> Any:
        if context.asset_key.path[-1].endswith("_quarantine"):
            message = "denied"
            raise PermissionError(message)
        return super().load_input(context)


def test_a_quarantine_that_cannot_be_read_is_not_taken_for_none(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    io_manager = Unreadable()
    manager = Manager("unreadable", lambda _: io_manager, ("KeyError",), reads=lambda _: Any)
    place = Place(manager, tmp_path, instance)
    assert place.run(DIRTY) is None
    before = dict(io_manager.kept)
    error = place.run(CLEAN)
    if error is None:
        rows: pl.DataFrame = io_manager.kept["orders_quarantine",].lazy().collect()
        assert rows.is_empty()
    else:
        assert error.classes[0] in NAMED, error
        assert "orders_quarantine" in error.message
        assert io_manager.kept == before
