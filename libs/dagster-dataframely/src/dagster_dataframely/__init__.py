"""Attach a Dataframely schema to a Dagster asset."""

from dagster_dataframely import data, errors, testing, wiring
from dagster_dataframely._asset import asset, dy_asset
from dagster_dataframely._collection_asset import build_quarantine_specs, collection_asset
from dagster_dataframely._collection_checks import build_collection_checks
from dagster_dataframely._quarantine import build_quarantine_spec
from dagster_dataframely._rule_checks import build_rule_checks
from dagster_dataframely._settings import Granularity, MultiColumnRules
from dagster_dataframely._severities import rule, severity
from dagster_dataframely._strict_cast import strict_cast
from dagster_dataframely._typed_inputs import dagster_type

__all__ = [
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
    "rule",
    "severity",
    "strict_cast",
    "testing",
    "wiring",
]
