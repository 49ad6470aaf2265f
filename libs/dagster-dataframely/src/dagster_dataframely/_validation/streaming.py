"""A lazy plan and its `SchemaRules` to a `Verdict`, in memory that does not grow with the rows.

Only one bit is kept in memory for each row and each rule that looks at several rows, and one more for
each row.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from dagster_dataframely._names import ORIGINAL
from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._text import count, printable
from dagster_dataframely._typing import Log
from dagster_dataframely._validation.flags import (
    all_true,
    count_failing_tables,
    evaluate_flags,
    failing,
    settle,
    volatile_rules,
)
from dagster_dataframely._validation.limits import LIMITS, Limits
from dagster_dataframely._validation.staged import StagedRows
from dagster_dataframely._validation.staging import UNPUBLISHED
from dagster_dataframely._validation.uniqueness import (
    FoundDuplicates,
    duplicated_rows,
    find_duplicates,
    merge_duplicates,
    unknown_rows,
)
from dagster_dataframely._validation.verdict import Flags, RowsByRule, Verdict

_INDEX, _HASH = "dy_index", "dy_hash"


def evaluate_plan(
    plan: pl.LazyFrame,
    rules: SchemaRules,
    folder: Path,
    *,
    sample: int,
    log: Log,
    options: Mapping[str, Any] = UNPUBLISHED,
    limits: Limits = LIMITS,
) -> Verdict[pl.LazyFrame]:
    """Run a plan once into files, with the rules that look at one row, and do the rest from there.

    The verdict's frames are lazy and read the files, so they are good as long as the folder is there.
    """
    staged = StagedRows(plan.select(rules.row_columns), rules, folder, log, options, limits)
    flags: dict[str, pl.Series] = {}
    duplicates = {}
    for rule in rules.row_rules:
        if key := rules.unique_key(rule):
            with _timed(
                f"Looked for duplicates under `{printable(rule.name)}`", staged.height, log
            ):
                flags[rule.name], duplicates[rule.name] = _find_duplicates(
                    staged, key, rule, sample, limits
                )
    with _timed("Evaluated the other rules and split the rows", staged.height, log):
        row_wise = {rule.name for rule in staged.row_wise}
        others = [r for r in rules.row_rules if r.name not in row_wise and r.name not in flags]
        if others:
            # On just the columns they name: Polars reads no others.
            flags |= evaluate_flags(staged.in_order(), rules, others).to_dict()
        return _conclude(staged, rules, flags, sample, duplicates)


@contextmanager
def _timed(phase: str, rows: int, log: Log) -> Iterator[None]:
    start = time.monotonic()
    yield
    log(f"{phase}: {count(rows, 'row')} in {time.monotonic() - start:.1f} s.")


def _find_duplicates(
    staged: StagedRows, key: list[str], rule: Rule, sample: int, limits: Limits
) -> tuple[pl.Series, FoundDuplicates]:
    """A uniqueness rule: Dataframely's own expression, on the rows whose key hashes like another's."""
    flag = pl.repeat(value=True, n=staged.height, dtype=pl.Boolean, eager=True)
    keys = staged.columns_in_any_order([*key, *([] if rule.unknown is None else [ORIGINAL])])
    if staged.height <= limits.bucket_rows:
        values = _collect(keys)
        unknown = unknown_rows(values, rule)
        values = values.select(key)
        rows = duplicated_rows(values, rule.expression, unknown)
        positions = staged.positions_of(rows)
        flag = flag.scatter(positions.sort(), False)
        flag = flag.scatter(staged.positions_of(unknown).sort(), None)
        return flag, find_duplicates(values[rows], positions, sample)
    keys = keys.with_row_index(_INDEX)
    if rule.unknown is not None:
        unknown = _collect(keys.filter(rule.unknown).select(_INDEX))[_INDEX]
        flag = flag.scatter(staged.positions_of(unknown).sort(), None)
        keys = keys.filter(~rule.unknown)
    keys = keys.select(_INDEX, *key)
    no_row = _collect(keys.select(key).head(0))
    found = [find_duplicates(no_row, pl.Series(dtype=pl.get_index_type()), sample)]
    for members in _suspects(keys, key, staged.height, limits):
        duplicated = members.filter(~rule.expression)
        positions = staged.positions_of(duplicated[_INDEX])
        flag = flag.scatter(positions.sort(), False)
        found.append(find_duplicates(duplicated.select(key), positions, sample))
    return flag, merge_duplicates(found, sample)


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


def _conclude(
    staged: StagedRows,
    rules: SchemaRules,
    flags: Flags,
    sample: int,
    found: Mapping[str, FoundDuplicates],
) -> Verdict[pl.LazyFrame]:
    errors = [rule for rule in rules.error_rules if rule.name in flags]
    survives = staged.passes & all_true(flags, errors, staged.height)
    if not survives.all():
        volatile = volatile_rules(rules, staged.schema)
        flags, survives = settle(staged, flags, survives, rules, volatile)
    failures = {**staged.counts, **{name: int((~flag).sum() or 0) for name, flag in flags.items()}}
    counts = failures | count_failing_tables(staged.where(survives), rules)
    samples = {}
    for rule in rules.row_rules:
        if failures[rule.name] and rule.name in staged.counts:
            samples[rule.name] = partial(staged.first_failing, rule, sample)
        elif failures[rule.name]:
            first = failing(flags[rule.name]).head(sample).to_list()
            rows = found[rule.name].first_rows if rule.name in found else first
            samples[rule.name] = partial(staged.at, rows)
    return Verdict(
        rows=staged,
        rows_in=staged.height,
        survives=survives,
        flags=flags,
        error_count=int((~survives).sum()),
        counts={rule.name: counts[rule.name] for rule in rules.rules},
        samples=RowsByRule(samples),
        duplicates={name: found[name].duplicates for name in found if failures[name]},
    )


def _collect(frame: pl.LazyFrame) -> pl.DataFrame:
    return frame.collect(engine="streaming")
