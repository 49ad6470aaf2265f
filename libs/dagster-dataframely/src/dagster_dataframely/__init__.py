"""Attach a Dataframely schema to a Dagster asset."""

from dagster_dataframely import data, errors, testing, wiring
from dagster_dataframely._assets.asset import asset, dy_asset
from dagster_dataframely._assets.collection_asset import collection_asset
from dagster_dataframely._assets.dagster_types import dagster_type
from dagster_dataframely._checks.collection_checks import build_collection_checks
from dagster_dataframely._checks.rule_checks import build_rule_checks
from dagster_dataframely._quarantine.read import unpivot_quarantine
from dagster_dataframely._quarantine.spec import build_quarantine_spec, build_quarantine_specs
from dagster_dataframely._schema.cast import strict_cast
from dagster_dataframely._schema.parse import parse
from dagster_dataframely._schema.severity import rule, severity
from dagster_dataframely._schema.text_format import text_format
from dagster_dataframely._settings import Granularity, MultiColumnRules
from dagster_dataframely._triage.quarantines import read_quarantine

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
    "parse",
    "read_quarantine",
    "rule",
    "severity",
    "strict_cast",
    "testing",
    "text_format",
    "unpivot_quarantine",
    "wiring",
]
