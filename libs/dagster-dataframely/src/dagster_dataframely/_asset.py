"""The decorator: arguments in, one `dg.asset` out."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import dagster as dg
import dataframely as dy

from dagster_dataframely._checks import build_check_specs
from dagster_dataframely._code_version import derive_code_version
from dagster_dataframely._compute import (
    Function,
    Prepare,
    TurnIntoEvents,
    build_compute,
    current_keys_by_output,
    partition_of_call,
    surroundings_of_step,
)
from dagster_dataframely._declaration import Declaration, Surroundings
from dagster_dataframely._declared import description_of, kinds_of, metadata_of, one_switch
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._process import process
from dagster_dataframely._schemas import read_declared
from dagster_dataframely._settings import SETTINGS, SettingArguments
from dagster_dataframely._severities import Severity
from dagster_dataframely._typed_inputs import output_type, typed_ins
from dagster_dataframely._writers import DirectWriter
from dagster_dataframely.errors import InvalidArgumentError

REFUSED: Mapping[str, str] = {
    "check_specs": "the checks follow from the schema. Put others in a `@dg.asset_check`.",
    "output_required": "a run that skips or aborts writes no output.",
    "dagster_type": "the schema decides what a valid table is.",
    "is_virtual": "a virtual asset has no table to validate.",
}


class DagsterArguments(TypedDict, total=False):
    """What `dg.asset` takes beside the arguments in `REFUSED` (Dagster 1.13)."""

    name: str | None
    key: CoercibleToAssetKey | None
    key_prefix: str | Sequence[str] | None
    ins: Mapping[str, dg.AssetIn] | None
    deps: Any
    metadata: Mapping[str, Any] | None
    tags: Mapping[str, str] | None
    description: str | None
    config_schema: Any
    required_resource_keys: AbstractSet[str] | None
    resource_defs: Mapping[str, object] | None
    hooks: AbstractSet[dg.HookDefinition] | None
    io_manager_def: object | None
    io_manager_key: str | None
    partitions_def: dg.PartitionsDefinition[Any] | None
    op_tags: Mapping[str, Any] | None
    group_name: str | None
    automation_condition: dg.AutomationCondition[Any] | None
    freshness_policy: dg.FreshnessPolicy | None
    backfill_policy: dg.BackfillPolicy | None
    retry_policy: dg.RetryPolicy | None
    code_version: str | None
    owners: Sequence[str] | None
    kinds: AbstractSet[str] | None
    pool: str | None


class AssetArguments(SettingArguments, DagsterArguments, total=False):
    """Everything the decorator takes beside the schema, the policy and the severities."""


def asset(
    schema: type[dy.Schema],
    /,
    *,
    quarantine: bool | None = None,
    filter: bool | None = None,
    severities: Mapping[str, Severity] | None = None,
    **arguments: Unpack[AssetArguments],
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
        **arguments: The settings (`check_granularity`, `multi_column_rules`, `statistics`,
            `max_failure_samples`, `row_sample`, `max_metadata_bytes`, `redact`, `temp_dir`, `engine`,
            `quarantine_layout`), then everything `@dg.asset` takes but `check_specs`,
            `output_required`, `dagster_type` and
            `is_virtual`.

    Returns:
        A decorator that gives a `dg.AssetsDefinition`.

    Raises:
        InvalidSchemaError: `schema` is no schema class.
        CollectionNotSupportedError: `schema` is a collection.
        InvalidArgumentError: An argument that the decorator decides itself, or `quarantine` and
            `filter` that differ.

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
    _reject_refused(arguments)
    rules, settings = read_declared(schema, severities, arguments)
    has_quarantine = one_switch(quarantine, filter)
    given: dict[str, Any] = {k: v for k, v in arguments.items() if k not in SETTINGS}

    def decorate(function: Function) -> dg.AssetsDefinition:
        declaration = Declaration(_asset_key(function, given), rules, settings)
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
                "output_required": False,
                "dagster_type": output_type(function),
                "check_specs": build_check_specs(
                    rules,
                    declaration.groups,
                    declaration.asset_key,
                    partitions_def,
                    declaration.settings,
                ),
            }
        )(build_compute(function, prepare, needs_context=has_quarantine))
        return definition

    return decorate


def _reject_refused(arguments: Mapping[str, object]) -> None:
    for argument in arguments:
        if argument in REFUSED:
            raise InvalidArgumentError(argument, REFUSED[argument])


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
        (key,) = current_keys_by_output(step).values() or [declaration.asset_key]
        keyed = replace(declaration, asset_key=key)
        if step is None:
            partition_key = partition_of_call(context, partitions_def)
            writer = DirectWriter(key, partition_key) if quarantine else None
            surroundings = Surroundings(writer, partition_key)
        else:
            surroundings = surroundings_of_step(step, key, declaration.rules, quarantine=quarantine)
        return lambda returned: process(keyed, returned, surroundings)

    return prepare


dy_asset = asset
"""The decorator under a name of its own, for modules that import it bare."""
