"""What an execution left of an asset, and one way to execute it in a run or by a call."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import dagster as dg
import polars as pl
from polars.testing import assert_frame_equal

from dagster_dataframely.testing import Invocation


@dataclass
class Execution:
    """What one execution left of one asset, in a run or in a direct invocation."""

    success: bool = True
    error: str | None = None
    """The class name of what was raised."""
    message: str = ""
    checks: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """Whether each reported check passed, and its severity."""
    check_metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None
    """The values of the materialization's metadata; `None` where nothing was materialized."""
    table: pl.DataFrame | None = None
    quarantine: pl.DataFrame | None = None
    events: list[dg.DagsterEvent] = field(default_factory=list)
    """Everything the run logged; empty for a direct invocation."""

    @property
    def failed(self) -> dict[str, str]:
        return {name: severity for name, (passed, severity) in self.checks.items() if not passed}

    @property
    def failed_rows(self) -> dict[str, int | None]:
        """How many rows fail each check that did not pass."""
        return {name: self.check_metadata[name].get("dy_failed_count") for name in self.failed}

    def assert_stored(self, *, table: pl.DataFrame | None, quarantine: pl.DataFrame | None) -> None:
        for found, expected in ((self.table, table), (self.quarantine, quarantine)):
            if found is None or expected is None:
                assert found is expected
            else:
                assert_frame_equal(found, expected)


class Execute(Protocol):
    """Executes one asset without inputs."""

    def __call__(
        self, asset: dg.AssetsDefinition, /, *, partition_key: str | None = None
    ) -> Execution: ...


Materialize = Callable[..., dg.ExecuteInProcessResult]


def left_by_call(invocation: Invocation) -> Execution:
    """What a direct invocation left of its asset."""
    return Execution(
        checks={
            name: (check.passed, check.severity.name) for name, check in invocation.checks.items()
        },
        check_metadata={name: plain(check.metadata) for name, check in invocation.checks.items()},
        metadata=plain(invocation.metadata),
        table=invocation.table,
        quarantine=invocation.quarantine,
    )


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The values of metadata, whether Dagster has wrapped them or not."""
    wrapped = dg.AssetMaterialization("any", metadata=metadata).metadata
    return {name: value.value for name, value in wrapped.items()}


def invoked(yielded: Any) -> Iterator[Any]:
    """The events of a direct invocation, awaited where the function is asynchronous."""
    if not isinstance(yielded, AsyncIterator):
        yield from yielded
        return

    async def collect() -> list[Any]:
        return [event async for event in yielded]

    yield from asyncio.run(collect())
