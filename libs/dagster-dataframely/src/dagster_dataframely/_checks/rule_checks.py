"""Check a table that something else writes: `dd.build_rule_checks`."""

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import dagster as dg
import dataframely as dy

from dagster_dataframely import _names
from dagster_dataframely._checks.evaluate import evaluate_stored
from dagster_dataframely._checks.partitions import CheckYield, report_partitions, selected_checks
from dagster_dataframely._checks.results import copy_result
from dagster_dataframely._checks.specs import build_check_specs
from dagster_dataframely._checks.stored_asset import (
    CheckableAsset,
    CheckArguments,
    describe_stored,
    read_stored,
)
from dagster_dataframely._schema.cast import cast_stored
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.read import build_expressions, read_declared
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._settings import SettingArguments, reject_unknown


class RuleCheckArguments(SettingArguments, CheckArguments, total=False):
    """What `build_rule_checks` takes beside the arguments in its signature."""


def build_rule_checks(
    schema: type[dy.Schema],
    *,
    asset: CheckableAsset,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    severities: Mapping[str, Severity] | None = None,
    cast: bool = False,
    blocking: bool = False,
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
        blocking: Keep downstream assets of the same run from starting while a rule with severity error
            fails. A rule that warns never blocks; the check of columns and dtypes always does.
        **arguments: The settings, as for `dd.asset`, then `name`, `automation_condition`, `op_tags`,
            `pool` and `retry_policy`, as for Dagster's own checks. `name` is that of the op and is
            appended to the name of each check, which tells the checks of two schemas apart.

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
    known = RuleCheckArguments.__optional_keys__
    unknown = {name: value for name, value in arguments.items() if name not in known}
    reject_unknown("dd.build_rule_checks", unknown, known)
    stored = describe_stored(asset, partitions_def)
    rules, settings = read_declared(schema, severities, arguments)
    declared = Declaration(stored.key, rules, settings)
    names = {_names.COLUMNS_CHECK, *(group.check_name for group in declared.groups)}
    is_free = stored.check_names.isdisjoint(names)
    name = arguments.get("name")

    def rename(check_name: str) -> str:
        own = check_name if is_free else _names.stored_check_name(check_name)
        return f"{own}__{name}" if name else own

    specs = build_check_specs(
        declared,
        stored.partitions_def,
        rename=rename,
        blocking=blocking,
        automation_condition=arguments.get("automation_condition"),
    )

    @dg.multi_asset_check(
        name=name or stored.key.to_python_identifier("rule_checks"),
        specs=specs,
        can_subset=True,
        op_tags=arguments.get("op_tags"),
        pool=arguments.get("pool"),
        retry_policy=arguments.get("retry_policy"),
    )
    def rule_checks(context: dg.AssetCheckExecutionContext) -> Iterator[CheckYield]:
        # Dagster can give checks another key after they are made (`load_asset_checks_from_modules`).
        key = context.check_specs[0].asset_key
        checks = selected_checks(context)
        wanted = {name for name in names if dg.AssetCheckKey(key, rename(name)) in checks}

        def evaluate(partition_key: str | None, partitions: int) -> Iterator[dg.AssetCheckResult]:
            shared = settings.shared(partitions)
            declaration = Declaration(key, build_expressions(rules), shared)
            frame = read_stored(context, key, partition_key)
            frame = cast_stored(frame, rules) if cast else frame
            for result in evaluate_stored(declaration, frame, wanted, context.log.info):
                yield copy_result(result, check_name=rename(result.check_name or ""))

        yield from report_partitions(context, checks, evaluate)

    return rule_checks
