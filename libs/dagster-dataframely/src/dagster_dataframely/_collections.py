"""Reads a collection once, and finds the rows of its members that its filters take away."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal

import dataframely as dy
import polars as pl

from dagster_dataframely._constraints import describe_function
from dagster_dataframely._rules import Rule
from dagster_dataframely._schemas import reject_reserved_name
from dagster_dataframely._severities import Severity
from dagster_dataframely._upstream import collection_filters
from dagster_dataframely._validation import Findings
from dagster_dataframely.errors import InvalidCollectionError, InvalidSeverityError

Members = Mapping[str, pl.LazyFrame]
"""The members of a collection by name, with the columns of their schemas."""
TakeAway = Callable[[pl.LazyFrame], pl.LazyFrame]
"""Gives the rows of a member that a filter takes away, in their order."""


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


def filters_at(
    rules: CollectionRules, members: Members, filters: Iterable[Rule], error_keys: Members
) -> dict[str, TakeAway]:
    """What each filter takes away where the members are these; a null is in no key.

    `error_keys` has the keys of the error rows of members.
    """
    # The columns are right already: this makes the instance that a filter takes, without validation.
    instance = rules.collection.cast(dict(members))
    found: dict[str, TakeAway] = {}
    for rule in filters:
        if rule.name in rules.logic:
            kept = rules.logic[rule.name](instance).select(rules.key).unique()
            found[rule.name] = partial(_join, keys=kept, on=rules.key, how="anti")
        else:
            lost = error_keys[rules.propagates[rule.name]].unique()
            found[rule.name] = partial(_join, keys=lost, on=rules.key, how="semi")
    return found


def _join(
    rows: pl.LazyFrame, keys: pl.LazyFrame, on: Sequence[str], how: Literal["anti", "semi"]
) -> pl.LazyFrame:
    return rows.join(keys, on=on, how=how, maintain_order="left")


def evaluate_filters(
    rules: CollectionRules, members: Members, wanted: Mapping[str, Sequence[Rule]], sample: int
) -> dict[str, Findings]:
    """What each wanted filter, by itself, takes away from a member.

    `wanted` has filters by member, and `sample` bounds the rows kept as an example for each.
    """
    filters = {rule.name: rule for rule in chain.from_iterable(wanted.values())}
    take_away = filters_at(rules, members, filters.values(), {})
    return {
        member: _findings(
            {rule.name: take_away[rule.name](members[member]) for rule in wanted_rules}, sample
        )
        for member, wanted_rules in wanted.items()
    }


def _findings(plans: Mapping[str, pl.LazyFrame], sample: int) -> Findings:
    # One plan at a time: together, scans of Delta Lake tables get each other's columns (1.44).
    counts = {
        name: plan.select(pl.len()).collect(engine="streaming").item()
        for name, plan in plans.items()
    }
    samples = {
        name: plan.head(sample).collect(engine="streaming")
        for name, plan in plans.items()
        if counts[name]
    }
    return Findings(counts, samples, {})
