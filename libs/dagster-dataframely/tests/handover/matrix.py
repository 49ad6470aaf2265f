"""Compare what is stored after each of two versions of a table with what was judged."""

import inspect
import re

import polars as pl
from handover.changes import Change, Version
from handover.managers import Manager
from handover.place import Place, Raised, Stored
from polars.testing import assert_frame_equal

import dagster_dataframely as dd
from dagster_dataframely import errors

NAMED = {name for name, member in vars(errors).items() if inspect.isclass(member)}


def same_rows(found: pl.DataFrame | None, expected: pl.DataFrame, manager: Manager) -> None:
    """Compare rows whatever their order, and columns and fields whatever theirs."""
    assert found is not None, "nothing is stored"
    assert set(found.columns) == set(expected.columns)
    found = found.select(expected.columns)
    for name, dtype in expected.schema.items():
        if is_same(found.schema[name], dtype, manager):
            found = found.with_columns(pl.col(name).cast(dtype))
    assert_frame_equal(found, expected, check_row_order=False)


def is_same(found: pl.DataType, expected: pl.DataType, manager: Manager) -> bool:
    """Whether a dtype is another with its fields in another order, or what it is read back as."""
    if isinstance(found, pl.Struct) and isinstance(expected, pl.Struct):
        return sorted(map(repr, found.fields)) == sorted(map(repr, expected.fields))
    return any(expected == dtype and found == wider for dtype, wider in manager.widens)


def assert_stored(place: Place, version: Version) -> Stored:
    """A downstream asset loads the surviving rows, and a triage asset the error rows, if any."""
    stored = place.load(version)
    same_rows(stored.table, version.survivors, place.manager)
    if version.error_rows.is_empty():
        assert stored.quarantine is None or stored.quarantine.is_empty()
        return stored
    spec = dd.build_quarantine_spec(version.schema, place.declare(version))
    described = [column.name for column in spec.metadata["dagster/column_schema"].columns]
    assert stored.quarantine is not None, "no error rows are stored"
    assert set(stored.quarantine.columns) == set(described)
    columns = version.schema.column_names()
    same_rows(stored.quarantine.select(columns), version.error_rows, place.manager)
    words = stored.quarantine.select(described[len(columns) :])
    assert words.filter(pl.any_horizontal(pl.all() == "invalid")).height == words.height
    return stored


def assert_named(error: Raised, change: Change) -> None:
    """The error is the library's, and names the asset or its quarantine and a column."""
    assert error.classes[0] in NAMED, error
    assert "orders" in error.message, error
    # A column of the quarantine has the name of a rule in it.
    assert re.search(f"`[^`]*({'|'.join(change.columns)})[^`]*`", error.message), error


def compare(before: Stored, after: Stored) -> None:
    """What was stored is as it was."""
    for old, new in ((before.table, after.table), (before.quarantine, after.quarantine)):
        assert (old is None) is (new is None)
        if old is not None and new is not None:
            assert_frame_equal(old, new, check_row_order=False)


def assert_judged_is_stored(place: Place, change: Change) -> None:
    """Run a table in two versions; each time, what was judged is stored or nothing is changed."""
    old, new = place.fit(change.old), place.fit(change.new)
    error = place.run(old)
    if error is not None:  # A dtype that the storage does not give back.
        assert_named(error, change)
        compare(place.load(old), Stored(None, None))
        return
    before = assert_stored(place, old)
    error = place.run(new)
    if error is None:
        assert_stored(place, new)
    else:
        assert_named(error, change)
        compare(before, place.load(old))
