"""Run an asset on an IO manager, and load what is stored there."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
from handover.changes import Version
from handover.managers import Manager

import dagster_dataframely as dd


@dataclass
class Raised:
    """What failed a run: the innermost error, and those around it."""

    classes: list[str]
    message: str


@dataclass
class Stored:
    """What a downstream and a triage asset load; `None` where nothing is stored."""

    table: pl.DataFrame | None
    quarantine: pl.DataFrame | None


@dataclass
class Place:
    """A manager with a folder of its own, and how assets are declared on it."""

    manager: Manager
    folder: Path
    instance: dg.DagsterInstance
    lazy: bool = False
    partition: str | None = None
    io_manager: Any = field(init=False)

    def __post_init__(self) -> None:
        self.io_manager = self.manager.make(self.folder)

    def fit(self, version: Version) -> Version:
        """Add the column that a database finds a partition by."""
        if self.partition is None:
            return version
        schema: type[dy.Schema] = type(
            version.schema.__name__, (version.schema,), {"part": dy.String()}
        )
        return replace(
            version,
            schema=schema,
            frame=version.frame.with_columns(part=pl.lit(self.partition)).select(
                schema.column_names()
            ),
        )

    def declare(self, version: Version, **arguments: Any) -> dg.AssetsDefinition:
        def orders() -> Any:
            return version.frame.lazy() if self.lazy else version.frame

        orders.__annotations__["return"] = pl.LazyFrame if self.lazy else pl.DataFrame
        settings: dict[str, Any] = {
            "quarantine": True,
            "partitions_def": self.partitions,
            "metadata": self.manager.metadata if self.partition else None,
            **self.manager.arguments,
        }
        return dd.asset(version.schema, **settings | arguments)(orders)

    @property
    def partitions(self) -> dg.StaticPartitionsDefinition | None:
        return dg.StaticPartitionsDefinition(["a", "b", "../x"]) if self.partition else None

    def materialize(self, *assets: Any, **arguments: Any) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            assets,
            instance=self.instance,
            resources={"io_manager": self.io_manager, "nowhere": dg.mem_io_manager},
            partition_key=self.partition,
            raise_on_error=False,
            **arguments,
        )

    def run(self, version: Version) -> Raised | None:
        """Run the asset, and return what failed it."""
        return raised(self.materialize(self.declare(version)))

    def load(self, version: Version) -> Stored:
        """Load the table and its quarantine in a later run, as declared by a version."""
        orders = self.declare(version)
        spec = dd.build_quarantine_spec(version.schema, orders)
        keys = [orders.key, spec.key]
        both = self._load(keys, orders, spec)
        if both:
            return Stored(*both)
        # One of them is missing, or both are: ask for each.
        table, quarantine = (self._load([key], orders, spec) for key in keys)
        return Stored(table[0] if table else None, quarantine[0] if quarantine else None)

    def _load(self, keys: list[dg.AssetKey], *known: Any) -> list[pl.DataFrame] | None:
        seen: list[pl.DataFrame] = []
        annotation = self.manager.reads(self.lazy)

        def both(table: Any, quarantine: Any) -> None:
            seen.extend(rows.lazy().collect() for rows in (table, quarantine))

        def one(table: Any) -> None:
            seen.append(table.lazy().collect())

        reader = both if len(keys) == 2 else one
        names = ["table", "quarantine"][: len(keys)]
        reader.__annotations__ = {**dict.fromkeys(names, annotation), "return": None}
        asset = dg.asset(
            name="reader",
            ins={name: dg.AssetIn(key) for name, key in zip(names, keys, strict=True)},
            partitions_def=self.partitions,
            io_manager_key="nowhere",
        )(reader)
        error = raised(self.materialize(*known, asset, selection=[asset]))
        if error is None:
            return seen
        assert error.classes[0] in self.manager.missing, error
        return None


def raised(result: dg.ExecuteInProcessResult) -> Raised | None:
    """What failed a run, or `None`."""
    if result.success:
        return None
    (failure,) = (event.step_failure_data.error for event in result.get_step_failure_events())
    chain = [failure]
    while chain[-1] is not None and chain[-1].cause is not None:
        chain.append(chain[-1].cause)
    errors = [error for error in chain if error is not None]
    return Raised([str(error.cls_name) for error in reversed(errors)], errors[-1].message)
