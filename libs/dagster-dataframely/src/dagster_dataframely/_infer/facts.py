"""Find out what the columns of a table are like, in bounded memory."""

import datetime as dt
import itertools
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dagster_dataframely._infer.files import Table
from dagster_dataframely._names import is_nameable
from dagster_dataframely._text import count, printable
from dagster_dataframely._typing import Log
from dagster_dataframely._upstream.polars import NO_NULL_FOR_AN_EMPTY_LIST

_KEY_DTYPES = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Boolean, pl.String, pl.Binary, pl.Enum, pl.Categorical, pl.Decimal),
    *(pl.Date, pl.Datetime, pl.Time, pl.Duration),
)


# An empty list became a null before this argument (1.36), whose default says so until 2.0.
_TO_MICROSECONDS = {"ms": 1000, "us": 1}


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


_DAY = dt.timedelta(days=1)


Key = tuple[str, ...]


class _NoSuchValueError(Exception):
    """Python has no value for what Polars stores."""


@dataclass
class Observed:
    """What has been seen of a column, or of what is inside it."""

    dtype: pl.DataType
    nullable: bool = False
    nan: bool = False
    infinite: bool = False
    bounds: tuple[Any, Any] | None = None
    """The smallest and the largest value; of temporal dtypes as Polars stores them, as integers."""
    inner: dict[str, "Observed"] = field(default_factory=dict)
    """The fields of a struct; under an empty name the elements of a list or an array."""

    def see(self, values: pl.Series) -> None:
        """Take more values into account."""
        self.nullable |= values.has_nulls()
        # Polars takes the name of a series for a pattern, too (1.35 to 2.1).
        values = values.alias("values").drop_nulls()
        if self.dtype.is_float():
            self.nan |= bool(values.is_nan().any())
            self.infinite |= bool(values.is_infinite().any())
        if values.len() and (self.dtype.is_numeric() or self.dtype.is_temporal()):
            stored = values.to_physical() if self.dtype.is_temporal() else values
            found = [stored.min(), stored.max(), *(self.bounds or ())]
            self.bounds = min(found), max(found)
        for name, part in _parts(values):
            self.inner.setdefault(name, Observed(part.dtype)).see(part)

    def python_bounds(self) -> tuple[Any, Any] | None:
        """The bounds as Python values, to the microsecond and no narrower than the values.

        `None` where there is none, where Python has no such value, where Dataframely takes none, and
        beside NaN and infinities, for which no rule with these bounds holds.
        """
        if self.bounds is None or self.nan or self.infinite:
            return None
        if isinstance(self.dtype, pl.Decimal) and self.dtype.precision == self.dtype.scale:
            return None  # Dataframely counts the zero before the point (3.1).
        low, high = self.bounds
        if not self.dtype.is_temporal():
            return low, high
        try:
            return _python_value(self.dtype, low, 0), _python_value(self.dtype, high, 999)
        except (OverflowError, zoneinfo.ZoneInfoNotFoundError, _NoSuchValueError):
            return None


@dataclass(frozen=True)
class Inference:
    """What is known of a table once its rows have been looked at."""

    columns: Mapping[str, Observed]
    rows: int
    key: Key
    """The first column, else the first pair of columns, without nulls and without duplicates."""
    unique: frozenset[str]
    """The other columns without nulls and without duplicates."""
    almost: tuple[str, int] | None = None
    """Without a key, the first column that is one but for so many rows, and these."""


@dataclass(frozen=True)
class Limits:
    """How much is compared at a time where a key is looked for."""

    rows_in_memory: int = 1_000_000
    """Up to how many rows are compared by their values."""
    hashes: int = 20_000_000
    """How many hashes of values are compared at a time: 160 MB."""
    suspects: int = 1_000
    """How many hashes that occur twice are looked at together, for the values behind them."""
    first_rows: int = 1_000
    """These tell most pairs of columns from a key at little cost."""


LIMITS = Limits()


def infer(table: Table, log: Log, limits: Limits = LIMITS) -> Inference:
    """Look at every row for what the columns are like, then at those columns that may be a key."""
    columns = {name: Observed(dtype) for name, dtype in table.schema.items()}
    may_be_key = [name for name, seen in columns.items() if _may_be_key(name, seen)]
    keys: list[Key] = [(name,) for name in may_be_key]
    seen_rows = 0
    for batch in table.batches():
        for values in batch:
            columns[values.name].see(values)
        keys = _still_unique(batch, keys)
        seen_rows += batch.height
        log(f"Looked at {seen_rows:,} of {count(table.rows, 'row')}.")
    complete = [name for name in may_be_key if not columns[name].nullable]
    singles = [key for key in keys if key[0] in complete]
    found = _find_keys(table, singles, complete, log, limits) if table.rows > 1 else []
    for name, texts in table.texts.items():
        columns[name].nullable = texts.missing  # What is not parsed is a null here only.
    return Inference(
        columns,
        table.rows,
        key=found[0] if found else (),
        unique=frozenset(itertools.chain.from_iterable(found[1:])),
        almost=_almost_key(table, complete, limits) if table.rows > 1 and not found else None,
    )


def _almost_key(table: Table, complete: list[str], limits: Limits) -> tuple[str, int] | None:
    """The first column in which at most one row of a hundred has a value of another one."""
    if table.rows > limits.rows_in_memory:
        return None
    for name in complete:
        repeated = table.rows - pl.concat(table.batches([name])).n_unique()
        if repeated <= table.rows // 100:
            return name, repeated
    return None


def _find_keys(
    table: Table, singles: list[Key], complete: list[str], log: Log, limits: Limits
) -> list[Key]:
    """The columns that are a key, or else the first pair of columns that is one."""
    found = [key for key in singles if _is_unique(table, key, log, limits)]
    pairs: list[Key] = list(itertools.combinations(complete, 2))
    if found or not pairs:
        return found
    log(f"Trying {count(len(pairs), 'pair')} of columns as a key.")
    for batch in table.batches(complete):
        pairs = _still_unique(batch, _still_unique(batch.head(limits.first_rows), pairs))
        if not pairs:
            break
    return list(
        itertools.islice((pair for pair in pairs if _is_unique(table, pair, log, limits)), 1)
    )


def _still_unique(batch: pl.DataFrame, keys: list[Key]) -> list[Key]:
    return [key for key in keys if batch.select(key).n_unique() == batch.height]


def _is_unique(table: Table, key: Key, log: Log, limits: Limits) -> bool:
    """Whether no two rows of the table have the same values."""
    log(f"Comparing {count(table.rows, 'value')} of {printable(', '.join(key))}.")
    if table.rows <= limits.rows_in_memory:
        return not _have_duplicates(table.batches(key))
    # Equal values hash alike; others hardly ever do, so that few rows are compared by their values.
    return not any(
        _have_duplicates(batch.filter(_hashes(batch).is_in(some)) for batch in table.batches(key))
        for some in _repeated_hashes(table, key, limits)
    )


def _have_duplicates(batches: Iterable[pl.DataFrame]) -> bool:
    frame = pl.concat(batches)
    return frame.n_unique() < frame.height


def _hashes(batch: pl.DataFrame) -> pl.Series:
    return batch.hash_rows()


def _repeated_hashes(table: Table, key: Key, limits: Limits) -> Iterator[pl.Series]:
    """The hashes of more than one row, some at a time."""
    buckets = -(-table.rows // limits.hashes)
    for bucket in range(buckets):
        hashes = (_hashes(batch) for batch in table.batches(key))
        members = pl.concat(series.filter(series % buckets == bucket) for series in hashes).sort()
        repeated = members.filter(members == members.shift()).unique()
        for start in range(0, repeated.len(), limits.suspects):
            yield repeated.slice(start, limits.suspects)


def _may_be_key(name: str, seen: Observed) -> bool:
    return is_nameable(name) and isinstance(seen.dtype, _KEY_DTYPES)


def _parts(values: pl.Series) -> Iterator[tuple[str, pl.Series]]:
    """What is inside of values that are not null."""
    if isinstance(values.dtype, pl.Struct):
        for part in values.struct.unnest():
            yield part.name, part
    elif isinstance(values.dtype, (pl.List, pl.Array)):
        lists = values.arr.to_list() if isinstance(values.dtype, pl.Array) else values
        yield "", lists.filter(lists.list.len() > 0).explode(**NO_NULL_FOR_AN_EMPTY_LIST)


def _python_value(dtype: pl.DataType, stored: int, round_by: int) -> Any:
    """A temporal value from what Polars stores; nanoseconds are rounded after adding some."""
    if isinstance(dtype, pl.Date):
        return _EPOCH.date() + stored * _DAY
    unit = getattr(dtype, "time_unit", "ns")
    microseconds = (stored + round_by) // 1000 if unit == "ns" else stored * _TO_MICROSECONDS[unit]
    passed = dt.timedelta(microseconds=microseconds)
    if isinstance(dtype, pl.Duration):
        return passed
    if isinstance(dtype, pl.Time):
        if passed >= _DAY:
            raise _NoSuchValueError
        return (_EPOCH + passed).time()
    zone = getattr(dtype, "time_zone", None)
    if zone is None:
        return (_EPOCH + passed).replace(tzinfo=None)
    moment = (_EPOCH + passed).astimezone(zoneinfo.ZoneInfo(zone))
    # Polars has zones of its own: `Africa/Niamey` was another hour then (1.44).
    if pl.Series([moment], dtype=pl.Datetime("us", zone)).dt.epoch("us").item() != microseconds:
        raise _NoSuchValueError
    return moment
