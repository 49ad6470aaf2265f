"""A lazy plan and its `SchemaRules` to a `Verdict`, in memory that does not grow with the rows.

Only one bit is kept in memory for each row and each rule that looks at several rows, and one more for
each row.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._text import count, printable
from dagster_dataframely._typing import Log
from dagster_dataframely._validation.flags import (
    count_failing_tables,
    evaluate_flags,
    flag_expression,
    naming_the_rule,
    row_wise_rules,
    settle,
    volatile_rules,
)
from dagster_dataframely._validation.staging import stage_rows
from dagster_dataframely._validation.uniqueness import (
    FoundDuplicates,
    duplicated_rows,
    find_duplicates,
    merge_duplicates,
)
from dagster_dataframely._validation.verdict import SURVIVES, RowsByRule, Verdict
from dagster_dataframely.errors import RuleEvaluationError

_INDEX, _HASH = "dy_index", "dy_hash"


@dataclass(frozen=True)
class Limits:
    """How much is in memory at a time where duplicates are looked for."""

    bucket_rows: int = 8_000_000
    """How many rows' keys are compared at a time; they are in memory together."""
    hashes: int = 25_000_000
    """How many hashes of keys are sorted at a time: 200 MB."""
    most_repeated: int = 1_000_000
    """Up to how many repeated hashes the other rows are left out before keys are compared."""


LIMITS = Limits()


def evaluate_plan(
    plan: pl.LazyFrame,
    rules: SchemaRules,
    folder: Path,
    *,
    sample: int,
    log: Log,
    limits: Limits = LIMITS,
) -> Verdict[pl.LazyFrame]:
    """Run a plan once into a file, with the rules that look at one row, and do the rest from there.

    The verdict's frames are lazy and read the file, so they are good as long as the folder is there.
    """
    staged = _stage(plan.select(rules.column_names), rules, folder, log)
    duplicates = {}
    for rule in rules.row_rules:
        if key := rules.unique_key(rule):
            with _timed(
                f"Looked for duplicates under `{printable(rule.name)}`", staged.height, log
            ):
                flag, duplicates[rule.name] = _find_duplicates(staged, key, rule, sample, limits)
            staged = staged.with_flags(flag.to_frame())
    with _timed("Evaluated the other rules and split the rows", staged.height, log):
        settled = _settle(_evaluate_others(staged, rules), rules)
        return _conclude(settled, rules, sample, duplicates)


@contextmanager
def _timed(phase: str, rows: int, log: Log) -> Iterator[None]:
    start = time.monotonic()
    yield
    log(f"{phase}: {count(rows, 'row')} in {time.monotonic() - start:.1f} s.")


@dataclass(frozen=True)
class _Staged:
    """Rows on disk with the flags of some rules, and the flags of the others in memory."""

    rows: pl.LazyFrame
    schema: pl.Schema
    """The table's own columns."""
    on_disk: frozenset[str]
    """The names of the rules whose flags are columns of the file."""
    flags: pl.DataFrame
    height: int

    def with_flags(self, flags: pl.DataFrame) -> "_Staged":
        merged = flags if self.flags.width == 0 else self.flags.with_columns(flags.get_columns())
        return _Staged(self.rows, self.schema, self.on_disk, merged, self.height)

    @property
    def table(self) -> pl.LazyFrame:
        return self.rows.select(self.schema.names())

    @property
    def everything(self) -> pl.LazyFrame:
        """The table with a flag for each rule evaluated so far."""
        return self.rows.with_columns(self.flags.get_columns())


def _stage(table: pl.LazyFrame, rules: SchemaRules, folder: Path, log: Log) -> _Staged:
    schema = table.collect_schema()
    rules.reject_non_boolean(schema)
    others = [rule for rule in rules.row_rules if not rules.unique_key(rule)]
    row_wise = row_wise_rules(rules, others, schema)
    failed: list[RuleEvaluationError] = []
    try:
        rows = stage_rows(_add_flags(table, schema, rules, row_wise, failed), folder, log)
    except Exception:
        if failed:
            raise failed[0] from None
        raise
    height = rows.select(pl.len()).collect().item()
    return _Staged(rows, schema, frozenset(r.name for r in row_wise), pl.DataFrame(), height)


def _add_flags(
    table: pl.LazyFrame,
    schema: pl.Schema,
    rules: SchemaRules,
    row_wise: list[Rule],
    failed: list[RuleEvaluationError],
) -> pl.LazyFrame:
    """The rows with a flag for each of the rules that look at one row.

    Evaluated on one batch at a time. As expressions of the plan they are not always: for `is_in`, Polars
    joins, and rows pile up before that (1.44: 2.7 GB where 1.0 is enough). Of an error, Polars passes
    on the message alone, so it is added to `failed`.
    """
    return table.map_batches(
        partial(add_flags, rules=rules, row_wise=row_wise, failed=failed),
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        schema=pl.Schema({**schema, **{rule.name: pl.Boolean() for rule in row_wise}}),
        validate_output_schema=False,
        streamable=True,
    )


def add_flags(
    batch: pl.DataFrame,
    rules: SchemaRules,
    row_wise: list[Rule],
    failed: list[RuleEvaluationError],
) -> pl.DataFrame:
    """One batch with a flag for each of the rules that look at one row."""
    try:
        with naming_the_rule(batch.lazy(), rules, row_wise):
            return batch.with_columns(flag_expression(rule) for rule in row_wise)
    except RuleEvaluationError as error:
        failed.append(error)
        raise


def _find_duplicates(
    staged: _Staged, key: list[str], rule: Rule, sample: int, limits: Limits
) -> tuple[pl.Series, FoundDuplicates]:
    """A uniqueness rule: Dataframely's own expression, on the rows whose key hashes like another's."""
    flag = pl.repeat(value=True, n=staged.height, dtype=pl.Boolean, eager=True)
    if staged.height <= limits.bucket_rows:
        values = _collect(staged.rows.select(key))
        positions = duplicated_rows(values, rule.expression)
        in_one_part = find_duplicates(values[positions], positions, sample)
        return flag.scatter(positions, False).alias(rule.name), in_one_part
    no_row = pl.DataFrame(schema={name: staged.schema[name] for name in key})
    found = [find_duplicates(no_row, pl.Series(dtype=pl.get_index_type()), sample)]
    keys = staged.rows.select(key).with_row_index(_INDEX)
    for members in _suspects(keys, key, staged.height, limits):
        duplicated = members.filter(~rule.expression)
        flag = flag.scatter(duplicated[_INDEX], False)
        found.append(find_duplicates(duplicated.select(key), duplicated[_INDEX], sample))
    return flag.alias(rule.name), merge_duplicates(found, sample)


def _suspects(
    keys: pl.LazyFrame, key: list[str], rows: int, limits: Limits
) -> Iterator[pl.DataFrame]:
    """Keys that may occur twice, in parts that fit into memory; equal ones are in the same part."""
    keys = keys.with_columns(_hashed(keys.collect_schema(), key).alias(_HASH))
    repeated, suspects = _repeated_hashes(keys.select(_HASH), rows, limits)
    if repeated.len() <= limits.most_repeated:
        keys = keys.join(repeated.to_frame().lazy(), on=_HASH, how="semi")
    buckets = -(-suspects // limits.bucket_rows)
    for bucket in range(buckets):
        # Keys that are equal hash alike, so they share a bucket.
        yield _collect(keys.filter(pl.col(_HASH) % buckets == bucket))


def _hashed(schema: pl.Schema, key: list[str]) -> pl.Expr:
    """A hash that is the same where Polars takes keys as equal.

    For `is_unique` of one struct, not of one inside of anything, a null is a struct of nulls (1.35 to
    2.1); the hash of its fields is the same for both.
    """
    if len(key) == 1 and isinstance(schema[key[0]], pl.Struct):
        return pl.struct(pl.col(key).struct.field("*")).hash()
    return pl.struct(key).hash()


def _repeated_hashes(hashes: pl.LazyFrame, rows: int, limits: Limits) -> tuple[pl.Series, int]:
    """The hashes that occur more than once, and how many rows have one of them."""
    buckets = -(-rows // limits.hashes)
    repeated = []
    suspects = 0
    for bucket in range(buckets):
        members = _collect(hashes.filter(pl.col(_HASH) % buckets == bucket))[_HASH].sort()
        again = members == members.shift()
        found = members.filter(again).unique()
        suspects += found.len() + int(again.sum() or 0)
        repeated.append(found)
    return pl.concat(repeated), suspects


def _evaluate_others(staged: _Staged, rules: SchemaRules) -> _Staged:
    """Rules over several rows, on just the columns they name: Polars reads no others."""
    others = [
        rule
        for rule in rules.row_rules
        if not rules.unique_key(rule) and rule.name not in staged.on_disk
    ]
    return staged.with_flags(evaluate_flags(staged.table, rules, others)) if others else staged


def _settle(staged: _Staged, rules: SchemaRules) -> _Staged:
    """Add the flag that says which rows survive."""
    survives = pl.all_horizontal(True, *(rule.name for rule in rules.error_rules))
    mask = _collect(staged.everything.select(survives.alias(SURVIVES)))[SURVIVES]
    if mask.len() != staged.height:
        # Without a column in it, the selection gives one value.
        mask = pl.repeat(value=True, n=staged.height, dtype=pl.Boolean, eager=True)
    if not mask.all():
        volatile = volatile_rules(rules, staged.schema)
        flags, mask = settle(staged.table, staged.flags, mask, rules, volatile)
        staged = staged.with_flags(flags) if flags.width else staged
    return staged.with_flags(mask.alias(SURVIVES).to_frame())


def _conclude(
    staged: _Staged, rules: SchemaRules, sample: int, found: Mapping[str, FoundDuplicates]
) -> Verdict[pl.LazyFrame]:
    everything = staged.everything
    names = [rule.name for rule in rules.row_rules]
    failures = _collect(everything.select(pl.col(SURVIVES, *names).not_().sum())).row(0, named=True)
    error_count = failures.pop(SURVIVES)
    kept = everything.filter(SURVIVES) if error_count else everything
    survivors = kept.select(rules.column_names)
    counts = failures | count_failing_tables(survivors, rules)
    return Verdict(
        rows_in=staged.height,
        error_count=error_count,
        survivors=survivors,
        flagged=everything,
        error_rows=everything.filter(~pl.col(SURVIVES)).select(*rules.column_names, *names),
        counts={rule.name: counts[rule.name] for rule in rules.rules},
        samples=RowsByRule(
            {
                name: partial(_rows_at, staged.table, found[name].first_rows)
                if name in found
                else partial(_first_rows, everything, name, rules.column_names, sample)
                for name, count in failures.items()
                if count
            }
        ),
        duplicates={name: found[name].duplicates for name in found if failures[name]},
    )


def _first_rows(
    everything: pl.LazyFrame, rule: str, columns: list[str], number: int
) -> pl.DataFrame:
    return _collect(everything.filter(~pl.col(rule)).select(columns).head(number))


def _rows_at(table: pl.LazyFrame, positions: list[int]) -> pl.DataFrame:
    # A slice of one row is read without the rows before it; a concatenation of them is not.
    found = [table.slice(position, 1).collect() for position in positions]
    return pl.concat([table.head(0).collect(), *found])


def _collect(frame: pl.LazyFrame) -> pl.DataFrame:
    return frame.collect(engine="streaming")
