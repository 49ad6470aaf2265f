"""Group rules into checks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from dagster_dataframely import _names
from dagster_dataframely._schema.read import reject_collisions
from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._settings import Granularity, MultiColumnRules, Settings
from dagster_dataframely._text import printable


class CheckGroup(NamedTuple):
    """The rules that one asset check reports on."""

    check_name: str
    original: str
    """The rule, column or schema that the check is named after, spelled as its author did."""
    rules: tuple[Rule, ...]
    collapsed: bool
    """Whether the check stands for several rules, even where there happens to be one."""

    @property
    def description(self) -> str:
        if not self.collapsed:
            return self.rules[0].description
        return f"{printable(self.original)}: {'; '.join(rule.constraint for rule in self.rules)}"


def group_rules(rules: SchemaRules, settings: Settings) -> tuple[CheckGroup, ...]:
    """The checks the rules become, in the schema's order; none for a schema without rules."""
    groups = make_groups(rules, settings)
    reject_collisions(rules.schema, ((group.check_name, group.original) for group in groups))
    return groups


def make_groups(rules: SchemaRules, settings: Settings) -> tuple[CheckGroup, ...]:
    """The groups, without comparing their names; each filter of a collection has its own check."""
    filters = [rule for rule in rules.rules if rule.is_filter]
    if rules.parsed:
        # The check of columns is the one about dtypes.
        rules = replace(rules, rules=rules.declared)
    return (*_groups(rules.without_filters, settings), *map(single_group, filters))


def _groups(rules: SchemaRules, settings: Settings) -> Iterator[CheckGroup]:
    if settings.check_granularity is Granularity.RULE:
        yield from map(single_group, rules.rules)
        return
    if settings.check_granularity is Granularity.SCHEMA:
        if rules.rules:
            yield CheckGroup(_names.RULES_CHECK, rules.name, rules.rules, collapsed=True)
        return
    for column in rules.columns:
        if own := tuple(rule for rule in rules.rules if rule.column == column):
            yield CheckGroup(_names.column_check_name(column), column, own, collapsed=True)
    others = tuple(rule for rule in rules.rules if rule.column is None)
    if settings.multi_column_rules is MultiColumnRules.PER_RULE:
        yield from map(single_group, others)
    elif others:
        yield CheckGroup(_names.RULES_CHECK, rules.name, others, collapsed=True)


def single_group(rule: Rule) -> CheckGroup:
    """A check of one rule."""
    return CheckGroup(rule.check_name, rule.name, (rule,), collapsed=False)
