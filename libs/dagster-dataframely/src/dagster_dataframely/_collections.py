"""Reads a collection once, and finds the rows of its members that its filters take away."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import dataframely as dy
import polars as pl

from dagster_dataframely._constraints import describe_function
from dagster_dataframely._rules import Rule
from dagster_dataframely._severities import Severity
from dagster_dataframely._upstream import collection_filters
from dagster_dataframely._validation import Findings
from dagster_dataframely.errors import InvalidCollectionError, InvalidSeverityError

Members = Mapping[str, pl.LazyFrame]
"""The members of a collection by name, with the columns of their schemas."""


@dataclass(frozen=True)
class CollectionRules:
    """A collection's members and filters with their severities, read once and passed on."""

    collection: type[dy.Collection]
    filters: tuple[Rule, ...]
    logic: Mapping[str, Callable[[dy.Collection], pl.LazyFrame]]
    """The function of each filter: a collection to the rows of the common key that it keeps."""
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

    @property
    def filtered(self) -> list[str]:
        """The members that filters apply to."""
        ignored = self.collection.ignored_members()
        return [name for name in self.schemas if name not in ignored]


def read_collection(
    collection: object, severity: Severity, severities: Mapping[str, Severity]
) -> CollectionRules:
    """Read a collection; a severity that names no filter, or is none, raises here, at definition."""
    if not (
        isinstance(collection, type)
        and issubclass(collection, dy.Collection)
        and collection.members()
    ):
        raise InvalidCollectionError(collection)
    logic = collection_filters(collection)
    chosen: dict[str, Severity] = {**dict.fromkeys(logic, severity), **severities}
    for name, value in chosen.items():
        if name not in logic or value not in ("error", "warn"):
            raise InvalidSeverityError(collection.__name__, name, value, list(logic))
    filters = tuple(
        Rule(
            name=name,
            column=None,
            severity=chosen[name],
            constraint=describe_function(function)
            or f"kept by filter `{name}` of collection `{collection.__name__}`",
            expression=pl.lit(value=True),
            is_filter=True,
        )
        for name, function in logic.items()
    )
    key = tuple(collection.common_primary_key()) if filters else ()
    return CollectionRules(collection, filters, logic, key)


def kept_keys(
    rules: CollectionRules, members: Members, filters: Iterable[Rule]
) -> dict[str, pl.LazyFrame]:
    """For each of these filters the common keys that it keeps, once each."""
    # The columns are right already: this makes the instance that a filter takes, without validation.
    instance = rules.collection.cast(dict(members))
    return {
        rule.name: rules.logic[rule.name](instance).select(rules.key).unique() for rule in filters
    }


def taken_away(rows: pl.LazyFrame, kept: pl.LazyFrame, key: Sequence[str]) -> pl.LazyFrame:
    """The rows of a member whose key is not kept, in their order; a null is in no key."""
    return rows.join(kept, on=key, how="anti", maintain_order="left")


def evaluate_filters(
    rules: CollectionRules, members: Members, wanted: Mapping[str, Sequence[Rule]], sample: int
) -> dict[str, Findings]:
    """What each wanted filter, by itself, takes away from a member.

    `wanted` has filters by member, and `sample` bounds the rows kept as an example for each.
    """
    filters = {rule.name: rule for rule in chain.from_iterable(wanted.values())}
    kept = kept_keys(rules, members, filters.values())
    plans = [
        taken_away(members[member], kept[rule.name], rules.key)
        for member, wanted_rules in wanted.items()
        for rule in wanted_rules
    ]
    both = [*(plan.select(pl.len()) for plan in plans), *(plan.head(sample) for plan in plans)]
    collected = iter(pl.collect_all(both, engine="streaming"))
    counts = {
        member: {rule.name: next(collected).item() for rule in wanted_rules}
        for member, wanted_rules in wanted.items()
    }
    samples = {
        member: {rule.name: next(collected) for rule in wanted_rules}
        for member, wanted_rules in wanted.items()
    }
    return {member: Findings(counts[member], samples[member], {}) for member in wanted}
