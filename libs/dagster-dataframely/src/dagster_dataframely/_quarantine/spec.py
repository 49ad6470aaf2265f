"""Describe the quarantine as an asset of the graph."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import dagster as dg
import dataframely as dy

from dagster_dataframely import _names
from dagster_dataframely._names import INVALID, VALID, CoercibleToAssetKey
from dagster_dataframely._schema.collection import read_members, with_filters
from dagster_dataframely._schema.declaration import read_declarations
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._schema.table_schema import column_tags
from dagster_dataframely._schema.words import describe_dtype
from dagster_dataframely._settings import QuarantineLayout, Settings
from dagster_dataframely._text import printable
from dagster_dataframely.errors import InvalidArgumentError


def build_quarantine_specs(
    collection: type[dy.Collection], asset: dg.AssetsDefinition
) -> list[dg.AssetSpec]:
    """The quarantines of the members of a collection as assets, as `dd.build_quarantine_spec` makes one.

    Args:
        collection: The collection the assets are declared with.
        asset: What `dd.collection_asset` made.

    Returns:
        A spec for each member, in the collection's order.

    Raises:
        InvalidArgumentError: The assets set no error rows aside.

    Example:
        ```python
        import dagster as dg
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Order(dy.Schema):
            order_id = dy.Int64(primary_key=True)


        class Shop(dy.Collection):
            paid: dy.LazyFrame[Order]
            sent: dy.LazyFrame[Order]

            @dy.filter()
            def both(self) -> pl.LazyFrame:
                return self.paid.join(self.sent, on="order_id", how="semi")


        @dd.collection_asset(Shop, quarantine=True)
        def shop():
            orders = pl.DataFrame({"order_id": [1, 2]})
            return {"paid": orders, "sent": orders[1:]}


        specs = dd.build_quarantine_specs(Shop, shop)
        defs = dg.Definitions(assets=[shop, *specs])
        print([spec.key.to_user_string() for spec in specs])
        #> ['paid_quarantine', 'sent_quarantine']
        ```
    """
    redacted = _redacted(asset)
    rules, schemas = read_members(collection, {}, redacted)
    return [
        quarantine_beside(
            with_filters(rules, name, schema),
            asset,
            asset.keys_by_output_name[name],
            QuarantineLayout.COLUMNS,
        )
        for name, schema in schemas.items()
    ]


def build_quarantine_spec(
    schema: type[dy.Schema],
    asset: dg.AssetsDefinition | CoercibleToAssetKey,
    *,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    quarantine_layout: Literal["columns", "list"] | None = None,
) -> dg.AssetSpec:
    """The quarantine of an asset as an asset of its own, for the graph and for downstream assets.

    Runs at definition. The spec only describes: nothing materializes it and no event is recorded for
    it; it depends on the asset, lists the schema's columns without their constraints, then the rule
    columns, and loads through the asset's IO manager.

    Args:
        schema: The schema the asset is declared with.
        asset: The asset's definition, whose partitions, owners, tags, kinds, group, IO manager and
            storage metadata come along, or its key.
        partitions_def: The asset's partitions, where `asset` is a key. `None` means unpartitioned.
        quarantine_layout: The asset's setting of that name, where `asset` is a key. `None` means the
            environment's, or the default.

    Returns:
        A spec under the asset's key with `_quarantine` appended to its last part.

    Raises:
        DagsterInvariantViolationError: `partitions_def` is given beside a definition.
        InvalidArgumentError: The definition sets no error rows aside.
        InvalidSettingError: `quarantine_layout` is neither `"columns"` nor `"list"`.

    Example:
        ```python
        import dagster as dg
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)


        @dd.asset(Orders, quarantine=True)
        def orders() -> pl.DataFrame:
            return pl.DataFrame({"id": [1, 2, 2]})


        defs = dg.Definitions(assets=[orders, dd.build_quarantine_spec(Orders, orders)])
        ```
    """
    layout = Settings.resolve({"quarantine_layout": quarantine_layout}).quarantine_layout
    rules = read_schema(schema)
    if not isinstance(asset, dg.AssetsDefinition):
        return _describe(rules, dg.AssetKey.from_coercible(asset), layout, partitions_def)
    if partitions_def is not None:
        message = "`partitions_def` goes with a key; a definition brings its own partitions."
        raise dg.DagsterInvariantViolationError(message)
    rules = replace(rules, redacted=rules.redacted | _redacted(asset))
    return quarantine_beside(rules, asset, asset.key, layout)


def _redacted(definition: dg.AssetsDefinition) -> frozenset[str]:
    """The columns that a definition redacts; one of this library has to set error rows aside."""
    declared = read_declarations(definition)
    if declared is None:
        return frozenset()
    if not declared.has_quarantine:
        names = ", ".join(f"`{key.to_user_string()}`" for key in sorted(definition.keys))
        reason = f"{names} sets no error row aside. Declare it with `quarantine=True`."
        raise InvalidArgumentError("asset", reason)
    return frozenset().union(*(d.rules.redacted for d in declared.declarations.values()))


def quarantine_beside(
    rules: SchemaRules,
    definition: dg.AssetsDefinition,
    asset_key: dg.AssetKey,
    layout: QuarantineLayout,
) -> dg.AssetSpec:
    """The quarantine of one of the assets of a definition."""
    (asset_spec,) = (spec for spec in definition.specs if spec.key == asset_key)
    return _describe(
        rules,
        asset_key,
        QuarantineLayout(asset_spec.metadata.get(_names.QUARANTINE_LAYOUT, layout)),
        definition.partitions_def,
        metadata={
            **asset_spec.metadata,
            "dagster/io_manager_key": asset_spec.metadata.get(
                _names.QUARANTINE_IO_MANAGER_KEY,
                definition.get_io_manager_key_for_asset_key(asset_key),
            ),
        },
        group_name=asset_spec.group_name,
        owners=asset_spec.owners,
        tags=asset_spec.tags,  # Kinds are among them.
    )


def _describe(
    rules: SchemaRules,
    asset_key: dg.AssetKey,
    layout: QuarantineLayout,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    *,
    metadata: Mapping[str, Any] = MappingProxyType({}),
    **inherited: Any,
) -> dg.AssetSpec:
    return dg.AssetSpec(
        _names.quarantine_key(asset_key),
        deps=[asset_key],
        description=(
            f"Invalid rows from `{printable(asset_key.to_user_string())}`: the columns of schema "
            f"`{rules.name}`, then {_DESCRIPTIONS[layout]}."
        ),
        metadata={
            **metadata,
            _names.COLUMN_SCHEMA: _quarantine_table_schema(rules, layout),
            _names.QUARANTINE_OF: asset_key,
        },
        partitions_def=partitions_def,
        **inherited,
    )


_DESCRIPTIONS = {
    QuarantineLayout.COLUMNS: f"a column for each rule that reads `{VALID}` or `{INVALID}`",
    QuarantineLayout.LIST: "the names of the rules each row fails, the run and the time",
}


def _quarantine_table_schema(rules: SchemaRules, layout: QuarantineLayout) -> dg.TableSchema:
    columns = [
        dg.TableColumn(
            name,
            type=describe_dtype(column),
            description=column.description,
            tags={
                **column_tags(column.metadata),
                **({_names.REDACTED: "true"} if name in rules.redacted else {}),
            },
        )
        for name, column in rules.columns.items()
    ]
    if layout is QuarantineLayout.COLUMNS:
        return dg.TableSchema(
            [
                *columns,
                *(
                    dg.TableColumn(
                        rule.check_name,
                        type="String",
                        description=rule.description,
                        tags={_names.RULE: rule.name, _names.SEVERITY: rule.severity},
                    )
                    for rule in rules.rules
                ),
            ]
        )
    return dg.TableSchema(
        [
            *columns,
            dg.TableColumn(_names.FAILED_RULES, "List(String)", "The rules that the row fails."),
            dg.TableColumn(_names.RUN_ID, "String", "The run that set the row aside."),
            dg.TableColumn(_names.WRITTEN_AT, "Datetime", "When it did, in UTC."),
        ]
    )
