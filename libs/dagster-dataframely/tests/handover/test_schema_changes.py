"""What was judged is what is stored, on each IO manager, after each change of a schema."""

from pathlib import Path

import dagster as dg
import pytest
from handover.changes import CHANGES, Change
from handover.managers import Manager, parameters
from handover.matrix import Place, assert_judged_is_stored


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("manager", parameters(), ids=str)
def test_x(manager: Manager, change: Change, tmp_path: Path, instance: dg.DagsterInstance) -> None:
    assert_judged_is_stored(Place(manager, tmp_path, instance), change)
