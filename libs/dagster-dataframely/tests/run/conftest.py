"""Fixtures of these tests."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import polars as pl
import pytest


@pytest.fixture
def run_range(
    instance: dg.DagsterInstance,
) -> Callable[[dg.AssetsDefinition, tuple[str, str]], dg.ExecuteInProcessResult]:
    """Run an asset over a range of its partitions, with a manager that keeps what it gets."""

    class Keeping(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
            assert isinstance(obj, pl.DataFrame)

        def load_input(self, context: dg.InputContext) -> Any:
            raise NotImplementedError

    def run_range(asset: dg.AssetsDefinition, span: tuple[str, str]) -> dg.ExecuteInProcessResult:
        start, end = span
        return dg.materialize(
            [asset],
            instance=instance,
            resources={"io_manager": Keeping()},
            tags={
                "dagster/asset_partition_range_start": start,
                "dagster/asset_partition_range_end": end,
            },
            raise_on_error=False,
        )

    return run_range
