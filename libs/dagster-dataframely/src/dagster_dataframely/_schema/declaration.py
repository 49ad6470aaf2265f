"""Hold what one asset declares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dagster as dg

from dagster_dataframely._schema.granularity import CheckGroup, group_rules
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._settings import Settings
from dagster_dataframely._upstream.locations import compute_function

_DECLARED = "dagster_dataframely_declared"


@dataclass(frozen=True)
class Declaration:
    """What one asset declares, fixed when it is defined."""

    asset_key: dg.AssetKey
    rules: SchemaRules
    """Those of the schema, then the filters that apply to a member of a collection."""
    settings: Settings

    @cached_property
    def groups(self) -> tuple[CheckGroup, ...]:
        """The rules as checks."""
        return group_rules(self.rules, self.settings)

    @property
    def asset_name(self) -> str:
        """The key as a user writes it."""
        return self.asset_key.to_user_string()


@dataclass(frozen=True)
class Declared:
    """What the assets of one definition declare, by output."""

    declarations: Mapping[str, Declaration]
    has_quarantine: bool


def declare_in(compute: Callable[..., Any], declared: Declared) -> None:
    """Leave what is declared with the function that Dagster runs, for `read_declarations`."""
    setattr(compute, _DECLARED, declared)


def read_declarations(definition: dg.AssetsDefinition) -> Declared | None:
    """What the assets of a definition declare, under their keys now; `None` of any other definition."""
    declared: Declared | None = getattr(compute_function(definition), _DECLARED, None)
    if declared is None:
        return None
    now = definition.keys_by_output_name
    return replace(
        declared,
        declarations={
            output: replace(declaration, asset_key=now.get(output, declaration.asset_key))
            for output, declaration in declared.declarations.items()
        },
    )
