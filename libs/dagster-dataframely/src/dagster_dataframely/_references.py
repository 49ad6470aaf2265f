"""Python objects named in YAML: `module:Name` or `module.Name`."""

import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

import dagster as dg
import dataframely as dy
import polars as pl

from dagster_dataframely.errors import InvalidReferenceError


@dataclass(frozen=True)
class Kind:
    """What a reference has to name."""

    words: str
    matches: Callable[[object], bool]


def _is_schema(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, dy.Schema) and bool(found.columns())


SCHEMA = Kind("a `dataframely.Schema` class", _is_schema)
ASSET = Kind(
    "an asset definition or spec",
    lambda found: isinstance(found, (dg.AssetsDefinition, dg.AssetSpec)),
)
PARTITIONS = Kind(
    "a partitions definition", lambda found: isinstance(found, dg.PartitionsDefinition)
)


def import_reference(reference: str, kind: Kind) -> object:
    """Import what a reference names.

    Raises:
        InvalidReferenceError: Nothing has that name, its module cannot be imported, or it is
            something else.
    """
    try:
        found: object = pkgutil.resolve_name(reference)
    except (Exception, SystemExit, pl.exceptions.PanicException) as error:
        problem = f"importing it raised {type(error).__name__}: {error}".removesuffix(": ")
        raise InvalidReferenceError(
            reference, kind.words, problem, _known(reference, kind)
        ) from error
    if not kind.matches(found):
        problem = f"it is {describe(found)}"
        raise InvalidReferenceError(reference, kind.words, problem, _known(reference, kind))
    return found


def describe(found: object) -> str:
    """A value in words."""
    if isinstance(found, type):
        return f"the class `{found.__name__}`"
    return f"an object of type `{type(found).__name__}`"


def _known(reference: str, kind: Kind) -> list[str]:
    """What could have been meant, where the module was imported."""
    module = reference.partition(":")[0] if ":" in reference else reference.rpartition(".")[0]
    names = vars(sys.modules[module]) if module in sys.modules else {}
    return [f"{module}:{name}" for name, value in names.items() if kind.matches(value)]
