"""Rules over several rows."""

from typing import Any

import dataframely as dy
import polars as pl

from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._validation.in_memory import evaluate
from dagster_dataframely._validation.verdict import Verdict


def verdict_of(
    schema: type[dy.Schema], frame: pl.DataFrame, *, sample: int = 5, **severities: Any
) -> Verdict[pl.DataFrame]:
    return evaluate(frame, read_schema(schema, severities), sample=sample)
