"""Apply a collection's filters to its members."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal

import polars as pl

from dagster_dataframely._schema.collection import CollectionRules
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.rules import Rule
from dagster_dataframely._validation.flags import count_failing_tables, settle, volatile_rules
from dagster_dataframely._validation.verdict import Findings, Rows, Verdict

_INDEX = "dy_index"


def apply_filters(
    rules: CollectionRules,
    declared: Mapping[str, Declaration],
    verdicts: Mapping[str, Verdict[Any]],
) -> dict[str, Verdict[Any]]:
    """Take away the rows that a filter does not keep, until what is left satisfies everything.

    Takes the verdicts of the members' own rules. A filter looks at the rows that have survived these;
    a row that it takes away is an error row, and where that makes a rule over several rows or a filter
    fail for another row, that one is an error row too. Filters that warn look at what survives.
    """
    members = {name: _Member(declared[name], verdict) for name, verdict in verdicts.items()}
    filters = [
        rule
        for rule in rules.filters
        if rule.name in rules.logic or rules.propagates[rule.name] in members
    ]
    errors = [rule for rule in filters if rule.severity == "error"]
    while errors and _look(rules, members, errors):
        for member in members.values():
            member.take_away(errors)
    warnings = [rule for rule in filters if rule.severity == "warn"]
    if warnings:
        _look(rules, members, warnings)
    return {name: member.conclude(rules.filters_of(name)) for name, member in members.items()}


def _look(
    rules: CollectionRules, members: Mapping[str, "_Member"], filters: Sequence[Rule]
) -> bool:
    """Record for the rows that are left whether each filter keeps them; gives whether one does not."""
    left = {name: member.where(member.survives) for name, member in members.items()}
    error_keys = {
        name: members[name].where(~members[name].survives).select(rules.key)
        for name in rules.propagates.values()
        if name in members
    }
    take_away = filters_at(rules, left, filters, error_keys)
    looked_at = [name for name in members if rules.filters_of(name)]
    plans = [
        take_away[rule.name](left[name].with_row_index(_INDEX)).select(_INDEX)
        for name in looked_at
        for rule in filters
    ]
    lost = iter(pl.collect_all(plans, engine="streaming"))
    found = False
    for name in looked_at:
        positions = members[name].survives.arg_true()
        for rule in filters:
            failed = positions.gather(next(lost)[_INDEX])
            members[name].record(rule, positions, failed)
            found = found or failed.len() > 0
    return found


class _Member:
    """One member while rows are taken away from it."""

    def __init__(self, declaration: Declaration, verdict: Verdict[Any]) -> None:
        self.rules = rules = declaration.rules
        self.sample = declaration.settings.max_failure_samples
        self.verdict = verdict
        self.survives = verdict.survives
        self.volatile = volatile_rules(rules, self.where(self.survives).collect_schema())
        self.flags = {rule.name: verdict.flags[rule.name] for rule in self.volatile}
        self.filters: dict[str, pl.Series] = {}
        """Whether a filter keeps a row; null where none looked at it."""

    def where(self, mask: pl.Series) -> pl.LazyFrame:
        """The rows that a mask is true for."""
        rows: pl.DataFrame | pl.LazyFrame = self.verdict.rows.where(mask)
        return rows.lazy()

    def record(self, rule: Rule, positions: pl.Series, failed: pl.Series) -> None:
        """Note that a filter looked at the rows at some positions, and which of them it fails."""
        flag = self.flag_of(rule)
        self.filters[rule.name] = flag.scatter(positions, True).scatter(failed, False)

    def take_away(self, filters: Sequence[Rule]) -> None:
        """Take the rows away that fail one of these filters, then those that fail a rule for it."""
        before = self.survives
        for rule in filters:
            self.survives = self.survives & self.flag_of(rule).fill_null(value=True)
        if self.survives.sum() < before.sum():
            self.flags, self.survives = settle(
                self.verdict.rows, self.flags, self.survives, self.rules, self.volatile
            )

    def flag_of(self, rule: Rule) -> pl.Series:
        """Whether a filter keeps a row; null where it did not look at it."""
        unknown = pl.repeat(None, n=self.survives.len(), dtype=pl.Boolean, eager=True)
        return self.filters.get(rule.name, unknown)

    def conclude(self, filters: Sequence[Rule]) -> Verdict[Any]:
        """The verdict with a flag for each filter too."""
        again = {**self.flags, **{rule.name: self.flag_of(rule) for rule in filters}}
        counts = {name: int((~flag).sum() or 0) for name, flag in again.items()}
        rows: Rows[Any] = self.verdict.rows
        counts |= count_failing_tables(self.where(self.survives), self.rules)
        samples = {
            name: rows.at((~flag).fill_null(value=False).arg_true().head(self.sample).to_list())
            for name, flag in again.items()
            if counts[name]
        }
        return replace(
            self.verdict,
            survives=self.survives,
            flags={**self.verdict.flags, **again},
            error_count=int((~self.survives).sum()),
            counts={**self.verdict.counts, **counts},
            samples={**self.verdict.samples, **samples},
        )


Members = Mapping[str, pl.LazyFrame]
"""The members of a collection by name, with the columns of their schemas."""


TakeAway = Callable[[pl.LazyFrame], pl.LazyFrame]
"""Gives the rows of a member that a filter takes away, in their order."""


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
