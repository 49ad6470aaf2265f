"""Choose what an IO manager is handed."""

from collections.abc import Callable

import dagster as dg
import dataframely as dy
import polars as pl

from dagster_dataframely._io_managers.dtypes import reject_unstorable
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._typing import Frame
from dagster_dataframely._upstream.io_managers import (
    bound_manager_kind,
    bound_storage,
    output_is_lazy,
)

HandOver = Callable[[Frame], Frame]


def to_data_frame(frame: Frame) -> pl.DataFrame:
    """The rows in memory."""
    return frame if isinstance(frame, pl.DataFrame) else frame.collect(engine="streaming")


def to_lazy_frame(frame: Frame) -> pl.LazyFrame:
    """A plan over the rows, wherever they are."""
    return frame.lazy()


def to_lazy_frame_in_memory(frame: Frame) -> pl.LazyFrame:
    """A plan over rows in memory, which needs no file."""
    return to_data_frame(frame).lazy()


def choose_hand_over(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> HandOver:
    """What the manager that an asset of the step is bound to takes, and gives back."""
    convert = _conversion(context, asset_key)
    name, storage = asset_key.to_user_string(), bound_storage(context, asset_key)

    def hand_over(frame: Frame) -> Frame:
        reject_unstorable(name, storage, frame.collect_schema())
        return convert(frame)

    return hand_over


def reject_declared(
    context: dg.AssetExecutionContext, asset_key: dg.AssetKey, rules: SchemaRules
) -> None:
    """Raise where a column is declared that the bound manager does not give back."""
    # What a `dy.Any` holds, only a frame says.
    dtypes = {
        name: column.dtype
        for name, column in rules.columns.items()
        if not isinstance(column, dy.Any)
    }
    reject_unstorable(asset_key.to_user_string(), bound_storage(context, asset_key), dtypes)


def _conversion(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> HandOver:
    """The kind of frame the manager takes, given the output's Dagster type.

    dagster-polars chooses how it writes by the type and not by the object (0.27.12). A manager that
    pickles, or keeps, what it gets would outlive the staged rows. A database manager has no handler
    for a lazy frame (0.29.27).
    """
    if not output_is_lazy(context, asset_key):
        return to_data_frame
    match bound_manager_kind(context, asset_key):
        case "database" | "duckdb":
            return to_data_frame
        case "keeps the object":
            return to_lazy_frame_in_memory
        case _:
            return to_lazy_frame


def takes_lists(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> bool:
    """Whether the manager's storage has lists; of the databases, DuckDB has."""
    return bound_manager_kind(context, asset_key) != "database"
