"""Unpack what a decorated function returned."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import dagster as dg
import polars as pl

from dagster_dataframely._schema.collection import CollectionRules
from dagster_dataframely._text import type_name
from dagster_dataframely.errors import ReturnValueError


class Returned(NamedTuple):
    """What the decorated function returned, unpacked."""

    frame: pl.DataFrame | pl.LazyFrame
    metadata: Mapping[str, Any] = {}
    tags: Mapping[str, str] | None = None
    data_version: dg.DataVersion | None = None


def unpack_table(output: str, asset: str, returned: object) -> dict[str, Returned]:
    """Unpack what the function of one table returned, by its output; none for a skip."""
    result = unpack(asset, returned)
    return {} if result is None else {output: result}


def unpack_members(
    name: str, rules: CollectionRules, assets: Mapping[str, str], returned: object
) -> dict[str, Returned]:
    """Unpack the frames by member, without the optional ones that are missing; none for a skip.

    `assets` has the asset of each member, as a user writes its key.
    """
    if returned is None:
        return {}
    if isinstance(returned, rules.collection):
        returned = {member: getattr(returned, member) for member in rules.schemas}
    problem = ""
    if not isinstance(returned, Mapping):
        problem = f"a `{type_name(returned)}`"
    elif unknown := [member for member in returned if member not in rules.schemas]:
        problem = f"`{unknown[0]}`, which is not a member of `{rules.name}`"
    else:
        required = [name for name in rules.schemas if name in rules.collection.required_members()]
        if lacking := [member for member in required if returned.get(member) is None]:
            problem = f"nothing for member `{lacking[0]}`"
    if problem or not isinstance(returned, Mapping):
        allowed = f"a frame for each member, or an instance, of `{rules.name}`"
        raise ReturnValueError(name, problem, "", allowed)
    unpacked = {member: unpack(asset, returned.get(member)) for member, asset in assets.items()}
    return {member: result for member, result in unpacked.items() if result is not None}


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
