"""Write error rows: to a file, or through the IO manager of the running asset."""

import secrets
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, runtime_checkable

import dagster as dg
import polars as pl
from upath import UPath

from dagster_dataframely import _names
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._upstream.io_managers import stored_output, write_through_bound_manager
from dagster_dataframely._upstream.steps import is_partitioned, materializable_keys
from dagster_dataframely.errors import (
    QuarantineColumnsError,
    QuarantineDirError,
    QuarantineKeyCollisionError,
)


class QuarantineWriter(Protocol):
    """Stores the error rows of one run and returns where they are, in words.

    It is handed what the asset's IO manager is: a `pl.LazyFrame` where the output's Dagster type is
    one, else a `pl.DataFrame`.
    """

    def __call__(self, frame: Any, /) -> str: ...


@runtime_checkable
class ClearingWriter(QuarantineWriter, Protocol):
    """A writer that can also take away what an earlier run stored."""

    def clear(self, no_rows: Any, /) -> None:
        """Leave no row behind, given a frame with the columns and without rows."""


def quarantine_path(
    asset_key: dg.AssetKey, directory: UPath, partition_key: str | None = None
) -> UPath:
    """The file for the error rows of a direct invocation.

    `<directory>/<key parts>/<name>_quarantine.parquet`, or below a folder of that name one file for
    each partition; on a grid one folder for each dimension, in the order of the dimensions' names, as
    Dagster's own file IO managers lay them out (1.13).

    Raises:
        QuarantineDirError: A part of the key or the partition would leave the directory.
    """
    parts = [*_names.quarantine_key(asset_key).path]
    if isinstance(partition_key, dg.MultiPartitionKey):
        parts += [key for _, key in sorted(partition_key.keys_by_dimension.items())]
    elif partition_key is not None:
        parts.append(partition_key)
    for part in parts:
        path = PurePosixPath(part)
        if not path.parts or path.is_absolute() or ".." in path.parts:
            raise QuarantineDirError(
                asset_key.to_user_string(), f"`{part}` cannot be part of a path below the directory"
            )
    *folders, name = parts
    return directory.joinpath(*folders, f"{name}.parquet")


@dataclass(frozen=True)
class FileWriter:
    """Writes error rows to a Parquet file, in place of one that is there."""

    asset_key: dg.AssetKey
    path: UPath

    def __call__(self, frame: pl.DataFrame | pl.LazyFrame, /) -> str:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(frame.lazy().collect(engine="streaming"), self.path)
        except OSError as error:
            raise QuarantineDirError(
                self.asset_key.to_user_string(),
                f"`{self.path}` cannot be written ({error.strerror})",
            ) from error
        return str(self.path)

    def clear(self, no_rows: pl.DataFrame | pl.LazyFrame, /) -> None:
        """Write a file without rows in place of one that is there."""
        if self.path.exists():
            self(no_rows)


def file_writer(
    asset_key: dg.AssetKey, directory: UPath, partition_key: str | None = None
) -> FileWriter:
    """The writer of a Parquet file at `quarantine_path`."""
    return FileWriter(asset_key, quarantine_path(asset_key, directory, partition_key))


def _write_whole(frame: pl.DataFrame, path: UPath) -> None:
    """Write a file so that an older one stays as it was until this one is complete."""
    if path.protocol not in ("", "file", "local"):
        # An object store shows an object when it is complete.
        with path.open("wb") as file:
            frame.write_parquet(file)
        return
    whole = Path(path.path)
    unfinished = whole.with_name(f".{secrets.token_hex(8)}.unfinished")
    file = unfinished.open("xb")  # A new file: it follows no link that someone else put there.
    try:
        with file:
            frame.write_parquet(file)
        unfinished.replace(whole)
    finally:
        unfinished.unlink(missing_ok=True)


@dataclass(frozen=True)
class DelegatingWriter:
    """Writes error rows through the IO manager that an asset of the running step is bound to."""

    context: dg.AssetExecutionContext
    asset_key: dg.AssetKey
    key: dg.AssetKey

    def __call__(self, frame: Any, /) -> str:
        asset, key = self.asset_key.to_user_string(), self.key.to_user_string()
        stored = stored_output(self.context, self.asset_key, self.key)
        if stored is not None and stored.columns:
            found = frame.collect_schema().names()
            if set(found) != set(stored.columns):
                raise QuarantineColumnsError(asset, key, found=found, stored=stored.columns)
            # A database takes the values by position.
            frame = frame.select(stored.columns)
        metadata = write_through_bound_manager(self.context, self.asset_key, self.key, frame)
        partition = ""
        if self.context.has_partition_key and is_partitioned(self.context, self.asset_key):
            partition = f" (partition {self.context.partition_key})"
        path = metadata.get("path")
        where = f" at {path.value}" if path is not None else ""
        return f"{key}{partition}{where}"

    def clear(self, no_rows: Any, /) -> None:
        """Write no rows in place of those an earlier run stored, where there are any."""
        stored = stored_output(self.context, self.asset_key, self.key)
        if stored is None or not stored.has_rows:
            return
        if stored.columns:
            # An older handler inserts no rows too, which takes the table's own columns (0.28).
            dtypes = no_rows.collect_schema()
            no_rows = pl.DataFrame(
                schema={name: dtypes.get(name, pl.String()) for name in stored.columns}
            )
        write_through_bound_manager(self.context, self.asset_key, self.key, no_rows)


def delegating_writer(
    context: dg.AssetExecutionContext, asset: CoercibleToAssetKey | None = None
) -> QuarantineWriter:
    """Write error rows through the IO manager that the running asset is bound to.

    They go under the asset's key with `_quarantine` appended to its last part, with the same
    partition, definition metadata and resource config. No event is recorded. Needs a run: the context
    of a direct invocation has no IO manager.

    Args:
        context: The context of the step that computes the asset.
        asset: The key of the asset, in a step that computes several. `None` means the only one.

    Returns:
        A function that takes the error rows and returns where they are, in words. On a clean run
        `process` has it take away what an earlier run stored.

    Raises:
        QuarantineKeyCollisionError: Another asset of the code location can be materialized under
            that key; raised here, before anything is written.

    Example:
        ```python
        import dagster as dg

        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema, invalid_orders


        @dg.asset(
            check_specs=dd.wiring.check_specs(OrdersSchema, asset="orders"), output_required=False
        )
        def orders(context: dg.AssetExecutionContext):
            writer = dd.wiring.delegating_writer(context)
            yield from dd.wiring.process(
                OrdersSchema, invalid_orders(), asset="orders", quarantine_writer=writer
            )


        result = dg.materialize([orders], resources={"io_manager": dg.mem_io_manager})
        print(result.output_for_node("orders").height)
        #> 4
        ```
    """
    asset_key = context.asset_key if asset is None else dg.AssetKey.from_coercible(asset)
    key = _names.quarantine_key(asset_key)
    if key in materializable_keys(context):
        raise QuarantineKeyCollisionError(asset_key.to_user_string(), key.to_user_string())
    return DelegatingWriter(context, asset_key, key)
