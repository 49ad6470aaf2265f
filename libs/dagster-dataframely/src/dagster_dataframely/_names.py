"""Check names, metadata keys and reserved prefixes: the only place those strings exist."""

import re
from collections.abc import Sequence

import dagster as dg

CoercibleToAssetKey = dg.AssetKey | str | Sequence[str]
"""What Dagster makes an asset key of; its own name for it is private (1.13)."""

COLUMN_PREFIX = "dy_"
"""Reserved for rule columns, check names and check metadata."""

SCHEMA_METADATA_KEY = "dagster_dataframely"
"""Where `dd.severity` keeps its mapping in a column's Dataframely metadata."""

TEXT_FORMAT_METADATA_KEY = "dagster_dataframely_text_format"
"""Where `dd.text_format` keeps its mapping: another key, so that `**` merges it with a severity."""

COLUMNS_CHECK = "dy_schema__columns"
RULES_CHECK = "dy_schema__rules"

FILTER = "dy_filter"
RULE = "dy_rule"
RULE_EXPR = "dy_rule__expr"
RULES = "dy_rules"
SEVERITY = "dy_severity"
"""What the rule is declared with, whatever the run did with its rows."""
FAILED_COUNT = "dy_failed_count"
FAILED_SAMPLE = "dy_failed_sample"
DUPLICATED_KEYS = "dy_duplicated_keys"
DUPLICATED_SAMPLE = "dy_duplicated_sample"
COLUMN_ERRORS = "dy_schema__errors"
EXTRA_COLUMNS = "dy_extra_columns"
EVALUATED_TOGETHER = "dy_evaluated_together"
CAST_FAILURES_TABLE = "dy_cast_failures"
PARTITIONS = "dy_partitions"
FAILED_PARTITIONS = "dy_failed_partitions"
NOT_REPEATED = (FAILED_SAMPLE, DUPLICATED_SAMPLE, COLUMN_ERRORS, EXTRA_COLUMNS, CAST_FAILURES_TABLE)
"""What a run over several partitions records once, and not for each of them."""

COLUMN_SCHEMA = "dagster/column_schema"
ROW_COUNT = "dagster/row_count"
PARTITION_ROW_COUNT = "dagster/partition_row_count"

ROWS_IN = "dataframely/rows_in"
ROWS_WRITTEN = "dataframely/rows_written"
ERROR_ROWS = "dataframely/error_rows"
ERROR_SHARE = "dataframely/error_share"
VALID_SAMPLE = "dataframely/valid_sample"
VALID_STATS = "dataframely/valid_stats"
QUARANTINE_ADDRESS = "dataframely/quarantine_address"
INVALID_COUNT = "dataframely/invalid_count"
INVALID_SAMPLE = "dataframely/invalid_sample"
INVALID_BY_RULES = "dataframely/invalid_by_rules"
REPORT = "dataframely/report"
CAST_FAILURES = "dataframely/cast_failures"
FAILURES_BY_RULE = "dataframely/failures_by_rule"
QUARANTINE_OF = "dataframely/quarantine_of"
"""On a quarantine's `AssetSpec`: the key of the asset whose error rows it holds."""

QUARANTINE_LAYOUT = "dataframely/quarantine_layout"
"""On an asset's definition, where its quarantine has another layout than the default."""

QUARANTINE_IO_MANAGER_KEY = "dataframely/quarantine_io_manager_key"
"""On an asset's definition, where its error rows go through another IO manager than the table."""

POLARS_ROWS, POLARS_STATISTICS = "table", "stats"
"""Where the IO managers of dagster-polars record rows and minima and maxima (0.27.12)."""

VALID, INVALID, UNKNOWN = "valid", "invalid", "unknown"
"""What a rule column of a quarantine reads."""

ORIGINAL = "dy_original"
"""The column in which `dd.parse` keeps what it could not parse."""

QUARANTINE_SUFFIX = "_quarantine"
FAILED_RULES = "dy_failed_rules"
RUN_ID = "dy_run_id"
WRITTEN_AT = "dy_written_at"
PARTITION = "dy_partition"
REDACTED = "dy_redacted"
"""A tag of a quarantine's column whose values must not be shown."""


_FORBIDDEN = re.compile(r"[^A-Za-z0-9_]")
"""What Dagster does not allow in a check name (1.13)."""


def rule_check_name(rule: str) -> str:
    """`amount|min` gives `dy_rule__amount__min`."""
    return f"dy_rule__{_identifier(rule.replace('|', '__'))}"


def column_check_name(column: str) -> str:
    """`amount` gives `dy_col__amount`."""
    return f"dy_col__{_identifier(column)}"


def stored_check_name(check_name: str) -> str:
    """`dy_rule__amount__min` gives `dy_stored__rule__amount__min`."""
    return f"dy_stored__{check_name.removeprefix(COLUMN_PREFIX)}"


def filter_check_name(name: str) -> str:
    """`has_lines` gives `dy_filter__has_lines`."""
    return f"dy_filter__{_identifier(name.replace('|', '__'))}"


def is_nameable(column: str) -> bool:
    """Whether a schema can declare it: Polars takes some names for patterns, and C ends at a NUL."""
    is_pattern = column == "*" or (column.startswith("^") and column.endswith("$"))
    return bool(column) and not is_pattern and "\0" not in column


def quarantine_key(asset_key: dg.AssetKey) -> dg.AssetKey:
    """`analytics/orders` gives `analytics/orders_quarantine`."""
    return dg.AssetKey([*asset_key.path[:-1], f"{asset_key.path[-1]}{QUARANTINE_SUFFIX}"])


def _identifier(text: str) -> str:
    return _FORBIDDEN.sub("_", text)
