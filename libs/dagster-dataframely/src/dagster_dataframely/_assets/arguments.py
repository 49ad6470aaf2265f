"""Work out what the decorators pass on to Dagster: keys, descriptions, metadata and kinds."""

import inspect
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import dataframely as dy

from dagster_dataframely import _names
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.table_schema import table_schema
from dagster_dataframely._settings import QuarantineLayout, Settings
from dagster_dataframely._text import cut
from dagster_dataframely.errors import InvalidArgumentError

HIDDEN = {"auto_materialize_policy", "compute_kind", "legacy_freshness_policy", "non_argument_deps"}
"""What Dagster's decorators take although their signatures do not say so (1.13)."""

POLARS_KIND = "polars"


MAX_KINDS = 10
"""Dagster's own limit (1.13)."""


def one_switch(quarantine: bool | None, filter_: bool | None = None) -> bool:
    """Whether error rows are set aside: two words, either of which says so."""
    for name, value in (("quarantine", quarantine), ("filter", filter_)):
        if value is not None and not isinstance(value, bool):
            raise InvalidArgumentError(
                name, f"it is `True` or `False`, not {cut(repr(value), 40)}."
            )
    if None not in (quarantine, filter_) and quarantine != filter_:
        raise InvalidArgumentError(
            "filter", "it is another word for `quarantine`, and the two differ. Give one of them."
        )
    return bool(quarantine or filter_)


def description_of(schema: type[dy.Schema], function: Callable[..., Any] | None) -> str | None:
    """The schema's docstring, else the function's."""
    # A class does not inherit `__doc__`, so an undocumented schema does not show its base's.
    for owner in (schema, function):
        if owner is not None and owner.__doc__:
            return inspect.cleandoc(owner.__doc__)
    return None


def metadata_of(
    metadata: Mapping[str, Any] | None, declaration: Declaration, *, quarantine: bool
) -> dict[str, Any]:
    """The metadata of the definition, this library's keys included."""
    own: dict[str, Any] = {_names.COLUMN_SCHEMA: table_schema(declaration.rules)}
    settings = declaration.settings
    if quarantine and settings.quarantine_layout is not QuarantineLayout.COLUMNS:
        own[_names.QUARANTINE_LAYOUT] = settings.quarantine_layout.value
    if quarantine and settings.quarantine_io_manager_key is not None:
        own[_names.QUARANTINE_IO_MANAGER_KEY] = settings.quarantine_io_manager_key
    return {**(metadata or {}), **own}


def required_resources(
    given: AbstractSet[str] | None, settings: Settings, *, quarantine: bool
) -> AbstractSet[str] | None:
    """The resources given, and the IO manager of the quarantine."""
    if not quarantine or settings.quarantine_io_manager_key is None:
        return given
    return {*(given or ()), settings.quarantine_io_manager_key}


def kinds_of(kinds: AbstractSet[str] | None) -> set[str]:
    """The kinds given, and `polars` where there is room for it."""
    given: set[str] = set(kinds or ())
    return given if len(given) >= MAX_KINDS else given | {POLARS_KIND}
