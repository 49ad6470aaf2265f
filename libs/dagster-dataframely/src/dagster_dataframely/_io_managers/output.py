"""Choose what an IO manager is handed."""

from collections.abc import Callable, Mapping

import dataframely as dy
import polars as pl

from dagster_dataframely._io_managers.dtypes import find_unstorable
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._settings import Unstorable
from dagster_dataframely._text import count
from dagster_dataframely._typing import Frame, Log
from dagster_dataframely._upstream.io_managers import BoundManager
from dagster_dataframely._upstream.storages import sinks_lazy_frames, storage_of, written_by

HandOver = Callable[[Frame], Frame]


def to_data_frame(frame: Frame) -> pl.DataFrame:
    """The rows in memory."""
    return frame if isinstance(frame, pl.DataFrame) else frame.collect(engine="streaming")


def choose_hand_over(bound: BoundManager, asset: str, unstorable: Unstorable, log: Log) -> HandOver:
    """What a manager takes, and gives back, given the Dagster type of the output.

    dagster-polars chooses how it writes by the type and not by the object (0.27.12). A database manager
    is handed a frame in memory. So is any manager that may keep or pickle what it gets: a plan over
    staged rows would outlive them.
    """

    def hand_over(frame: Frame) -> Frame:
        if unstorable is Unstorable.REFUSE:
            reject_lost(bound, asset, frame.collect_schema())
        if not bound.is_lazy or storage_of(bound) not in ("files", "Delta Lake", "unknown"):
            return to_data_frame(frame)
        if isinstance(frame, pl.DataFrame) or sinks_lazy_frames(bound):
            return frame.lazy()
        rows = to_data_frame(frame)
        log(
            f"{count(rows.height, 'row')}, {count(int(rows.estimated_size()), 'byte')}, are handed over "
            f"in memory: {bound.name} is not known to write a lazy frame out at once."
        )
        return rows.lazy()

    return hand_over


def look_at_declared(bound: BoundManager, declaration: Declaration, warn: Log) -> None:
    """Reject, or warn of, declared columns that the bound manager does not give back."""
    # What a `dy.Any` holds, only a frame says.
    dtypes = {
        name: column.dtype
        for name, column in declaration.rules.columns.items()
        if not isinstance(column, dy.Any)
    }
    if declaration.settings.unstorable is Unstorable.REFUSE:
        reject_lost(bound, declaration.asset_name, dtypes)
    elif error := find_unstorable(declaration.asset_name, written_by(bound), dtypes):
        warn(str(error))


def reject_lost(bound: BoundManager, asset: str, dtypes: Mapping[str, pl.DataType]) -> None:
    """Raise where the bound manager does not give a column back as it was written."""
    if error := find_unstorable(asset, written_by(bound), dtypes):
        raise error


def takes_lists(bound: BoundManager) -> bool:
    """Whether the manager's storage has lists; of the databases, DuckDB has."""
    return storage_of(bound) != "a database"
