"""One way to declare an asset that returns what a test wants."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


def declare(
    schema: type[dy.Schema] | type[dy.Collection], returned: object, **arguments: Any
) -> dg.AssetsDefinition:
    """Declare an asset that returns a value, or what a function returns; named after its schema."""
    if not {"name", "key"} & arguments.keys():
        arguments["name"] = schema.__name__.lower()

    def function() -> object:
        return returned

    is_collection = issubclass(schema, dy.Collection)
    decorator: Any = dd.collection_asset if is_collection else dd.asset
    definition: dg.AssetsDefinition = decorator(schema, **arguments)(
        returned if callable(returned) else function
    )
    return definition


def annotated(
    annotation: object, returned: pl.DataFrame | pl.LazyFrame | None
) -> Callable[[], Any]:
    """Give a function that returns a value, under this annotation of its return value."""

    def function() -> Any:
        return returned

    function.__annotations__["return"] = annotation
    return function
