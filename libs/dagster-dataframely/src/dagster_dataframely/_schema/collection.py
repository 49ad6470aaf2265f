"""Read a collection once into frozen, checked `CollectionRules`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import dataframely as dy
import polars as pl

from dagster_dataframely._schema.read import read_schema, reject_collisions, reject_reserved_name
from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._schema.words import describe_function
from dagster_dataframely._upstream.dataframely import collection_filters
from dagster_dataframely.errors import (
    InvalidArgumentError,
    InvalidCollectionError,
    InvalidSeverityError,
)


@dataclass(frozen=True)
class CollectionRules:
    """A collection's members and filters with their severities, read once and passed on."""

    collection: type[dy.Collection]
    filters: tuple[Rule, ...]
    logic: Mapping[str, Callable[[dy.Collection], pl.LazyFrame]]
    """The function of a filter: a collection to the rows of the common key that it keeps."""
    propagates: Mapping[str, str]
    """The member whose error rows a filter without a function takes out of the others."""
    key: tuple[str, ...]
    """The common primary key of the members that filters apply to."""

    @property
    def name(self) -> str:
        """The collection's class name."""
        return self.collection.__name__

    @property
    def schemas(self) -> Mapping[str, type[dy.Schema]]:
        """The schema of each member."""
        return self.collection.member_schemas()

    def filters_of(self, member: str) -> tuple[Rule, ...]:
        """The filters that apply to a member; none where it is ignored in filters."""
        return () if member in self.collection.ignored_members() else self.filters


def read_collection(
    collection: object,
    severity: Severity = "error",
    severities: Mapping[str, Severity] | None = None,
    *,
    propagation: bool = False,
) -> CollectionRules:
    """Read a collection; a severity that names no filter, or is none, raises here, at definition.

    With `propagation` each member with `propagate_row_failures` is a filter of its own.
    """
    if not (
        isinstance(collection, type)
        and issubclass(collection, dy.Collection)
        and collection.members()
    ):
        raise InvalidCollectionError(collection)
    logic = collection_filters(collection)
    for name in logic:
        reject_reserved_name(collection, name)
    words = {
        name: describe_function(function)
        or f"kept by filter `{name}` of collection `{collection.__name__}`"
        for name, function in logic.items()
    }
    propagates = {
        f"{name}|failure_propagation": name
        for name, member in collection.members().items()
        if propagation and member.propagate_row_failures and not member.ignored_in_filters
    }
    for name, source in propagates.items():
        words[name] = f"no row of `{source}` with the same key is an error row"
    chosen = {**dict.fromkeys(words, severity), **(severities or {})}
    for name, value in chosen.items():
        if name not in words or value not in ("error", "warn"):
            raise InvalidSeverityError(collection.__name__, name, value, list(words))
    filters = tuple(
        Rule(name, None, chosen[name], constraint, pl.lit(value=True), is_filter=True)
        for name, constraint in words.items()
    )
    key = tuple(collection.common_primary_key()) if filters else ()
    return CollectionRules(collection, filters, logic, propagates, key)


def describe_plans(rules: CollectionRules) -> dict[str, str]:
    """What the functions of the filters do, as Polars plans it where the members have no rows."""
    plans = {}
    for name, function in rules.logic.items():
        try:
            plan = function(rules.collection.create_empty())
            plans[name] = plan.explain(optimized=False)
        except Exception:
            # A function of the author's may raise anything where there are no rows.
            plans[name] = ""
    return plans


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


def with_filters(rules: CollectionRules, name: str, schema_rules: SchemaRules) -> SchemaRules:
    """The rules of a member's schema, then the filters that apply to it."""
    all_rules = replace(schema_rules, rules=(*schema_rules.rules, *rules.filters_of(name)))
    reject_collisions(all_rules.schema, ((rule.check_name, rule.name) for rule in all_rules.rules))
    return all_rules
