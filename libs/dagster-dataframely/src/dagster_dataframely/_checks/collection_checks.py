"""Check tables that something else writes together: `dd.build_collection_checks`."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

import dagster as dg
import dataframely as dy
import polars as pl

from dagster_dataframely._checks.evaluate import reject_other_columns
from dagster_dataframely._checks.partitions import (
    CheckYield,
    key_of,
    materialized_partitions,
    report_partitions,
    selected_checks,
)
from dagster_dataframely._checks.results import rule_check_results
from dagster_dataframely._checks.specs import build_filter_specs
from dagster_dataframely._checks.stored_asset import (
    CheckableAsset,
    CheckArguments,
    StoredAsset,
    describe_stored,
    read_stored,
)
from dagster_dataframely._schema.cast import cast_stored
from dagster_dataframely._schema.collection import CollectionRules, read_collection
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.read import read_schema, reject_unknown_columns
from dagster_dataframely._schema.rules import Rule
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._settings import Settings, reject_unknown
from dagster_dataframely._upstream.steps import (
    current_keys,
    evaluation_of_partition,
    latest_materialization,
    partitions_of_asset,
)
from dagster_dataframely._validation.filters import evaluate_filters
from dagster_dataframely.errors import InvalidArgumentError


class CollectionCheckArguments(CheckArguments, total=False):
    """What `build_collection_checks` takes beside the arguments in its signature."""

    max_failure_samples: int | None
    max_metadata_bytes: int | None
    redact: Collection[str] | None


def build_collection_checks(
    collection: type[dy.Collection],
    *,
    members: Mapping[str, CheckableAsset],
    severity: Severity = "error",
    severities: Mapping[str, Severity] | None = None,
    cast: bool = False,
    blocking: bool = False,
    **arguments: Unpack[CollectionCheckArguments],
) -> dg.AssetChecksDefinition:
    """The filters of a collection as checks of the assets that hold its members.

    At definition each filter becomes a check, `dy_filter__<name>`, of each member it applies to: all
    but those that are ignored in filters. In a run the members are read back through the IO managers
    their assets are bound to, lazily unless that is a database's, and each check counts the rows of its
    member that the filter takes away, by itself. The rules of the members are not looked at, and
    nothing is written. Any of the checks can be run without the others.

    Members may be partitioned, alike, and some not at all. A run with a partition checks the
    partitioned members in that partition; a run without one in each that is materialized, with an
    evaluation for each and one for all of them together. A member without partitions is checked
    against all materialized partitions of the others.

    Args:
        collection: The collection class.
        members: For each member its asset's definition, its `dg.AssetSpec`, or the key of an asset
            without partitions. Optional members may be left out.
        severity: How a failing check is reported: `"error"` or `"warn"`.
        severities: The same by filter name, over `severity`.
        cast: Cast each member with its `Schema.cast` first, where columns have other dtypes that can
            be cast, as a database's have; a value that cannot fails the run.
        blocking: Keep downstream assets of the same run from starting while a filter with severity error
            fails. One that warns never blocks.
        **arguments: The settings `max_failure_samples`, `max_metadata_bytes` and `redact`, which names
            columns of any member, then `name` (of the op), `automation_condition`, `op_tags`, `pool`
            and `retry_policy`, as for Dagster's own checks.

    Returns:
        One `dg.multi_asset_check` that can be subset.

    Raises:
        InvalidCollectionError: `collection` is no collection class.
        InvalidSeverityError: A severity names no filter, or is none.
        InvalidArgumentError: `members` does not fit the collection, they are partitioned in several
            ways, or there is no filter.

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


        class Shop(dy.Collection):
            orders: dy.LazyFrame[Order]
            lines: dy.LazyFrame[Line]

            @dy.filter()
            def has_lines(self) -> pl.LazyFrame:
                "An order has lines, and a line an order."
                return self.orders.join(self.lines, on="order_id", how="semi")


        @dg.asset
        def orders() -> pl.DataFrame:
            return pl.DataFrame({"order_id": [1, 2]})


        @dg.asset
        def lines() -> pl.DataFrame:
            return pl.DataFrame({"order_id": [1, 1], "line": [1, 2]})


        checks = dd.build_collection_checks(Shop, members={"orders": orders, "lines": lines})
        result = dg.materialize(
            [orders, lines, checks], resources={"io_manager": dg.mem_io_manager}
        )
        for check in result.get_asset_check_evaluations():
            print(check.asset_key.path[-1], check.check_name, check.metadata["dy_failed_count"].value)
            #> orders dy_filter__has_lines 1
            #> lines dy_filter__has_lines 0
        ```
    """
    known = CollectionCheckArguments.__optional_keys__
    unknown = {name: value for name, value in arguments.items() if name not in known}
    reject_unknown("dd.build_collection_checks", unknown, known)
    rules = read_collection(collection, severity, severities)
    stored = _describe_members(rules, members)
    settings = Settings.resolve(arguments)
    declarations = {
        name: Declaration(
            asset.key, read_schema(rules.schemas[name], redact=settings.redact), settings
        )
        for name, asset in stored.items()
    }
    columns = {column: None for member in declarations.values() for column in member.rules.columns}
    reject_unknown_columns(arguments, rules.name, columns)

    @dg.multi_asset_check(
        name=arguments.get("name") or f"{rules.name}__collection_checks",
        specs=_build_specs(rules, stored, arguments.get("automation_condition"), blocking=blocking),
        can_subset=True,
        op_tags=arguments.get("op_tags"),
        pool=arguments.get("pool"),
        retry_policy=arguments.get("retry_policy"),
    )
    def collection_checks(context: dg.AssetCheckExecutionContext) -> Iterator[CheckYield]:
        keys = current_keys(collection_checks, context)
        keyed = {
            name: replace(declaration, asset_key=keys[declaration.asset_key])
            for name, declaration in declarations.items()
        }
        yield from _Run(context, rules, keyed, settings, cast=cast).report()

    return collection_checks


def _describe_members(
    rules: CollectionRules, members: Mapping[str, CheckableAsset]
) -> dict[str, StoredAsset]:
    """The members' assets, in the collection's order."""
    if not rules.filters:
        reason = f"collection `{rules.name}` has no filter, so there is nothing to check."
        raise InvalidArgumentError("collection", reason)
    propagating = [
        name for name, info in rules.collection.members().items() if info.propagate_row_failures
    ]
    if propagating:
        reason = (
            f"member `{propagating[0]}` of `{rules.name}` propagates row failures, and these checks "
            "look at no rules of members. Declare the tables with `dd.collection_asset`."
        )
        raise InvalidArgumentError("collection", reason)
    unknown = sorted(members.keys() - rules.schemas.keys())
    missing = sorted(rules.collection.required_members() - members.keys())
    if unknown:
        raise InvalidArgumentError("members", f"`{unknown[0]}` is no member of `{rules.name}`.")
    if missing:
        reason = f"member `{missing[0]}` of `{rules.name}` is not there."
        raise InvalidArgumentError("members", reason)
    stored = {name: describe_stored(members[name]) for name in rules.schemas if name in members}
    partitioned = [asset for asset in stored.values() if asset.partitions_def is not None]
    if any(asset.partitions_def != partitioned[0].partitions_def for asset in partitioned):
        reason = "its members are partitioned in several ways; those with partitions must be alike."
        raise InvalidArgumentError("members", reason)
    return stored


def _build_specs(
    rules: CollectionRules,
    stored: Mapping[str, StoredAsset],
    condition: dg.AutomationCondition[Any] | None,
    *,
    blocking: bool,
) -> list[dg.AssetCheckSpec]:
    """A spec for each filter and each member it applies to, which depends on all members."""
    specs = []
    for name, asset in stored.items():
        others = [dg.AssetDep(other.key) for other in stored.values() if other.key != asset.key]
        filters = rules.filters_of(name)
        specs += build_filter_specs(
            filters, asset.key, asset.partitions_def, others, condition, blocking=blocking
        )
    return specs


@dataclass(frozen=True)
class _Run:
    """One run of the checks of a collection."""

    context: dg.AssetCheckExecutionContext
    rules: CollectionRules
    members: Mapping[str, Declaration]
    settings: Settings
    cast: bool
    whole: dict[str, pl.LazyFrame] = field(default_factory=dict)
    """The members without partitions, which are read once."""

    def report(self) -> Iterator[CheckYield]:
        """The results of the checks that the run asks for."""
        partitioned = {name for name in self.members if self.has_partitions(name)}
        alike = self.wanted(partitioned)
        yield from report_partitions(
            self.context, self.checks(alike), partial(self.evaluate, alike)
        )
        whole = self.wanted(self.members.keys() - partitioned)
        if not partitioned:
            yield from report_partitions(
                self.context, self.checks(whole), partial(self.evaluate, whole)
            )
        elif whole:
            # The run may have a partition, which is not one of these members'.
            for result in self.evaluate(whole, None, 1):
                key = key_of(result).asset_key
                about = latest_materialization(self.context.instance, key, None)
                yield evaluation_of_partition(self.context, result, None, about)

    def wanted(self, members: Set[str]) -> dict[str, list[Rule]]:
        """The filters whose checks the run asks for, by member."""
        selected = set(selected_checks(self.context))
        wanted = {
            name: [
                rule
                for rule in self.rules.filters_of(name)
                if dg.AssetCheckKey(self.members[name].asset_key, rule.check_name) in selected
            ]
            for name in self.members
            if name in members
        }
        return {name: filters for name, filters in wanted.items() if filters}

    def checks(self, wanted: Mapping[str, Sequence[Rule]]) -> list[dg.AssetCheckKey]:
        return [
            dg.AssetCheckKey(self.members[name].asset_key, rule.check_name)
            for name, filters in wanted.items()
            for rule in filters
        ]

    def evaluate(
        self, wanted: Mapping[str, Sequence[Rule]], partition_key: str | None, partitions: int
    ) -> Iterator[dg.AssetCheckResult]:
        """Check results for one of several partitions, or for whole tables."""
        frames = {name: self.read(name, partition_key) for name in self.members}
        sample = self.settings.max_failure_samples
        for name, findings in evaluate_filters(self.rules, frames, wanted, sample).items():
            member = self.members[name]
            rules = replace(member.rules, rules=tuple(wanted[name]))
            settings = self.settings.shared(partitions)
            yield from rule_check_results(replace(member, rules=rules, settings=settings), findings)

    def read(self, name: str, partition_key: str | None) -> pl.LazyFrame:
        """A member in a partition, or all of it; one without partitions is the same in each."""
        if not self.has_partitions(name):
            if name not in self.whole:
                self.whole[name] = self.read_one(name, None)
            return self.whole[name]
        partitions = [partition_key]
        if partition_key is None or not self.context.has_partition_key:
            there = materialized_partitions(self.context, [self.members[name].asset_key])
            # Of an asset that Dagster knows no partition of, any may be there.
            if partition_key is None or (there and partition_key not in there):
                partitions = [partition for partition in there if partition_key is None]
        frames = [self.read_one(name, partition) for partition in partitions]
        return pl.concat([self.rules.schemas[name].create_empty().lazy(), *frames])

    def read_one(self, name: str, partition_key: str | None) -> pl.LazyFrame:
        """One stored table with the columns of the member's schema."""
        member = self.members[name]
        frame = read_stored(self.context, member.asset_key, partition_key)
        frame = cast_stored(frame, member.rules) if self.cast else frame
        reject_other_columns(member, frame, stored=True)
        return frame.lazy().select(member.rules.column_names)

    def has_partitions(self, name: str) -> bool:
        return partitions_of_asset(self.context, self.members[name].asset_key) is not None
