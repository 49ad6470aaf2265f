"""Hold what one asset declares."""

from dataclasses import dataclass
from functools import cached_property

import dagster as dg

from dagster_dataframely._schema.granularity import CheckGroup, group_rules
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._settings import Settings


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
