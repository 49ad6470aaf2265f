"""Declare several tables that belong together: the decorator `dd.collection_asset`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypedDict, Unpack

import dagster as dg
import dataframely as dy

from dagster_dataframely._assets.arguments import HIDDEN, one_switch, required_resources
from dagster_dataframely._assets.dagster_types import typed_ins
from dagster_dataframely._assets.members import build_out, declare_member
from dagster_dataframely._checks.specs import build_check_specs
from dagster_dataframely._run.compute import Function, Prepare, TurnIntoEvents, build_compute
from dagster_dataframely._run.context import prepare_members
from dagster_dataframely._run.events import AssetYield
from dagster_dataframely._run.exits import take_exit
from dagster_dataframely._run.return_value import unpack_members
from dagster_dataframely._schema.collection import (
    CollectionRules,
    read_members,
    reject_unknown_members,
)
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.read import reject_unknown_columns
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._settings import SETTINGS, SettingArguments, Settings, reject_unknown

DECIDED: Mapping[str, str] = {
    "can_subset": "its members are written together or not at all.",
    "check_specs": "the checks follow from the collection. Put others in a `@dg.asset_check`.",
    "internal_asset_deps": "no member is made of another one.",
    "specs": "the collection says which assets there are. Describe them in `outs`.",
}


class DagsterArguments(TypedDict, total=False):
    """What `dg.multi_asset` takes beside the arguments in `DECIDED`, and two for all members."""

    name: str | None
    key_prefix: str | Sequence[str] | None
    outs: Mapping[str, dg.AssetOut] | None
    ins: Mapping[str, dg.AssetIn] | None
    deps: Any
    description: str | None
    config_schema: Any
    required_resource_keys: AbstractSet[str] | None
    resource_defs: Mapping[str, object] | None
    hooks: AbstractSet[dg.HookDefinition] | None
    io_manager_key: str | None
    partitions_def: dg.PartitionsDefinition[Any] | None
    op_tags: Mapping[str, Any] | None
    group_name: str | None
    backfill_policy: dg.BackfillPolicy | None
    retry_policy: dg.RetryPolicy | None
    code_version: str | None
    pool: str | None


class CollectionArguments(SettingArguments, DagsterArguments, total=False):
    """Everything the decorator takes beside the collection, the policy and the severities."""


def collection_asset(
    collection: type[dy.Collection],
    /,
    *,
    quarantine: bool | None = None,
    severities: Mapping[str, Severity | Mapping[str, Severity]] | None = None,
    **arguments: Unpack[CollectionArguments],
) -> Callable[[Function], dg.AssetsDefinition]:
    """Assets whose tables together always satisfy a Dataframely collection.

    Each member of the collection becomes an asset with its own table, checks and quarantine, as
    `dd.asset` would make it, and with a check for each filter that applies to it, `dy_filter__<name>`.
    All are written in one step, by one function. Each member has the seven exits of `dd.asset`; where
    one of them must not be written, none is.

    A filter looks at the rows that fail no error rule. A row that it takes away is an error row: it
    aborts the run, or goes to the quarantine, where the filter has a column like a rule, `unknown` for
    the rows it did not look at. Rules over several rows and filters are evaluated again on what is
    left until nothing more fails, so what is written satisfies every error rule and filter. Filters
    that warn look at what is written. A member with `propagate_row_failures` gives the others a filter
    more, `<member>|failure_propagation`.

    The function returns a mapping of each member to what a `dd.asset` may return for it, an instance
    of the collection, or `None`, which skips all members. An optional member that is not there, or is
    `None`, is skipped: its table stays as it is, and its checks pass. A member that the collection
    annotates as a `dy.LazyFrame` is handed to its IO manager as a lazy frame, where that takes one.

    Args:
        collection: The collection class.
        quarantine: Set error rows of each member aside, through the IO manager its asset is bound to,
            under its key with `_quarantine` appended. `None` means no: such rows abort the run.
        severities: `"error"` or `"warn"` by filter; by member, a mapping by rule, over what its schema
            says.
        **arguments: The settings, as for `dd.asset`, for every member; `key_prefix` and
            `io_manager_key`, for every member; `outs`, a `dg.AssetOut` by member, for one of them; then
            everything `@dg.multi_asset` takes but `can_subset`, `check_specs`, `internal_asset_deps` and
            `specs`.

    Returns:
        A decorator that gives a `dg.AssetsDefinition` of an asset for each member, whose key is the
        member's name unless its `dg.AssetOut` has another.

    Raises:
        InvalidCollectionError: `collection` is no collection class.
        InvalidArgumentError: An argument that the decorator decides itself, or `outs` or `severities`
            that do not fit the collection.

    Example:
        ```python
        import dagster as dg
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Order(dy.Schema):
            order_id = dy.Int64(primary_key=True)


        class Line(dy.Schema):
            order_id = dy.Int64(primary_key=True)
            line = dy.Int64(primary_key=True)
            amount = dy.Float64(min=0.0)


        class Shop(dy.Collection):
            orders: dy.DataFrame[Order]
            lines: dy.DataFrame[Line]

            @dy.filter()
            def has_lines(self) -> pl.LazyFrame:
                return self.orders.lazy().join(self.lines.lazy(), on="order_id", how="semi")


        @dd.collection_asset(Shop, quarantine=True)
        def shop():
            return {
                "orders": pl.DataFrame({"order_id": [1, 2]}),
                "lines": pl.DataFrame(
                    {"order_id": [1, 2], "line": [1, 1], "amount": [9.5, -1.0]}
                ),
            }


        result = dg.materialize([shop], resources={"io_manager": dg.mem_io_manager})
        print(result.output_for_node("shop", "orders").to_dicts())
        #> [{'order_id': 1}]
        ```
    """
    known = CollectionArguments.__optional_keys__ | HIDDEN
    unknown = {name: value for name, value in arguments.items() if name not in known}
    reject_unknown("dd.collection_asset", unknown, known, DECIDED)
    has_quarantine = one_switch(quarantine)
    settings = Settings.resolve(arguments)
    rules, schemas = read_members(collection, severities or {}, settings.redact)
    columns = [name for schema in schemas.values() for name in schema.columns]
    reject_unknown_columns(arguments, rules.name, columns)
    outs = arguments.get("outs") or {}
    reject_unknown_members("outs", rules, outs)
    members = {
        name: declare_member(
            rules, name, schema, outs.get(name, dg.AssetOut()), arguments, settings
        )
        for name, schema in schemas.items()
    }
    partitions_def = arguments.get("partitions_def")
    for_members = {"code_version", "io_manager_key", "key_prefix", "outs"}
    given: dict[str, Any] = {
        name: value
        for name, value in arguments.items()
        if name not in for_members and name not in SETTINGS
    }

    def decorate(function: Function) -> dg.AssetsDefinition:
        name = arguments.get("name") or function.__name__
        declarations = {member: declared.declaration for member, declared in members.items()}
        prepare = _prepare(name, rules, declarations, partitions_def, quarantine=has_quarantine)
        redact = frozenset().union(*(schema.redacted for schema in schemas.values()))
        compute = build_compute(function, prepare, needs_context=has_quarantine, redact=redact)
        definition: dg.AssetsDefinition = dg.multi_asset(
            **{
                **given,
                "name": name,
                "outs": {
                    member: build_out(rules, member, declared, quarantine=has_quarantine)
                    for member, declared in members.items()
                },
                "ins": typed_ins(function, given.get("ins"), settings.redact),
                "required_resource_keys": required_resources(
                    given.get("required_resource_keys"), settings, quarantine=has_quarantine
                ),
                "check_specs": [
                    spec
                    for declared in members.values()
                    for spec in build_check_specs(declared.declaration, partitions_def)
                ],
            }
        )(compute)
        return definition

    return decorate


def _prepare(
    name: str,
    rules: CollectionRules,
    declarations: Mapping[str, Declaration],
    partitions_def: dg.PartitionsDefinition[Any] | None,
    *,
    quarantine: bool,
) -> Prepare:
    def prepare(step: dg.AssetExecutionContext | None, context: Any) -> TurnIntoEvents:
        members = prepare_members(
            declarations, partitions_def, step, context, quarantine=quarantine
        )
        assets = {output: member.declaration.asset_name for output, member in members.items()}

        def take_members_exit(returned: object) -> Iterator[AssetYield]:
            return take_exit(members, unpack_members(name, rules, assets, returned), rules)

        return take_members_exit

    return prepare
