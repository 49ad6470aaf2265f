"""Find the rows that share a key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from dagster_dataframely._schema.rules import Rule

ROWS_OF_KEY = "dy_rows"
"""How many rows have a key."""


_POSITION = "dy_position"


@dataclass(frozen=True)
class Duplicates:
    """The keys that a uniqueness rule found more than once."""

    keys: int
    """How many different keys; the rule's count says how many rows."""
    sample: pl.DataFrame
    """The first of them in the frame's order: the key's columns, then how many rows have it."""


class FoundDuplicates(NamedTuple):
    """Duplicated keys, and the positions of the first row of each of the first ones."""

    duplicates: Duplicates
    first_rows: list[int]


def find_duplicates(keys: pl.DataFrame, positions: pl.Series, sample: int) -> FoundDuplicates:
    """Sort rows that are known to share their keys by key; `positions` says where each row is."""
    by_key = (
        keys.lazy()
        .with_columns(positions.alias(_POSITION))
        .group_by(keys.columns)
        .agg(pl.len().alias(ROWS_OF_KEY), pl.col(_POSITION).min())
        .collect()
    )
    return _first_duplicates(by_key.height, by_key, sample)


def merge_duplicates(parts: Sequence[FoundDuplicates], sample: int) -> FoundDuplicates:
    """What was found in several parts of one frame that share no key; one part at least."""
    first = pl.concat(
        part.duplicates.sample.with_columns(
            pl.Series(_POSITION, part.first_rows, pl.get_index_type())
        )
        for part in parts
    )
    return _first_duplicates(sum(part.duplicates.keys for part in parts), first, sample)


def _first_duplicates(keys: int, by_key: pl.DataFrame, sample: int) -> FoundDuplicates:
    first = by_key.sort(_POSITION).head(sample)
    return FoundDuplicates(Duplicates(keys, first.drop(_POSITION)), first[_POSITION].to_list())


def unknown_rows(table: pl.DataFrame, rule: Rule) -> pl.Series:
    """The positions of the rows of which a rule says nothing, since their key was lost."""
    if rule.unknown is None:
        return pl.Series(dtype=pl.get_index_type())
    return table.select(rule.unknown.alias(_POSITION)).to_series().arg_true()


def duplicated_rows(keys: pl.DataFrame, is_unique: pl.Expr, unknown: pl.Series) -> pl.Series:
    """The positions of the rows whose key is not unique, by Dataframely's own expression.

    A key that is unknown makes no other one a duplicate.

    Of a key of several columns only those are compared whose hash occurs twice: sorting hashes takes
    a quarter of the time that comparing all keys does (polars 1.44).
    """
    if unknown.len():
        every = pl.repeat(value=True, n=keys.height, dtype=pl.Boolean, eager=True)
        known = every.scatter(unknown, False).arg_true()
        return known.gather(duplicated_rows(keys[known], is_unique, unknown.clear()))
    if keys.width == 1:
        return (~keys.select(is_unique).to_series()).arg_true()
    hashes = keys.select(pl.struct(pl.all()).hash()).to_series()
    in_order = hashes.sort()
    repeated = in_order.filter(in_order == in_order.shift()).unique()
    suspects = hashes.is_in(repeated.implode()).arg_true()
    return suspects.filter(~keys[suspects].select(is_unique).to_series())
