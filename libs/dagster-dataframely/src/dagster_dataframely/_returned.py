"""What a decorated function returned, sorted into frames and what belongs to them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import dagster as dg
import polars as pl

from dagster_dataframely.errors import ReturnValueError, type_name


class Returned(NamedTuple):
    """What the decorated function returned, unpacked."""

    frame: pl.DataFrame | pl.LazyFrame
    metadata: Mapping[str, Any] = {}
    tags: Mapping[str, str] | None = None
    data_version: dg.DataVersion | None = None


def unpack(asset: str, returned: object) -> Returned | None:
    """Sort what was returned into a frame with what belongs to it, or `None` for a skip."""
    if returned is None:
        return None
    if isinstance(returned, (pl.DataFrame, pl.LazyFrame)):
        return Returned(returned)
    if not isinstance(returned, dg.MaterializeResult):
        raise ReturnValueError(asset, f"a `{type_name(returned)}`", _conversion(returned))
    if returned.asset_key is not None or returned.check_results:
        argument = "asset_key" if returned.asset_key is not None else "check_results"
        raise ReturnValueError(
            asset, f"a `MaterializeResult` with `{argument}`", f"Leave `{argument}` out."
        )
    if not isinstance(returned.value, (pl.DataFrame, pl.LazyFrame)):
        found = f"a `MaterializeResult` whose `value` is a `{type_name(returned.value)}`"
        raise ReturnValueError(asset, found, _conversion(returned.value))
    return Returned(returned.value, returned.metadata or {}, returned.tags, returned.data_version)


def _conversion(value: object) -> str:
    """What to write instead, for the values people return by habit."""
    return {
        "pandas.DataFrame": "Return `pl.from_pandas(frame)`.",
        "pyarrow.Table": "Return `pl.from_arrow(table)`.",
        "dagster.Output": "Return its value.",
        "NoneType": "To skip, return `None` itself.",
        "generator": "Return the frame; do not yield it.",
    }.get(type_name(value), "")
