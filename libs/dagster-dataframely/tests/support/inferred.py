"""Run the command, and read what it prints."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl

from dagster_dataframely._infer.files import Table, read_batches

ORDERS = pl.DataFrame(
    {"order_id": [1, 2, 3], "class": ["a", None, "b"], "paid": [9.5, 0.25, float("nan")]}
)
"""A key, a name that is a keyword, a null and a NaN."""


IMPORT = "import dataframely as dy\n\n"
HEAD = "# Arguments in comments hold for these rows: move them into the parentheses.\n"


Run = Callable[..., str]


def written(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_parquet(path)
    return path


def table_of(frame: pl.DataFrame) -> Table:
    batches = functools.partial(read_batches, frame.lazy(), frame.height)
    return Table(frame.schema, frame.height, batches, "x", "x")


def schema_of(source: str) -> type[dy.Schema]:
    names: dict[str, Any] = {}
    exec(f"import datetime, zoneinfo\nfrom decimal import Decimal\n{source}", names)
    (name,) = re.findall(r"^class (\w+)", source, re.MULTILINE)
    schema: type[dy.Schema] = names[name]
    return schema
