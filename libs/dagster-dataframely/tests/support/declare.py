"""One way to declare an asset that returns what a test wants."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy

import dagster_dataframely as dd


def declare(
    schema: type[dy.Schema] | type[dy.Collection], returned: object, **arguments: Any
) -> dg.AssetsDefinition:
    """Declare what returns a value, or does what a function does, under the name of its schema."""

    def function() -> object:
        return returned

    function.__name__ = schema.__name__.lower()
    decorator: Callable[..., Any] = (
        dd.collection_asset if issubclass(schema, dy.Collection) else dd.asset
    )
    definition: dg.AssetsDefinition = decorator(schema, **arguments)(
        returned if callable(returned) else function
    )
    return definition
