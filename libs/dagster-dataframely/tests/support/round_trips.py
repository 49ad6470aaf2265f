"""Columns of every dtype, for a trip through a storage and back."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl

NEW_YORK = "America/New_York"

DTYPES: dict[str, list[Any]] = {
    "`Int8` to `Int64`, floats, `Decimal`, `Boolean`, `String`, `Binary`, `Date`": [
        pl.Int8(),
        pl.Int16(),
        pl.Int32(),
        pl.Int64(),
        pl.Float32(),
        pl.Float64(),
        pl.Decimal(12, 2),
        pl.Decimal(38, 10),
        pl.Boolean(),
        pl.String(),
        pl.Binary(),
        pl.Date(),
    ],
    "`UInt8`, `UInt16`, `UInt32`, `UInt64`": [pl.UInt8(), pl.UInt16(), pl.UInt32(), pl.UInt64()],
    "`Int128`": [pl.Int128()],
    "`Enum`, `Categorical`": [pl.Enum(["a"]), pl.Categorical()],
    "`Time`": [pl.Time()],
    "`Duration`": [pl.Duration("ms"), pl.Duration("us"), pl.Duration("ns")],
    "`Datetime` of ms": [pl.Datetime("ms")],
    "`Datetime` of us": [pl.Datetime("us")],
    "`Datetime` of ns": [pl.Datetime("ns")],
    "`Datetime` of ms, with a zone": [pl.Datetime("ms", NEW_YORK)],
    "`Datetime` of us, with a zone": [pl.Datetime("us", NEW_YORK)],
    "`Datetime` of ns, with a zone": [pl.Datetime("ns", NEW_YORK)],
    "`List`, `Struct`": [pl.List(pl.Int64()), pl.Struct({"a": pl.Int64(), "b": pl.String()})],
    "`Array`": [pl.Array(pl.Int64(), 2)],
    "`Array` of `Enum` or `Categorical`": [pl.Array(pl.Enum(["a"]), 1)],
    "`Struct` without fields": [pl.Struct([])],
    "`Null`": [pl.Null()],
    "`Object`": [pl.Object()],
}
"""Under what the guide calls them."""

ALL_DTYPES = [dtype for dtypes in DTYPES.values() for dtype in dtypes]
STORAGES = ["DuckDB", "Delta Lake", "Parquet"]

VALUES: dict[Any, Any] = {
    pl.Float32: float("nan"),
    pl.Float64: -float("inf"),
    pl.Decimal: Decimal("1.25"),
    pl.Boolean: True,
    pl.String: "é",
    pl.Binary: b"\x00\xff",
    pl.Enum: "a",
    pl.Categorical: "a",
    pl.List: [1, None],
    pl.Null: None,
}
COUNTED = 1_719_835_200_000_000_001
"""Not a whole number of anything longer; as nanoseconds a day of 2024."""


def series_of(dtype: Any) -> pl.Series:
    """A value that is hard to keep, and a null where there can be one."""
    if isinstance(dtype, pl.Struct):
        value = {field.name: series_of(field.dtype)[0] for field in dtype.fields}
        return pl.Series([value, None if dtype.fields else {}], dtype=dtype)
    if isinstance(dtype, pl.Array):
        return pl.Series([[series_of(dtype.inner)[0]] * dtype.size, None], dtype=dtype)
    if dtype == pl.Object:
        return pl.Series([object(), None], dtype=dtype)
    if dtype.base_type() in VALUES:
        return pl.Series([VALUES[dtype.base_type()], None], dtype=dtype)
    count = {"ms": COUNTED // 10**6, "us": COUNTED // 1000}.get(
        getattr(dtype, "time_unit", ""), COUNTED
    )
    if dtype == pl.Time:
        count = 1
    return pl.Series([1 if dtype.is_integer() or dtype == pl.Date else count, None]).cast(dtype)


def managers(folder: Path) -> dict[str, Any]:
    """The released IO managers by what they write to, each with a place of its own."""
    from dagster_duckdb_polars import DuckDBPolarsIOManager
    from dagster_polars import PolarsDeltaIOManager, PolarsParquetIOManager

    return {
        "DuckDB": DuckDBPolarsIOManager(database=str(folder / "d.duckdb")),
        "Delta Lake": PolarsDeltaIOManager(base_dir=str(folder / "delta")),
        "Parquet": PolarsParquetIOManager(base_dir=str(folder / "parquet")),
    }


def session_zone() -> str:
    """The time zone of DuckDB's sessions, which is the machine's."""
    import duckdb

    with duckdb.connect() as connection:
        return str(connection.execute("select current_setting('TimeZone')").pl().item())


def send(frame: pl.DataFrame, manager: object) -> pl.DataFrame:
    """A frame through an IO manager and back, without this library."""
    found: list[pl.DataFrame] = []

    @dg.asset(metadata={"n_rows": 0})
    def written() -> pl.DataFrame:
        return frame

    @dg.asset(io_manager_key="memory")
    def read(written: pl.DataFrame) -> None:
        found.append(written)

    resources = {"io_manager": manager, "memory": dg.mem_io_manager}
    dg.materialize([written, read], resources=resources)
    return found[0].select(frame.columns)


def try_each(storage: str, numbers: Iterator[int], folder: Path) -> None:
    """Print, for each dtype by its number, whether it comes back with its values.

    Some end the process; whoever calls it goes on after the last number that was printed.
    """
    for number in numbers:
        print(number, end=" ", flush=True)
        frame = series_of(ALL_DTYPES[number]).to_frame("column")
        place = folder / str(number)
        place.mkdir()
        try:
            found = send(frame, managers(place)[storage])
            kept = found.cast(frame.schema).equals(frame)
        except BaseException:  # Polars' panics are no `Exception`.
            kept = False
        print(kept, flush=True)
