"""Write error rows: to a file, or through the IO manager of the running asset."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, runtime_checkable

import dagster as dg
import polars as pl
from upath import UPath

from dagster_dataframely import _names
from dagster_dataframely._io_managers.stored import (
    SharedAddressError,
    StoredTable,
    look_at_quarantine,
)
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._text import cut_start
from dagster_dataframely._upstream.io_managers import bound_manager, quarantine_manager
from dagster_dataframely._upstream.steps import is_partitioned, materializable_keys
from dagster_dataframely._upstream.storages import replaces_tables, storage_of
from dagster_dataframely.errors import (
    QuarantineAddressError,
    QuarantineColumnsError,
    QuarantineDirError,
    QuarantineKeyCollisionError,
    QuarantineReadError,
)

_MAX_ADDRESS = 80
"""Characters of a path in an error."""


class QuarantineWriter(Protocol):
    """Stores the error rows of one run and returns where they are, in words.

    It is handed what the asset's IO manager is: a `pl.LazyFrame` where the output's Dagster type is
    one, else a `pl.DataFrame`.
    """

    def __call__(self, frame: Any, /) -> str: ...


@runtime_checkable
class ClearingWriter(QuarantineWriter, Protocol):
    """A writer that can also take away what an earlier run stored."""

    def clear(self, no_rows: Any, /) -> object:
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
                f"`{cut_start(str(self.path), _MAX_ADDRESS)}` cannot be written ({error.strerror})",
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


class DelegatingWriter:
    """Writes error rows through an IO manager of the running step, the asset's or another one."""

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        asset_key: dg.AssetKey,
        key: dg.AssetKey,
        io_manager_key: str | None,
    ) -> None:
        self.context = context
        self.asset_key = asset_key
        self.key = key
        self.bound = quarantine_manager(context, asset_key, key, io_manager_key)
        self.stored: StoredTable | None = None
        self.logged: Mapping[str, dg.MetadataValue] = {}
        """What the manager said of the last write."""

    def look(self, found: Mapping[str, pl.DataType], *, writes: bool) -> None:
        """Look at what error rows with these columns would replace, before anything is written.

        What cannot be read, such as a file that a killed run left, is replaced by error rows. A run
        without any has to know whether there is something to clear.
        """
        asset, key = self.asset_key.to_user_string(), self.key.to_user_string()
        try:
            self.stored = look_at_quarantine(
                self.bound, bound_manager(self.context, self.asset_key), found
            )
        except SharedAddressError as error:
            raise QuarantineAddressError(asset, key, self.bound.name, str(error)) from None
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if not writes and storage_of(self.bound) != "files":
                raise QuarantineReadError(asset, key, self.bound.name, problem) from None
            self.context.log.warning(f"What is stored as {key} cannot be read: {problem}")
            self.stored = StoredTable("", found, [], "")
        if writes and self.stored is not None and self.stored.differences:
            raise QuarantineColumnsError(asset, key, self.stored.differences)

    def __call__(self, frame: Any, /) -> str:
        if self.stored is not None and not replaces_tables(self.bound):
            # A database takes the values by position.
            frame = frame.select(list(self.stored.dtypes))
        return self.store(frame)

    def clear(self, no_rows: Any, /) -> bool:
        """Write no rows in place of those an earlier run stored; gives whether there were any."""
        if self.stored is None or not self.stored.has_rows:
            return False
        if not replaces_tables(self.bound):
            # The stored columns: other rules may have made them.
            known = no_rows.collect_schema()
            dtypes = {
                name: known.get(name, pl.String()) if isinstance(dtype, str) else dtype
                for name, dtype in self.stored.dtypes.items()
            }
            columns = pl.DataFrame(schema=dtypes)
            no_rows = columns.lazy() if isinstance(no_rows, pl.LazyFrame) else columns
        self.store(no_rows)
        return True

    def store(self, frame: Any) -> str:
        self.logged = self.bound.write(frame)
        partition = ""
        if self.context.has_partition_key and is_partitioned(self.context, self.asset_key):
            partition = f" (partition {self.context.partition_key})"
        path = self.logged.get("path")
        where = f" at {path.value}" if path is not None else ""
        return f"{self.key.to_user_string()}{partition}{where}"


def delegating_writer(
    context: dg.AssetExecutionContext,
    asset: CoercibleToAssetKey | None = None,
    *,
    io_manager_key: str | None = None,
) -> DelegatingWriter:
    """Write error rows through the IO manager that the running asset is bound to, or another one.

    They go under the asset's key with `_quarantine` appended to its last part, with the same
    partition, definition metadata and resource config. No event is recorded. Needs a run: the context
    of a direct invocation has no IO manager.

    Args:
        context: The context of the step that computes the asset.
        asset: The key of the asset, in a step that computes several. `None` means the only one.
        io_manager_key: The resource to write through, which the step has to require. `None` means the
            asset's own.

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
    return DelegatingWriter(context, asset_key, key, io_manager_key)
