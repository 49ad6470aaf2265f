"""Know which dtypes a storage does not give back, and what to declare instead."""

from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, Literal

import polars as pl

from dagster_dataframely.errors import StorageDtypeError, UnstorableColumn

Storage = Literal["DuckDB", "Delta Lake", "Parquet", "a staging file"]
"""What the released IO managers write to, and where lazy frames are staged."""


_NO_FIELD = "a field, at least"


_NO_OBJECT = "a dtype of Polars"


def _is_int128(dtype: Any) -> bool:
    return dtype.is_integer() and str(dtype).endswith("128")


def _is_category(dtype: Any) -> bool:
    return isinstance(dtype, (pl.Enum, pl.Categorical))


def _has_no_field(dtype: Any) -> bool:
    return isinstance(dtype, pl.Struct) and not dtype.fields


def _counts_nanoseconds(dtype: Any) -> bool:
    return isinstance(dtype, pl.Datetime) and dtype.time_unit == "ns"


def _duckdb() -> tuple[int, ...]:
    return tuple(map(int, metadata.version("duckdb").split(".")[:2]))


def _loses_nanoseconds_in_duckdb(dtype: Any) -> bool:
    """DuckDB 2 has a type for them."""
    return _counts_nanoseconds(dtype) and dtype.time_zone is not None and _duckdb() < (2, 0)


def _loses_nanoseconds_of_the_day_in_duckdb(dtype: Any) -> bool:
    """DuckDB 1.5 has a type for them."""
    return bool(dtype == pl.Time) and _duckdb() < (1, 5)


_PARQUET: Mapping[Callable[[Any], bool], str] = {
    lambda dtype: dtype == pl.Object: _NO_OBJECT,
    _has_no_field: _NO_FIELD,
}


_LOST: Mapping[Storage, Mapping[Callable[[Any], bool], str]] = {
    "DuckDB": {
        **_PARQUET,
        _is_int128: "`dy.Decimal(38)`",
        lambda dtype: dtype == pl.Duration: "`dy.Int64` of microseconds",
        lambda dtype: isinstance(dtype, pl.Array) and _is_category(dtype.inner): "`dy.List`",
        _loses_nanoseconds_in_duckdb: '`time_unit="us"`',
        _loses_nanoseconds_of_the_day_in_duckdb: "`dy.Int64` of nanoseconds",
    },
    "Delta Lake": {
        **_PARQUET,
        _is_int128: "`dy.Decimal(38)`",
        _is_category: "`dy.String`",
        lambda dtype: dtype == pl.Duration: "`dy.Int64` of microseconds",
        lambda dtype: dtype == pl.Time: "`dy.Int64` of nanoseconds",
        lambda dtype: dtype == pl.Null: "a dtype that has values",
        _counts_nanoseconds: '`time_unit="us"`',
    },
    "Parquet": _PARQUET,
    "a staging file": _PARQUET,
}
"""For each storage what cannot be written, cannot be read back, or comes back with less: dagster-polars
0.27.12, dagster-duckdb-polars 0.28.13 to 0.29.27, duckdb 1.1 to 1.5, deltalake 1.0 to 1.6."""


def find_unstorable(
    asset: str, storage: Storage | None, dtypes: Mapping[str, pl.DataType]
) -> StorageDtypeError | None:
    """The error for columns that would be lost in a storage; `None` where none would."""
    if storage is None:
        return None
    found = (_unstorable(name, dtype, _LOST[storage]) for name, dtype in dtypes.items())
    columns = [column for column in found if column is not None]
    return StorageDtypeError(asset, storage, columns) if columns else None


def _unstorable(
    name: str, dtype: Any, refused: Mapping[Callable[[Any], bool], str]
) -> UnstorableColumn | None:
    for matches, instead in refused.items():
        if matches(dtype):
            # Without what is inside, which for an Enum are values.
            return UnstorableColumn(name, str(dtype.base_type()), instead)
    inner = [dtype.inner] if isinstance(dtype, (pl.List, pl.Array)) else []
    inner += [field.dtype for field in dtype.fields] if isinstance(dtype, pl.Struct) else []
    return next((found for d in inner if (found := _unstorable(name, d, refused))), None)
