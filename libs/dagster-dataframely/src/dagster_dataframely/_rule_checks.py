"""The rules of a schema as checks of an asset that is made elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any, Unpack

import dagster as dg
import dataframely as dy

from dagster_dataframely import _names
from dagster_dataframely._checks import build_check_specs
from dagster_dataframely._declaration import Declaration, Surroundings
from dagster_dataframely._judging import check_columns, column_schema_error, verdict_of
from dagster_dataframely._reporting import own_severity
from dagster_dataframely._schemas import read_declared
from dagster_dataframely._settings import SettingArguments
from dagster_dataframely._severities import Severity
from dagster_dataframely._stored import (
    CheckableAsset,
    CheckArguments,
    CheckYield,
    Frame,
    cast_stored,
    describe_stored,
    read_stored,
    report,
    selected_checks,
)
from dagster_dataframely._upstream import disable_dagster_warnings


class RuleCheckArguments(SettingArguments, CheckArguments, total=False):
    """What `build_rule_checks` takes beside the arguments in its signature."""


def build_rule_checks(
    schema: type[dy.Schema],
    *,
    asset: CheckableAsset,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    severities: Mapping[str, Severity] | None = None,
    cast: bool = False,
    **arguments: Unpack[RuleCheckArguments],
) -> dg.AssetChecksDefinition:
    """The checks of a schema for a table that something else writes: dbt, dlt, a plain asset.

    At definition the asset gets the checks that `dd.asset` would give it. In a run they read the table
    back through the IO manager the asset is bound to, lazily unless that is a database's, and report;
    nothing is written, and a failing rule keeps no row out of anything: each rule is evaluated on all
    rows. Any of the checks can be run without the others; only the columns that they name are read,
    and those of the primary key.

    Of a partitioned asset a run with a partition checks that partition. A run without one checks each
    partition that is materialized, with an evaluation for each, and one for all of them together that
    counts the partitions (`dy_partitions`, `dy_failed_partitions`).

    Args:
        schema: The schema class.
        asset: The asset's definition, its `dg.AssetSpec`, or its key. The checks of a `dd.asset` are
            already under its key, so those that read its table again are named `dy_stored__...`; that
            takes the definition.
        partitions_def: The asset's partitions, where `asset` is a key. `None` means unpartitioned.
        severities: `"error"` or `"warn"` by rule name, over what the schema says.
        cast: Cast the table with `Schema.cast` first, where its columns have other dtypes that can be
            cast, as a database's have; a value that cannot fails the run. Columns that the schema does
            not declare are then left out without a word.
        **arguments: The settings, as for `dd.asset`, then `name` (of the op), `automation_condition`,
            `op_tags`, `pool` and `retry_policy`, as for Dagster's own checks.

    Returns:
        One `dg.multi_asset_check` that can be subset.

    Raises:
        InvalidArgumentError: A definition of several assets, or `partitions_def` beside a definition
            or spec.

    Example:
        ```python
        import dagster as dg
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)
            amount = dy.Float64(min=0.0)


        @dg.asset
        def orders() -> pl.DataFrame:
            return pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


        checks = dd.build_rule_checks(Orders, asset=orders)
        result = dg.materialize([orders, checks], resources={"io_manager": dg.mem_io_manager})
        print([c.check_name for c in result.get_asset_check_evaluations() if not c.passed])
        #> ['dy_rule__amount__min']
        ```
    """
    stored = describe_stored(asset, partitions_def)
    rules, settings = read_declared(schema, severities, arguments)
    declared = Declaration(stored.key, rules, settings)
    specs = build_check_specs(
        rules, declared.groups, stored.key, stored.partitions_def, declared.settings
    )
    taken = any(spec.name in stored.check_names for spec in specs)
    rename: Callable[[str], str] = _names.stored_check_name if taken else str

    @dg.multi_asset_check(
        name=arguments.get("name") or stored.key.to_python_identifier("rule_checks"),
        specs=[_finish(spec, rename, arguments.get("automation_condition")) for spec in specs],
        can_subset=True,
        op_tags=arguments.get("op_tags"),
        pool=arguments.get("pool"),
        retry_policy=arguments.get("retry_policy"),
    )
    def rule_checks(context: dg.AssetCheckExecutionContext) -> Iterator[CheckYield]:
        # Dagster can give checks another key after they are made (`load_asset_checks_from_modules`).
        key = context.check_specs[0].asset_key
        checks = selected_checks(context)
        wanted = {spec.name for spec in specs if dg.AssetCheckKey(key, rename(spec.name)) in checks}

        def evaluate(partition_key: str | None, partitions: int) -> Iterator[dg.AssetCheckResult]:
            declaration = replace(declared, asset_key=key, settings=settings.shared(partitions))
            frame = read_stored(context, key, partition_key)
            frame = cast_stored(frame, rules) if cast else frame
            surroundings = Surroundings(log=context.log.info)
            for result in _evaluate_some(declaration, frame, wanted, surroundings):
                yield result._replace(check_name=rename(result.check_name or ""))

        yield from report(context, checks, evaluate)

    return rule_checks


def _finish(
    spec: dg.AssetCheckSpec,
    rename: Callable[[str], str],
    condition: dg.AutomationCondition[Any] | None,
) -> dg.AssetCheckSpec:
    # Dagster 1.13 warns that `partitions_def` on a check spec is in preview.
    with disable_dagster_warnings():
        return spec._replace(name=rename(spec.name), automation_condition=condition)


def _evaluate_some(
    declaration: Declaration, frame: Frame, wanted: Set[str], surroundings: Surroundings
) -> Iterator[dg.AssetCheckResult]:
    """The results of the wanted checks, reading the columns that these name."""
    if _names.COLUMNS_CHECK in wanted:
        columns_check = check_columns(declaration, frame)
        yield columns_check
        if not columns_check.passed:
            raise column_schema_error(declaration, frame, stored=True)
    groups = [group for group in declaration.groups if group.check_name in wanted]
    if not groups:
        return
    rules = declaration.rules.narrowed(rule for group in groups for rule in group.rules)
    some = replace(declaration, rules=rules)
    if not check_columns(some, frame).passed:
        raise column_schema_error(some, frame, stored=True)
    # No row of a stored table is taken away, so a check finds the same whether others are run or not.
    with verdict_of(replace(some, rules=rules.warning()), frame, surroundings) as verdict:
        yield from some.rule_checks(verdict, own_severity)
