"""Declare the members of a collection as assets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_dataframely._assets.arguments import description_of, kinds_of, metadata_of
from dagster_dataframely._assets.dagster_types import lazy_output_type
from dagster_dataframely._schema.code_version import derive_code_version
from dagster_dataframely._schema.collection import CollectionRules, describe_plans, with_filters
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._settings import Settings


@dataclass(frozen=True)
class DeclaredMember:
    """One member as it is declared."""

    declaration: Declaration
    out: dg.AssetOut
    """As given, by the user or for all members."""
    io_manager_key: str | None
    code_version: str | None


def declare_member(
    rules: CollectionRules,
    name: str,
    schema_rules: SchemaRules,
    out: dg.AssetOut,
    arguments: Mapping[str, Any],
    settings: Settings,
) -> DeclaredMember:
    """A member with what `out` says of it, else what the decorator's arguments say of all."""
    prefix = out.key_prefix or arguments.get("key_prefix") or []
    key = out.key or dg.AssetKey([*([prefix] if isinstance(prefix, str) else prefix), name])
    return DeclaredMember(
        Declaration(key, with_filters(rules, name, schema_rules), settings),
        out,
        out.io_manager_key or arguments.get("io_manager_key"),
        out.code_version or arguments.get("code_version"),
    )


def build_out(
    rules: CollectionRules, name: str, declared: DeclaredMember, *, quarantine: bool
) -> dg.AssetOut:
    """A member's `dg.AssetOut` with what follows from the collection."""
    declaration, out = declared.declaration, declared.out
    is_lazy = name in rules.collection.lazy_members()
    return dg.AssetOut(
        key=declaration.asset_key,
        dagster_type=lazy_output_type() if is_lazy else dg.Any,
        is_required=False,
        io_manager_key=declared.io_manager_key,
        description=out.description or description_of(rules.schemas[name], None),
        metadata=metadata_of(out.metadata, declaration, quarantine=quarantine),
        code_version=declared.code_version
        or derive_code_version(declaration.rules, describe_plans(rules)),
        kinds=kinds_of(out.kinds),
        automation_condition=out.automation_condition,
        backfill_policy=out.backfill_policy,
        freshness_policy=out.freshness_policy,
        group_name=out.group_name,
        owners=out.owners,
        tags=out.tags,
    )
