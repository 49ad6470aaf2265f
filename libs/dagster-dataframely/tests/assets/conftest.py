"""Fixtures of these tests."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from support.storage import FileIOManager


@pytest.fixture
def materialize(
    files: FileIOManager, instance: dg.DagsterInstance
) -> Callable[..., dg.ExecuteInProcessResult]:
    def materialize(*assets: dg.AssetsDefinition, **arguments: Any) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            assets, instance=instance, resources={"io_manager": files}, **arguments
        )

    return materialize
