"""Where error rows go: the frame, the key, the path, the writers, and the spec that shows them."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import dagster as dg
import dataframely as dy
import polars as pl
from upath import UPath

from dagster_dataframely import _names
from dagster_dataframely._columns import column_tags
from dagster_dataframely._constraints import describe_dtype
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._rules import Rule, SchemaRules, read_schema
from dagster_dataframely._settings import quarantine_dir
from dagster_dataframely._upstream import materializable_keys, write_through_bound_manager
from dagster_dataframely.errors import QuarantineDirError, QuarantineKeyCollisionError

VALID, INVALID, UNKNOWN = "valid", "invalid", "unknown"
"""What a rule column of a quarantine reads."""


class QuarantineWriter(Protocol):
    """Stores the error rows of one run and returns where they are, in words.

    It is handed what the asset's IO manager is: a `pl.LazyFrame` where the output's Dagster type is
    one, else a `pl.DataFrame`.
    """

    def __call__(self, frame: Any, /) -> str: ...


@dataclass(frozen=True)
class DirectCall:
    """A direct invocation by `dd.testing.invoke`."""

    partition_key: str | None
    capture: Callable[[pl.DataFrame], None]
    """Takes the error rows, in place of a directory."""


direct_call: ContextVar[DirectCall | None] = ContextVar("direct_call", default=None)
"""The call that is under way, if it is one of `dd.testing.invoke`."""


def quarantine_frame[Frame: (pl.DataFrame, pl.LazyFrame)](
    error_rows: Frame, rules: SchemaRules
) -> Frame:
    """The schema's columns, then one String column for each rule: `valid`, `invalid` or `unknown`.

    Takes the error rows of a `Verdict`, lazy or not; rows and their order stay.
    """
    return error_rows.select(*rules.column_names, *map(_word, rules.rules))


def _word(rule: Rule) -> pl.Expr:
    """A rule over the whole table says nothing about a row."""
    valid = pl.lit(None, pl.Boolean) if rule.whole_table else pl.col(rule.name)
    word = pl.when(valid).then(pl.lit(VALID)).when(~valid).then(pl.lit(INVALID))
    return word.otherwise(pl.lit(UNKNOWN)).alias(rule.check_name)


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


def file_writer(
    asset_key: dg.AssetKey, directory: UPath, partition_key: str | None = None
) -> QuarantineWriter:
    """Write error rows to a Parquet file at `quarantine_path`, in place of one that is there."""
    path = quarantine_path(asset_key, directory, partition_key)

    def write(frame: pl.DataFrame | pl.LazyFrame, /) -> str:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(frame.lazy().collect(engine="streaming"), path)
        except OSError as error:
            raise QuarantineDirError(
                asset_key.to_user_string(), f"`{path}` cannot be written ({error.strerror})"
            ) from error
        return str(path)

    return write


def _write_whole(frame: pl.DataFrame, path: UPath) -> None:
    """Write a file so that an older one stays as it was until this one is complete."""
    if path.protocol not in ("", "file", "local"):
        # An object store shows an object when it is complete.
        with path.open("wb") as file:
            frame.write_parquet(file)
        return
    whole = Path(path.path)
    unfinished = whole.with_name(f".{whole.name}.unfinished")
    try:
        frame.write_parquet(unfinished)
        unfinished.replace(whole)
    finally:
        unfinished.unlink(missing_ok=True)


def direct_writer(asset_key: dg.AssetKey, partition_key: str | None) -> QuarantineWriter:
    """The writer of a direct invocation; the directory is read when there are rows to write."""

    def write(frame: pl.DataFrame | pl.LazyFrame, /) -> str:
        if (call := direct_call.get()) is not None:
            call.capture(frame.lazy().collect(engine="streaming"))
            return "the result of `dd.testing.invoke`"
        directory = quarantine_dir()
        if directory is None:
            raise QuarantineDirError(
                asset_key.to_user_string(), "no directory is set to write them to"
            )
        return file_writer(asset_key, directory, partition_key)(frame)

    return write


def delegating_writer(context: dg.AssetExecutionContext) -> QuarantineWriter:
    """Write error rows through the IO manager that the running asset is bound to.

    They go under the asset's key with `_quarantine` appended to its last part, with the same
    partition, definition metadata and resource config. No event is recorded. Needs a run: the context
    of a direct invocation has no IO manager.

    Args:
        context: The context of the step that computes the asset.

    Returns:
        A function that takes the error rows and returns where they are, in words.

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
                OrdersSchema, invalid_orders(), valid_key="orders", quarantine_writer=writer
            )


        result = dg.materialize([orders], resources={"io_manager": dg.mem_io_manager})
        print(result.output_for_node("orders").height)
        #> 4
        ```
    """
    key = _names.quarantine_key(context.asset_key)
    if key in materializable_keys(context):
        raise QuarantineKeyCollisionError(context.asset_key.to_user_string(), key.to_user_string())

    def write(frame: pl.DataFrame | pl.LazyFrame, /) -> str:
        metadata = write_through_bound_manager(context, key, frame)
        partition = f" (partition {context.partition_key})" if context.has_partition_key else ""
        path = metadata.get("path")
        where = f" at {path.value}" if path is not None else ""
        return f"{key.to_user_string()}{partition}{where}"

    return write


def build_quarantine_spec(
    schema: type[dy.Schema],
    asset: dg.AssetsDefinition | CoercibleToAssetKey,
    *,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
) -> dg.AssetSpec:
    """The quarantine of an asset as an asset of its own, for the graph and for downstream assets.

    Runs at definition. The spec only describes: nothing materializes it and no event is recorded for
    it; it depends on the asset, lists the schema's columns without their constraints, then the rule
    columns, and loads through the asset's IO manager.

    Args:
        schema: The schema the asset is declared with.
        asset: The asset's definition, whose partitions, group, IO manager and storage metadata come
            along, or its key.
        partitions_def: The asset's partitions, where `asset` is a key. `None` means unpartitioned.

    Returns:
        A spec under the asset's key with `_quarantine` appended to its last part.

    Raises:
        DagsterInvariantViolationError: `partitions_def` is given beside a definition.

    Example:
        ```python
        import dagster as dg
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)


        @dd.asset(Orders, quarantine=True)
        def orders() -> pl.DataFrame:
            return pl.DataFrame({"id": [1, 2, 2]})


        defs = dg.Definitions(assets=[orders, dd.build_quarantine_spec(Orders, orders)])
        ```
    """
    rules = read_schema(schema)
    inherited: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    if isinstance(asset, dg.AssetsDefinition):
        if partitions_def is not None:
            message = "`partitions_def` goes with a key; a definition brings its own partitions."
            raise dg.DagsterInvariantViolationError(message)
        asset_key, partitions_def = asset.key, asset.partitions_def
        (asset_spec,) = asset.specs
        inherited = {"group_name": asset_spec.group_name}
        metadata = {
            **asset_spec.metadata,
            "dagster/io_manager_key": asset.get_io_manager_key_for_asset_key(asset_key),
        }
    else:
        asset_key = dg.AssetKey.from_coercible(asset)
    return dg.AssetSpec(
        _names.quarantine_key(asset_key),
        deps=[asset_key],
        description=(
            f"Invalid rows from `{asset_key.to_user_string()}`: the columns of schema "
            f"`{rules.name}`, then a column for each rule that reads `{VALID}` or `{INVALID}`."
        ),
        metadata={
            **metadata,
            _names.COLUMN_SCHEMA: _quarantine_table_schema(rules),
            _names.QUARANTINE_OF: asset_key,
        },
        partitions_def=partitions_def,
        **inherited,
    )


def _quarantine_table_schema(rules: SchemaRules) -> dg.TableSchema:
    return dg.TableSchema(
        [
            *(
                dg.TableColumn(
                    name,
                    type=describe_dtype(column),
                    description=column.description,
                    tags=column_tags(column.metadata),
                )
                for name, column in rules.columns.items()
            ),
            *(
                dg.TableColumn(rule.check_name, type="String", description=rule.description)
                for rule in rules.rules
            ),
        ]
    )
