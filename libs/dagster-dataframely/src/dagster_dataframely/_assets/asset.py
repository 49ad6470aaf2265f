"""Declare one table: the decorator `dd.asset`."""

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Never

import dagster as dg
import dataframely as dy

from dagster_dataframely._assets.arguments import (
    HIDDEN,
    description_of,
    kinds_of,
    metadata_of,
    one_switch,
    required_resources,
)
from dagster_dataframely._assets.dagster_types import output_type, typed_ins
from dagster_dataframely._checks.specs import build_check_specs
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._run.compute import Function, Prepare, TurnIntoEvents, build_compute
from dagster_dataframely._run.context import prepare_members
from dagster_dataframely._run.exits import take_exit
from dagster_dataframely._run.return_value import unpack_table
from dagster_dataframely._schema.code_version import derive_code_version
from dagster_dataframely._schema.declaration import Declaration, Declared
from dagster_dataframely._schema.read import read_declared
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._settings import SETTINGS, Granularity, MultiColumnRules, reject_unknown

DECIDED: Mapping[str, str] = {
    "check_specs": "the checks follow from the schema. Put others in a `@dg.asset_check`.",
    "output_required": "a run that skips or aborts writes no output.",
    "dagster_type": "the schema decides what a valid table is.",
    "is_virtual": "a virtual asset has no table to validate.",
}
"""Arguments of `dg.asset` that the decorator decides itself, with the reason."""

_OUTPUT = "result"
"""Dagster's name for the only output of `dg.asset` (1.13)."""


def asset(  # noqa: PLR0913 - Every parameter is listed here, for readers and editors.
    schema: type[dy.Schema],
    /,
    *,
    quarantine: bool | None = None,
    filter: bool | None = None,
    severities: Mapping[str, Severity] | None = None,
    check_granularity: Granularity | Literal["rule", "column", "schema"] | None = None,
    multi_column_rules: MultiColumnRules | Literal["schema", "per_rule"] | None = None,
    statistics: bool | None = None,
    max_failure_samples: int | None = None,
    row_sample: int | None = None,
    max_metadata_bytes: int | None = None,
    redact: Collection[str] | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    engine: Literal["auto", "in-memory", "streaming"] | None = None,
    quarantine_layout: Literal["columns", "list"] | None = None,
    quarantine_io_manager_key: str | None = None,
    quarantine_events: bool | None = None,
    unstorable: Literal["refuse", "warn"] | None = None,
    max_error_share: float | None = None,
    name: str | None = None,
    key: CoercibleToAssetKey | None = None,
    key_prefix: str | Sequence[str] | None = None,
    ins: Mapping[str, dg.AssetIn] | None = None,
    deps: Iterable[Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    description: str | None = None,
    config_schema: Any = None,
    required_resource_keys: AbstractSet[str] | None = None,
    resource_defs: Mapping[str, object] | None = None,
    hooks: AbstractSet[dg.HookDefinition] | None = None,
    io_manager_def: object | None = None,
    io_manager_key: str | None = None,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    op_tags: Mapping[str, Any] | None = None,
    group_name: str | None = None,
    automation_condition: dg.AutomationCondition[Any] | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    code_version: str | None = None,
    owners: Sequence[str] | None = None,
    kinds: AbstractSet[str] | None = None,
    pool: str | None = None,
    **unknown: Never,
) -> Callable[[Function], dg.AssetsDefinition]:
    """A Dagster asset whose table always satisfies a Dataframely schema.

    At definition the asset gets the schema's columns, one asset check for each rule and a blocking
    check of columns and dtypes. In a run the function's frame is compared with the schema's columns
    and dtypes, then every rule is evaluated on every row, and what comes of it follows from the
    declaration alone: rows that fail an error rule abort the run and leave the last table in place,
    or, with `quarantine=True`, go to the quarantine while the others are written. Rows keep their
    order. The written table has the schema's columns in the schema's order. Nothing is cast.

    The function is an ordinary asset body: its inputs, `context`, config and resources work as with
    `@dg.asset`. It returns a `pl.DataFrame`, a `pl.LazyFrame`, a `dg.MaterializeResult` whose `value`
    is one of these, or `None`, which skips: nothing is written, every check passes. A function
    annotated to return a `pl.LazyFrame` gives its IO manager a lazy frame, where that takes one.

    Args:
        schema: The schema class.
        quarantine: Set rows that fail an error rule aside, through the IO manager the asset is bound
            to, under its key with `_quarantine` appended. `None` means no: such rows abort the run.
        filter: Another word for `quarantine`.
        severities: `"error"` or `"warn"` by rule name (`amount|min`), over what the schema says.
        check_granularity: One check for each rule (`"rule"`), for each column, or one for the schema.
        multi_column_rules: At granularity `"column"`, whether the rules that no single column owns
            share a check (`"schema"`) or have one each.
        statistics: Whether the materialization has statistics of the rows written.
        max_failure_samples: How many failing rows a check shows; 0 shows none.
        row_sample: How many written rows, and how many error rows, the materialization shows.
        max_metadata_bytes: How many bytes a run may add to the event log for this asset.
        redact: Columns whose values no event shows, next to those marked `metadata={"pii": True}`.
        temp_dir: An existing directory where lazy frames are staged. `None` means the system's.
        engine: Where rules are evaluated: `"auto"` (a DataFrame in memory, a LazyFrame on disk),
            `"in-memory"` or `"streaming"`.
        quarantine_layout: A column for each rule (`"columns"`), or one list of the rules that a row
            fails (`"list"`).
        quarantine_io_manager_key: The resource that stores error rows. `None` means the table's.
        quarantine_events: Whether each write of error rows, and each clearing, is recorded as a
            materialization of the quarantine.
        unstorable: What happens to columns whose dtype the storage does not give back: the run fails
            (`"refuse"`), or its log names them (`"warn"`).
        max_error_share: With a quarantine, the share of error rows, 0 to 1, above which a run aborts.
        name: As all that follow, passed on to `dg.asset`: the last part of the key.
        key: The key, in place of `name` and `key_prefix`.
        key_prefix: The parts of the key before the name.
        ins: Inputs by parameter name.
        deps: Assets that the function does not load.
        metadata: Of the definition.
        tags: Of the definition.
        description: `None` means the schema's docstring, else the function's.
        config_schema: Of the op.
        required_resource_keys: Resources that the function takes from its context.
        resource_defs: Resources for this asset alone.
        hooks: Of the op.
        io_manager_def: The IO manager itself, in place of `io_manager_key`.
        io_manager_key: The resource that stores the table and the quarantine.
        partitions_def: The asset's partitions.
        op_tags: Of the op.
        group_name: The group that the UI shows the asset in.
        automation_condition: When the asset is materialized by itself.
        freshness_policy: When the asset counts as stale.
        backfill_policy: How many partitions a run of a backfill takes.
        retry_policy: For errors of the function; a failed rule is not retried.
        code_version: `None` means one that is derived from the schema.
        owners: Of the definition.
        kinds: `polars` is added where there is room for it.
        pool: Of the op.
        **unknown: Nothing: a mistyped name raises here.

    Returns:
        A decorator that gives a `dg.AssetsDefinition`.

    Raises:
        InvalidSchemaError: `schema` is no schema class.
        CollectionNotSupportedError: `schema` is a collection.
        InvalidArgumentError: An argument that the decorator decides itself (`check_specs`,
            `output_required`, `dagster_type`, `is_virtual`), or `quarantine` and `filter` that differ.
        TypeError: An argument that does not exist; the message has the nearest one.

    Example:
        ```python
        import dagster as dg
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)
            amount = dy.Float64(min=0.0)


        @dd.asset(Orders, quarantine=True)
        def orders() -> pl.DataFrame:
            return pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


        result = dg.materialize([orders], resources={"io_manager": dg.mem_io_manager})
        print(result.output_for_node("orders").to_dicts())
        #> [{'id': 1, 'amount': 9.5}]
        ```
    """
    arguments: dict[str, Any] = locals()  # Each parameter is written once, in the signature.
    if unknown:
        known = {*inspect.signature(asset).parameters, *HIDDEN}
        reject_unknown("dd.asset", unknown, known, DECIDED)
    rules, settings = read_declared(schema, severities, arguments)
    has_quarantine = one_switch(quarantine, filter)
    own = {"schema", "quarantine", "filter", "severities", "unknown", *SETTINGS}
    given = {k: v for k, v in arguments.items() if v is not None and k not in own} | unknown

    def decorate(function: Function) -> dg.AssetsDefinition:
        declaration = Declaration(_asset_key(function, given), rules, settings)
        declared = Declared({_OUTPUT: declaration}, has_quarantine)
        partitions_def = given.get("partitions_def")
        prepare = _prepare(declaration, partitions_def, quarantine=has_quarantine)
        definition: dg.AssetsDefinition = dg.asset(
            **{
                **given,
                "ins": typed_ins(function, given.get("ins"), settings.redact),
                "metadata": metadata_of(
                    given.get("metadata"), declaration, quarantine=has_quarantine
                ),
                "description": given.get("description") or description_of(schema, function),
                "code_version": given.get("code_version") or derive_code_version(rules),
                "kinds": _kinds(given),
                "required_resource_keys": required_resources(
                    given.get("required_resource_keys"), settings, quarantine=has_quarantine
                ),
                "output_required": False,
                "dagster_type": output_type(function),
                "check_specs": build_check_specs(declaration, partitions_def),
            }
        )(build_compute(function, prepare, declared, redact=rules.redacted))
        return definition

    return decorate


def _asset_key(function: Function, given: Mapping[str, Any]) -> dg.AssetKey:
    """The key `dg.asset` is going to give the asset."""
    if given.get("key") is not None:
        return dg.AssetKey.from_coercible(given["key"])
    prefix = given.get("key_prefix") or []
    name = given.get("name") or function.__name__
    return dg.AssetKey([*([prefix] if isinstance(prefix, str) else prefix), name])


def _kinds(given: Mapping[str, Any]) -> AbstractSet[str] | None:
    return given.get("kinds") if "compute_kind" in given else kinds_of(given.get("kinds"))


def _prepare(
    declaration: Declaration,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    *,
    quarantine: bool,
) -> Prepare:
    def prepare(step: dg.AssetExecutionContext | None, context: Any) -> TurnIntoEvents:
        members = prepare_members(
            {_OUTPUT: declaration}, partitions_def, step, context, quarantine=quarantine
        )
        asset = members[_OUTPUT].declaration.asset_name
        return lambda returned: take_exit(members, unpack_table(_OUTPUT, asset, returned))

    return prepare


dy_asset = asset
"""The decorator under a name of its own, for modules that import it bare."""
