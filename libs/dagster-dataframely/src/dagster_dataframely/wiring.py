"""The parts of `dd.asset`, for assets that are put together by hand.

Three arrangements are meant: a `@dg.asset` that yields from `process`; a plain asset with a
`@dg.multi_asset_check` that reports from `evaluate`; and `schema_metadata` alone.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

import dagster as dg
import dataframely as dy
import polars as pl
from upath import UPath

from dagster_dataframely import _names
from dagster_dataframely._checks.evaluate import evaluate_checks
from dagster_dataframely._checks.specs import build_check_specs
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._quarantine import frame as _frame
from dagster_dataframely._quarantine import writers as _writers
from dagster_dataframely._quarantine.writers import QuarantineWriter, delegating_writer
from dagster_dataframely._run.context import Member, RunContext
from dagster_dataframely._run.events import AssetYield
from dagster_dataframely._run.exits import take_exit
from dagster_dataframely._run.return_value import unpack_table
from dagster_dataframely._schema import table_schema as _table_schema
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.parsed import judge_parsed
from dagster_dataframely._schema.read import build_expressions, read_declared, read_schema
from dagster_dataframely._schema.severity import Severity
from dagster_dataframely._settings import SETTINGS, SettingArguments, Settings, reject_unknown
from dagster_dataframely._upstream.steps import current_run_context
from dagster_dataframely._validation import in_memory as _in_memory

__all__ = [
    "AssetYield",
    "QuarantineWriter",
    "check_name",
    "check_specs",
    "delegating_writer",
    "evaluate",
    "file_writer",
    "process",
    "quarantine_frame",
    "quarantine_path",
    "schema_metadata",
    "table_schema",
]


def check_specs(
    schema: type[dy.Schema],
    *,
    asset: CoercibleToAssetKey,
    severities: Mapping[str, Severity] | None = None,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    **settings: Unpack[SettingArguments],
) -> list[dg.AssetCheckSpec]:
    """The checks of a schema: the blocking one of columns and dtypes, then those of the rules.

    Runs at definition. Give `process` or `evaluate` the same settings, or their results do not match.

    Args:
        schema: The schema class.
        asset: The key of the asset that is checked.
        severities: `"error"` or `"warn"` by rule name, over what the schema says.
        partitions_def: The asset's partitions, so that each evaluation carries its partition.
        **settings: `check_granularity` and `multi_column_rules` decide which checks there are.

    Returns:
        The specs in the order the results come in.

    Example:
        ```python
        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema

        specs = dd.wiring.check_specs(OrdersSchema, asset="orders", check_granularity="schema")
        print([spec.name for spec in specs])
        #> ['dy_schema__columns', 'dy_schema__rules']
        ```
    """
    return build_check_specs(_declare(schema, asset, severities, settings), partitions_def)


def schema_metadata(schema: type[dy.Schema]) -> dict[str, dg.TableSchema]:
    """Definition metadata that fills the Columns tab of an asset that need not hold a frame.

    Args:
        schema: The schema class.

    Returns:
        `{"dagster/column_schema": ...}`.

    Example:
        ```python
        import dagster as dg

        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema

        external = dg.AssetSpec("orders", metadata=dd.wiring.schema_metadata(OrdersSchema))
        ```
    """
    return {_names.COLUMN_SCHEMA: table_schema(schema)}


def table_schema(schema: type[dy.Schema]) -> dg.TableSchema:
    """A schema as Dagster's Columns tab shows it, with every constraint in words.

    Args:
        schema: The schema class.

    Returns:
        One column for each column of the schema, in its order.

    Example:
        ```python
        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema

        column = dd.wiring.table_schema(OrdersSchema).columns[0]
        print(column.name, column.type, column.constraints.unique)
        #> order_id Int64 True
        ```
    """
    return _table_schema.table_schema(read_schema(schema))


def check_name(rule: str) -> str:
    """The name of a rule's check, which is also its column in the quarantine.

    Args:
        rule: Dataframely's name of the rule.

    Returns:
        The name with `|` as `__` and every character that Dagster refuses as `_`.

    Example:
        ```python
        import dagster_dataframely as dd

        print(dd.wiring.check_name("amount|min"))
        #> dy_rule__amount__min
        ```
    """
    return _names.rule_check_name(rule)


def quarantine_frame(
    schema: type[dy.Schema],
    frame: pl.DataFrame,
    *,
    severities: Mapping[str, Severity] | None = None,
    quarantine_layout: Literal["columns", "list"] | None = None,
) -> pl.DataFrame:
    """The error rows of a frame, with what the rules say of them.

    Args:
        schema: The schema class.
        frame: A frame with the schema's columns and dtypes; others are dropped.
        severities: `"error"` or `"warn"` by rule name, over what the schema says.
        quarantine_layout: As for `dd.asset`.

    Returns:
        The rows that fail an error rule, in order: the schema's columns, a String column for each rule
        (`valid`, `invalid` or `unknown`) or a list of the failed ones, a null run and the time.

    Example:
        ```python
        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema, invalid_orders

        rows = dd.wiring.quarantine_frame(OrdersSchema, invalid_orders())
        print(rows["dy_rule__amount__min"].to_list().count("invalid"))
        #> 1
        ```
    """
    rules = judge_parsed(build_expressions(read_schema(schema, severities)), frame.schema)
    layout = Settings.resolve({"quarantine_layout": quarantine_layout}).quarantine_layout
    error_rows = _in_memory.evaluate(frame, rules, sample=0).error_rows
    return _frame.quarantine_frame(error_rows, rules, layout)


def quarantine_path(
    asset: CoercibleToAssetKey, directory: str | Path | UPath, partition_key: str | None = None
) -> UPath:
    """The file that `file_writer` writes: the key's parts as folders, `_quarantine` after the last.

    Args:
        asset: The key of the asset the rows belong to.
        directory: Where the path starts, local or as fsspec names it (`s3://bucket/folder`).
        partition_key: Adds a file for the partition; on a grid, a folder for each dimension, in the
            order of the dimensions' names.

    Returns:
        A path below `directory`; nothing is created.

    Raises:
        QuarantineDirError: A part of the key or the partition would leave the directory.

    Example:
        ```python
        import dagster_dataframely as dd

        print(dd.wiring.quarantine_path(["sales", "orders"], "checks", "2026-01").as_posix())
        #> checks/sales/orders_quarantine/2026-01.parquet
        ```
    """
    return _writers.quarantine_path(
        dg.AssetKey.from_coercible(asset), UPath(directory), partition_key
    )


def file_writer(
    asset: CoercibleToAssetKey, directory: str | Path | UPath, partition_key: str | None = None
) -> QuarantineWriter:
    """A writer that puts error rows into a Parquet file at `quarantine_path`.

    A write that fails leaves an older file as it was: the new one is renamed when it is complete.

    Args:
        asset: The key of the asset the rows belong to.
        directory: Where the path starts; folders are created when rows are written.
        partition_key: As for `quarantine_path`.

    Returns:
        A function that takes the error rows and returns the path.

    Raises:
        QuarantineDirError: A part of the key or the partition would leave the directory.

    Example:
        ```python
        import tempfile

        import polars as pl

        import dagster_dataframely as dd

        with tempfile.TemporaryDirectory() as directory:
            write = dd.wiring.file_writer("orders", directory)
            print(write(pl.DataFrame({"id": [1]})).endswith("orders_quarantine.parquet"))
            #> True
        ```
    """
    return _writers.file_writer(dg.AssetKey.from_coercible(asset), UPath(directory), partition_key)


def process(
    schema: type[dy.Schema],
    returned: object,
    *,
    asset: CoercibleToAssetKey,
    quarantine_writer: QuarantineWriter | None = None,
    partition_key: str | None = None,
    severities: Mapping[str, Severity] | None = None,
    **settings: Unpack[SettingArguments],
) -> Iterator[AssetYield]:
    """What `dd.asset` does with what its function returns: the events of one of the seven exits.

    Yields a `MaterializeResult` if rows are written, a result for each check, and errors last.

    Args:
        schema: The schema class.
        returned: A frame, lazy or not, a `MaterializeResult` that holds one, or `None` for a skip.
        asset: The key of the asset the valid rows belong to.
        quarantine_writer: Takes the error rows; `None` means that error rows abort.
        partition_key: The partition of this run, for `dagster/partition_row_count`.
        severities: `"error"` or `"warn"` by rule name, over what the schema says.
        **settings: As for `dd.asset`.

    Yields:
        The events, in the order Dagster should store them.

    Raises:
        ColumnSchemaError: A declared column is missing or has another dtype.
        ValidationAbortError: Rows fail error rules and there is no writer.
        NothingSurvivedError: Every row failed an error rule.
        TooManyErrorRowsError: More rows are error rows than `max_error_share` allows.
        ReturnValueError: `returned` is none of the things above.

    Example:
        ```python
        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema, valid_orders

        materialization, *checks = dd.wiring.process(
            OrdersSchema, valid_orders(), asset="orders"
        )
        print(all(check.passed for check in checks))
        #> True
        ```
    """
    declaration = _declare(schema, asset, severities, settings)
    key = declaration.asset_key
    run = RunContext(quarantine_writer, partition_key)
    if (step := current_run_context(key)) is not None:
        run = RunContext.of_step(step, declaration, quarantine_writer, partition_key)
    results = unpack_table("table", declaration.asset_name, returned)
    yield from take_exit({"table": Member(declaration, run)}, results)


def evaluate(
    schema: type[dy.Schema],
    frame: pl.DataFrame | pl.LazyFrame,
    *,
    asset: CoercibleToAssetKey,
    severities: Mapping[str, Severity] | None = None,
    **settings: Unpack[SettingArguments],
) -> Iterator[dg.AssetCheckResult]:
    """Every check result for a frame, without a policy: nothing is written and no row raises.

    Args:
        schema: The schema class.
        frame: The frame to look at; a lazy plan runs once.
        asset: The key of the asset the checks belong to.
        severities: `"error"` or `"warn"` by rule name, over what the schema says.
        **settings: As for `dd.asset`.

    Yields:
        One result for each check of `check_specs`, each failing rule at its own severity.

    Raises:
        ColumnSchemaError: A declared column is missing or has another dtype, so that no rule can be
            evaluated; the result of the column-schema check comes first.

    Example:
        ```python
        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema, invalid_orders

        results = dd.wiring.evaluate(OrdersSchema, invalid_orders(), asset="orders")
        print([result.check_name for result in results if not result.passed][:2])
        #> ['dy_rule__order_id__min', 'dy_rule__customer__nullability']
        ```
    """
    yield from evaluate_checks(_declare(schema, asset, severities, settings), frame, lambda _: None)


def _declare(
    schema: type[dy.Schema],
    key: CoercibleToAssetKey,
    severities: Mapping[str, Severity] | None,
    settings: Mapping[str, Any],
) -> Declaration:
    reject_unknown("dd.wiring", settings.keys() - SETTINGS.keys(), SETTINGS)
    rules, resolved = read_declared(schema, severities, settings)
    return Declaration(dg.AssetKey.from_coercible(key), build_expressions(rules), resolved)
