"""The public names, spelled by hand: a name that appears or goes must be meant."""

import importlib
import pkgutil

import dagster as dg
import pytest

import dagster_dataframely as dd

PUBLIC = {
    "dagster_dataframely": {
        "Granularity",
        "MultiColumnRules",
        "asset",
        "build_collection_checks",
        "build_quarantine_spec",
        "build_quarantine_specs",
        "build_rule_checks",
        "collection_asset",
        "dagster_type",
        "data",
        "dy_asset",
        "errors",
        "parse",
        "rule",
        "severity",
        "strict_cast",
        "testing",
        "read_quarantine",
        "text_format",
        "unpivot_quarantine",
        "wiring",
    },
    "dagster_dataframely.components": {"DataframelyComponent", "QuarantineSpec", "RuleChecks"},
    "dagster_dataframely.data": {"OrdersSchema", "invalid_orders", "valid_orders"},
    "dagster_dataframely.errors": {
        "AssetReadError",
        "CastFailure",
        "CheckNameCollisionError",
        "CollectionNotSupportedError",
        "ColumnMismatch",
        "ColumnSchemaError",
        "DagsterDataframelyError",
        "InvalidArgumentError",
        "InvalidCollectionError",
        "InvalidColumnError",
        "InvalidReferenceError",
        "InvalidRuleError",
        "InvalidSchemaError",
        "InvalidSettingError",
        "InvalidSeverityError",
        "InvalidTextFormatError",
        "ManyChecksWarning",
        "NothingSurvivedError",
        "ParseError",
        "QuarantineAddressError",
        "QuarantineColumnsError",
        "QuarantineDirError",
        "QuarantineKeyCollisionError",
        "QuarantineReadError",
        "ReservedColumnError",
        "ReturnValueError",
        "RuleEvaluationError",
        "StagingError",
        "StorageDtypeError",
        "StoredColumn",
        "StoredTableError",
        "StrictCastError",
        "TooManyErrorRowsError",
        "CodeLocationError",
        "ExportError",
        "UnknownQuarantineError",
        "UnknownRuleError",
        "UnreadableFileError",
        "UnstorableColumn",
        "ValidationAbortError",
    },
    "dagster_dataframely.testing": {"Invocation", "invoke", "invoke_collection"},
    "dagster_dataframely.wiring": {
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
    },
}


@pytest.mark.parametrize("module", PUBLIC)
def test_module_has_exactly_the_public_names(module: str) -> None:
    imported = importlib.import_module(module)
    assert set(imported.__all__) == PUBLIC[module]
    assert all(hasattr(imported, name) for name in PUBLIC[module])


def test_every_other_module_is_private() -> None:
    modules = {name for _, name, _ in pkgutil.iter_modules(dd.__path__)}
    public = {name for name in modules if not name.startswith("_")}
    assert public == {name.partition(".")[2] for name in PUBLIC} - {""}


def test_two_names_for_one_decorator() -> None:
    assert dd.dy_asset is dd.asset


def test_every_error_has_the_one_base() -> None:
    errors = [getattr(dd.errors, name) for name in dd.errors.__all__ if name.endswith("Error")]
    assert all(issubclass(error, dd.errors.DagsterDataframelyError) for error in errors)
    assert {
        e for e in errors if not issubclass(e, (dg.Failure, dg.DagsterInvalidDefinitionError))
    } == {
        dd.errors.DagsterDataframelyError,
        dd.errors.CodeLocationError,
        dd.errors.ExportError,
        dd.errors.UnknownQuarantineError,
        dd.errors.UnknownRuleError,
        dd.errors.UnreadableFileError,
    }
