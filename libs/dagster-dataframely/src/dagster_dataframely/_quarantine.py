"""The quarantine as a frame, and as an asset in the graph."""

import datetime as dt
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import dagster as dg
import dataframely as dy
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._columns import column_tags
from dagster_dataframely._constraints import describe_dtype
from dagster_dataframely._names import INVALID, UNKNOWN, VALID, CoercibleToAssetKey
from dagster_dataframely._rules import Rule, SchemaRules
from dagster_dataframely._schemas import read_schema
from dagster_dataframely._settings import QuarantineLayout, Settings


def quarantine_frame[Frame: (pl.DataFrame, pl.LazyFrame)](
    error_rows: Frame,
    rules: SchemaRules,
    layout: QuarantineLayout = QuarantineLayout.COLUMNS,
    *,
    run_id: str | None = None,
    lists: bool = True,
) -> Frame:
    """The schema's columns, then what the rules say of each row, as the layout has it.

    Takes the error rows of a `Verdict`, lazy or not; rows and their order stay. `lists` says whether
    the storage has lists; where it has none, names are joined to text.
    """
    if layout is QuarantineLayout.COLUMNS:
        return error_rows.select(*rules.column_names, *map(_word, rules.rules))
    failed = pl.concat_list(
        pl.when(~pl.col(rule.name)).then(pl.lit(rule.name)) for rule in rules.row_rules
    ).list.drop_nulls()
    return error_rows.select(
        *rules.column_names,
        (failed if lists else failed.list.join(", ")).alias(_names.FAILED_RULES),
        pl.lit(run_id, pl.String).alias(_names.RUN_ID),
        pl.lit(dt.datetime.now(dt.UTC), pl.Datetime("us", "UTC")).alias(_names.WRITTEN_AT),
    )


def _word(rule: Rule) -> pl.Expr:
    """A rule over the whole table says nothing about a row."""
    valid = pl.lit(None, pl.Boolean) if rule.whole_table else pl.col(rule.name)
    word = pl.when(valid).then(pl.lit(VALID)).when(~valid).then(pl.lit(INVALID))
    return word.otherwise(pl.lit(UNKNOWN)).alias(rule.check_name)


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
        asset: The asset's definition, whose partitions, group, IO manager and storage metadata come
            along, or its key.
        partitions_def: The asset's partitions, where `asset` is a key. `None` means unpartitioned.
        quarantine_layout: The asset's setting of that name, where `asset` is a key. `None` means the
            environment's, or the default.

    Returns:
        A spec under the asset's key with `_quarantine` appended to its last part.

    Raises:
        DagsterInvariantViolationError: `partitions_def` is given beside a definition.
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
    rules = read_schema(schema)
    layout = Settings.resolve({"quarantine_layout": quarantine_layout}).quarantine_layout
    if not isinstance(asset, dg.AssetsDefinition):
        return _describe(rules, dg.AssetKey.from_coercible(asset), layout, partitions_def)
    if partitions_def is not None:
        message = "`partitions_def` goes with a key; a definition brings its own partitions."
        raise dg.DagsterInvariantViolationError(message)
    return quarantine_beside(rules, asset, asset.key, layout)


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
            "dagster/io_manager_key": definition.get_io_manager_key_for_asset_key(asset_key),
        },
        group_name=asset_spec.group_name,
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
            f"Invalid rows from `{asset_key.to_user_string()}`: the columns of schema "
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
            tags=column_tags(column.metadata),
        )
        for name, column in rules.columns.items()
    ]
    if layout is QuarantineLayout.COLUMNS:
        return dg.TableSchema(
            [
                *columns,
                *(
                    dg.TableColumn(rule.check_name, type="String", description=rule.description)
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
