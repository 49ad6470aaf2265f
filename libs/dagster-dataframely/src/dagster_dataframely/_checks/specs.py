"""Build the specs of the checks, which exist before the first run."""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from dagster_dataframely import _names
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.granularity import group_rules, make_groups
from dagster_dataframely._schema.rules import Rule
from dagster_dataframely._settings import Granularity
from dagster_dataframely._upstream.steps import disable_dagster_warnings
from dagster_dataframely.errors import ManyChecksWarning

MANY_CHECKS = 200
"""More than these are warned of: they take a run a second in memory, and six in SQLite."""

_LIBRARY = os.path.dirname(os.path.dirname(__file__))


def build_check_specs(
    declaration: Declaration,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    *,
    rename: Callable[[str], str] = str,
    blocking: bool = False,
    automation_condition: dg.AutomationCondition[Any] | None = None,
) -> list[dg.AssetCheckSpec]:
    """The blocking check of columns and dtypes, then one spec for each group of rules.

    Of a check that blocks, Dagster keeps downstream assets of the run from starting where it fails at
    severity ERROR, so a rule that warns never does.
    Warns where the checks decide what a run costs.
    """
    # `declaration.groups` would be kept with the asset, for garbage collections to look at.
    groups = group_rules(declaration.rules, declaration.settings)
    if (checks := len(groups) + 1) > MANY_CHECKS:
        _warn_of_many_checks(declaration, checks)
    # Dagster 1.13 warns that `partitions_def` on a check spec is in preview.
    with disable_dagster_warnings():
        return [
            dg.AssetCheckSpec(
                rename(_names.COLUMNS_CHECK),
                asset=declaration.asset_key,
                description=(
                    f"The frame has the columns and dtypes of schema `{declaration.rules.name}`."
                ),
                blocking=True,
                partitions_def=partitions_def,
                automation_condition=automation_condition,
            ),
            *(
                dg.AssetCheckSpec(
                    rename(group.check_name),
                    asset=declaration.asset_key,
                    description=group.description,
                    blocking=blocking,
                    partitions_def=partitions_def,
                    automation_condition=automation_condition,
                )
                for group in groups
            ),
        ]


def build_filter_specs(
    filters: Iterable[Rule],
    asset_key: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    additional_deps: Sequence[dg.AssetDep],
    automation_condition: dg.AutomationCondition[Any] | None,
    *,
    blocking: bool,
) -> list[dg.AssetCheckSpec]:
    """A spec for each filter of a collection that applies to a stored member."""
    with disable_dagster_warnings():
        return [
            dg.AssetCheckSpec(
                rule.check_name,
                asset=asset_key,
                description=rule.description,
                blocking=blocking,
                additional_deps=additional_deps,
                partitions_def=partitions_def,
                automation_condition=automation_condition,
            )
            for rule in filters
        ]


def _warn_of_many_checks(declaration: Declaration, checks: int) -> None:
    """Say which granularity makes fewer; the warning points at the user's code."""
    fewer = {}
    for granularity in (Granularity.COLUMN, Granularity.SCHEMA):
        settings = replace(declaration.settings, check_granularity=granularity)
        count = 1 + len(make_groups(declaration.rules, settings))
        if count < checks:
            fewer[granularity.value] = count
    warning = ManyChecksWarning(declaration.asset_name, checks, fewer)
    warnings.warn(warning, skip_file_prefixes=(_LIBRARY,))
