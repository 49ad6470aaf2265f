"""Tell a direct invocation from a step, and write its error rows to a directory."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely._quarantine.writers import file_writer
from dagster_dataframely._settings import quarantine_dir
from dagster_dataframely._upstream.steps import keys_by_output
from dagster_dataframely.errors import QuarantineDirError


def current_keys_by_output(step: dg.AssetExecutionContext | None) -> Mapping[str, dg.AssetKey]:
    """The keys now of a definition's assets, as far as a step or a direct invocation tells.

    Dagster can give assets other keys after they are made (`load_assets_from_modules`).
    """
    if step is not None:
        return keys_by_output(step)
    call = direct_call.get()
    return {} if call is None else call.keys


def partition_of_call(
    context: Any, partitions_def: dg.PartitionsDefinition[Any] | None
) -> str | None:
    """The partition of a direct invocation: a plain function call, with or without a context."""
    call = direct_call.get()
    partition_key = None if call is None else call.partition_key
    if context is not None and context.has_partition_key:
        partition_key = context.partition_key
    if isinstance(partitions_def, dg.MultiPartitionsDefinition) and partition_key is not None:
        partition_key = partitions_def.get_partition_key_from_str(partition_key)
    return partition_key


@dataclass(frozen=True)
class DirectCall:
    """A direct invocation by `dd.testing.invoke`."""

    keys: Mapping[str, dg.AssetKey]
    """The keys of the definition's assets by output; they may not be those it was declared with."""
    partition_key: str | None
    capture: Callable[[dg.AssetKey, pl.DataFrame], None]
    """Takes the error rows of an asset, in place of a directory."""


direct_call: ContextVar[DirectCall | None] = ContextVar("direct_call", default=None)
"""The call that is under way, if it is one of `dd.testing.invoke`."""


@dataclass(frozen=True)
class DirectWriter:
    """The writer of a direct invocation; the directory is read when there are rows to write."""

    asset_key: dg.AssetKey
    partition_key: str | None

    def __call__(self, frame: pl.DataFrame | pl.LazyFrame, /) -> str:
        if (call := direct_call.get()) is not None:
            call.capture(self.asset_key, frame.lazy().collect(engine="streaming"))
            return "the result of `dd.testing.invoke`"
        if (directory := quarantine_dir()) is None:
            raise QuarantineDirError(
                self.asset_key.to_user_string(), "no directory is set to write them to"
            )
        return file_writer(self.asset_key, directory, self.partition_key)(frame)

    def clear(self, no_rows: pl.DataFrame | pl.LazyFrame, /) -> None:
        """Clear the file of an earlier call, where a directory is set and has one."""
        if direct_call.get() is None and (directory := quarantine_dir()) is not None:
            file_writer(self.asset_key, directory, self.partition_key).clear(no_rows)
