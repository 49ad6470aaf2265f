"""Report a run over several partitions for each of them."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._metadata.materialization import report_metadata, row_counts
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._settings import Settings
from dagster_dataframely._validation.verdict import SURVIVES, Verdict

_PARTITION, _ROWS, _SURVIVORS = "dy_partition", "dy_rows", "dy_survivors"


Found = TypeVar("Found", bound=Verdict[Any] | None)


Parts = Sequence[tuple[str, Verdict[Any]]]
"""The keys of partitions, each with the verdict on its rows."""


@dataclass(frozen=True)
class PartitionRange:
    """The partitions that a running step computes together."""

    step: dg.AssetExecutionContext
    asset_key: dg.AssetKey

    @property
    def keys(self) -> Sequence[str]:
        """The keys of the partitions, in their order."""
        keys: Sequence[str] = self.step.partition_keys
        return keys

    @property
    def undivided(self) -> Sequence[tuple[str, None]]:
        """The partitions where there is no verdict on any row."""
        return [(key, None) for key in self.keys]

    def parts(self, verdict: Verdict[Any], rules: SchemaRules) -> Parts:
        """The verdict on each partition's rows: counts, without samples.

        Rules over the whole table, and all of them where the columns do not tell the partition, keep
        what they found in all partitions together.
        """
        schema = verdict.flagged.collect_schema()
        label = _partition_label(self.step.assets_def, self.asset_key, self.keys, schema)
        if label is None:
            whole = replace(verdict, samples={})
            return [(key, whole) for key in self.keys]
        found = _count(verdict.flagged.lazy(), rules, label)
        nothing = dict.fromkeys([_ROWS, _SURVIVORS, *(rule.name for rule in rules.row_rules)], 0)
        return [(key, _part(verdict, rules, found.get(key, nothing))) for key in self.keys]

    def record_row_counts(
        self, parts: Parts, rules: SchemaRules, settings: Settings, copies: int
    ) -> None:
        """Record the row counts of each partition with its materialization.

        Also a report where the columns tell partitions apart.
        """
        divided = not _are_undivided(parts)
        for key, part in parts:
            own = {**row_counts(part), _names.PARTITION_ROW_COUNT: part.survivor_count}
            if divided:
                empty = [] if part.rows_in else [key]
                own |= report_metadata(rules, settings, part, copies, empty_partitions=empty)
            self.step.add_asset_metadata(own, asset_key=self.asset_key, partition_key=key)

    def record_evaluations(
        self,
        parts: Sequence[tuple[str, Found]],
        checks: Callable[[Found], Iterable[dg.AssetCheckResult]],
    ) -> None:
        """Evaluate each check for each partition.

        An `AssetCheckResult` of such a run carries no partition, and Dagster would leave the check of
        each partition planned for ever (1.13). That result has the tables; they are not repeated.
        """
        undivided = {}
        if _are_undivided(parts):
            undivided = {_names.EVALUATED_TOGETHER: f"{self.keys[0]} to {self.keys[-1]}"}
        for key, verdict in parts:
            for result in checks(verdict):
                metadata = {
                    k: v for k, v in result.metadata.items() if k not in _names.NOT_REPEATED
                }
                evaluation = dg.AssetCheckEvaluation(
                    asset_key=self.asset_key,
                    check_name=result.check_name or "",
                    passed=result.passed,
                    metadata={**metadata, **undivided},
                    severity=result.severity,
                    description=result.description,
                    partition=key,
                )
                self.step.log_event(evaluation)


def _are_undivided(parts: Sequence[tuple[str, object]]) -> bool:
    """Whether partitions have one verdict, on the rows of all of them."""
    return len({id(verdict) for _, verdict in parts}) < len(parts)


def _partition_label(
    definition: dg.AssetsDefinition,
    asset_key: dg.AssetKey,
    keys: Sequence[str],
    schema: pl.Schema,
) -> pl.Expr | None:
    """What gives a row's partition, where `partition_expr` names a column of the table.

    The IO managers of databases go by the same metadata.
    """
    named = definition.metadata_by_key[asset_key].get("partition_expr")
    partitions_def = definition.partitions_def
    if not isinstance(partitions_def, dg.MultiPartitionsDefinition):
        return _column_label(partitions_def, keys, named, schema)
    if not isinstance(named, Mapping):
        return None
    grid = [key for key in keys if isinstance(key, dg.MultiPartitionKey)]
    labels = [
        _column_label(
            dimension.partitions_def,
            sorted({key.keys_by_dimension[dimension.name] for key in grid}),
            named.get(dimension.name),
            schema,
        )
        for dimension in sorted(partitions_def.partitions_defs, key=lambda d: d.name)
    ]
    known = [label for label in labels if label is not None]
    # Dagster writes a key of several dimensions in the order of their names (1.13).
    return pl.concat_str(known, separator="|") if len(known) == len(labels) else None


def _column_label(
    partitions_def: dg.PartitionsDefinition[Any] | None,
    keys: Sequence[str],
    column: object,
    schema: pl.Schema,
) -> pl.Expr | None:
    if not isinstance(column, str) or column not in schema:
        return None
    value = pl.col(column)
    dtype = schema[column]
    if not (
        isinstance(partitions_def, dg.TimeWindowPartitionsDefinition)
        and isinstance(dtype, (pl.Date, pl.Datetime))
    ):
        return _label_of_value(value, dtype, keys)
    has_zone = getattr(dtype, "time_zone", None) is not None
    moment = value.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if has_zone else value
    windows = [(key, partitions_def.time_window_for_partition_key(key)) for key in keys]
    return pl.coalesce(
        pl.when(
            moment.is_between(
                _edge(window.start, utc=has_zone), _edge(window.end, utc=has_zone), closed="left"
            )
        ).then(pl.lit(key))
        for key, window in windows
    )


def _label_of_value(value: pl.Expr, dtype: pl.DataType, keys: Sequence[str]) -> pl.Expr | None:
    """The key that a value equals, as a database compares it with text: in the column's dtype.

    `None` where a key is no such value, or two keys are the same one.
    """
    if isinstance(dtype, (pl.String, pl.Enum, pl.Categorical)):
        return value.cast(pl.String)
    values = _values(keys, dtype)
    if values is None or values.has_nulls() or values.n_unique() < len(keys):
        return None
    return value.replace_strict(values, pl.Series(keys), default=None, return_dtype=pl.String)


def _values(keys: Sequence[str], dtype: pl.DataType) -> pl.Series | None:
    if dtype.is_numeric():
        return pl.Series(keys).cast(dtype, strict=False)
    if isinstance(dtype, pl.Boolean):
        words = {"true": True, "false": False}
        return pl.Series([words.get(key.lower()) for key in keys], dtype=dtype)
    try:
        if isinstance(dtype, pl.Date):
            return pl.Series([dt.date.fromisoformat(key) for key in keys], dtype=dtype)
        if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
            moments = [dt.datetime.fromisoformat(key) for key in keys]
            # What an offset means for a column without a zone differs between databases.
            if all(moment.tzinfo is None for moment in moments):
                return pl.Series(moments, dtype=dtype)
    except ValueError:
        return None
    return None


def _edge(moment: dt.datetime, *, utc: bool) -> dt.datetime:
    """A window's edge as a column has it: in UTC, or on the clock of the partitions."""
    return (moment.astimezone(dt.UTC) if utc else moment).replace(tzinfo=None)


def _count(
    flagged: pl.LazyFrame, rules: SchemaRules, label: pl.Expr
) -> dict[str, Mapping[str, int]]:
    counts = (
        flagged.group_by(label.alias(_PARTITION))
        .agg(
            pl.len().alias(_ROWS),
            pl.col(SURVIVES).sum().alias(_SURVIVORS),
            *(pl.col(rule.name).not_().sum() for rule in rules.row_rules),
        )
        .collect(engine="streaming")
    )
    return {row.pop(_PARTITION): row for row in counts.iter_rows(named=True)}


def _part(verdict: Verdict[Any], rules: SchemaRules, row: Mapping[str, int]) -> Verdict[Any]:
    own = {rule.name: row[rule.name] for rule in rules.row_rules}
    return replace(
        verdict,
        rows_in=row[_ROWS],
        error_count=row[_ROWS] - row[_SURVIVORS],
        counts={**verdict.counts, **own},
        samples={},
        duplicates={},
    )
