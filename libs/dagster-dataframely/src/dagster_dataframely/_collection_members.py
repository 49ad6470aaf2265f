"""What `dd.collection_asset` declares of each member of its collection."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from dagster_dataframely._code_version import derive_code_version
from dagster_dataframely._collections import CollectionRules, describe_plans, read_collection
from dagster_dataframely._declaration import Declaration
from dagster_dataframely._declared import description_of, kinds_of, metadata_of
from dagster_dataframely._rules import SchemaRules
from dagster_dataframely._schemas import read_schema, reject_collisions
from dagster_dataframely._settings import Settings
from dagster_dataframely._severities import Severity
from dagster_dataframely._typed_inputs import lazy_output_type
from dagster_dataframely.errors import InvalidArgumentError


@dataclass(frozen=True)
class DeclaredMember:
    """One member as it is declared."""

    declaration: Declaration
    schema_rules: SchemaRules
    out: dg.AssetOut
    """As given, by the user or for all members."""
    io_manager_key: str | None
    code_version: str | None


def read_members(
    collection: object,
    severities: Mapping[str, Severity | Mapping[str, Severity]],
    redact: Collection[str] = (),
) -> tuple[CollectionRules, dict[str, SchemaRules]]:
    """The collection and the schemas of its members, with their severities."""
    of_filters = {k: v for k, v in severities.items() if not isinstance(v, Mapping)}
    of_members = {k: v for k, v in severities.items() if isinstance(v, Mapping)}
    rules = read_collection(collection, severities=of_filters, propagation=True)
    reject_unknown_members("severities", rules, of_members)
    schemas = {
        name: read_schema(schema, of_members.get(name), redact)
        for name, schema in rules.schemas.items()
    }
    return rules, schemas


def reject_unknown_members(
    argument: str, rules: CollectionRules, members: Mapping[str, object]
) -> None:
    """Refuse an argument that names something which is no member."""
    if unknown := [name for name in members if name not in rules.schemas]:
        raise InvalidArgumentError(argument, f"`{unknown[0]}` is no member of `{rules.name}`.")


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
        schema_rules,
        out,
        out.io_manager_key or arguments.get("io_manager_key"),
        out.code_version or arguments.get("code_version"),
    )


def with_filters(rules: CollectionRules, name: str, schema_rules: SchemaRules) -> SchemaRules:
    """The rules of a member's schema, then the filters that apply to it."""
    all_rules = replace(schema_rules, rules=(*schema_rules.rules, *rules.filters_of(name)))
    reject_collisions(all_rules.schema, ((rule.check_name, rule.name) for rule in all_rules.rules))
    return all_rules


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
