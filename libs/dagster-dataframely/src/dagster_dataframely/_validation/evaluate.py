"""Evaluate a frame on the engine that the settings choose."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import polars as pl

from dagster_dataframely._io_managers.dtypes import find_unstorable
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._settings import Engine
from dagster_dataframely._typing import Log
from dagster_dataframely._validation.in_memory import evaluate, in_one_chunk
from dagster_dataframely._validation.staging import UNPUBLISHED, stage_rows, staging_folder
from dagster_dataframely._validation.streaming import evaluate_plan
from dagster_dataframely._validation.verdict import Verdict


@contextmanager
def evaluate_frame(
    declaration: Declaration,
    frame: pl.DataFrame | pl.LazyFrame,
    log: Log,
    sink_options: Mapping[str, Any] = UNPUBLISHED,
) -> Iterator[Verdict[Any]]:
    """Evaluate the rules of a declaration; staged rows are there while the context is open.

    A lazy plan runs once, into a file, since it may not give the same rows twice. `sink_options` are
    those that its IO manager is going to ask for, so that the file can become the table.
    """
    rules, settings = declaration.rules, declaration.settings
    sample = settings.max_failure_samples
    streams = settings.engine is Engine.STREAMING
    in_order = rules.in_declared_order(frame.collect_schema())
    frame = frame.select(*in_order, *rules.row_columns[len(in_order) :])
    if isinstance(frame, pl.DataFrame) and not streams:
        yield evaluate(frame, rules, sample=sample)
        return
    plan = in_one_chunk(frame).lazy() if isinstance(frame, pl.DataFrame) else frame
    dtypes = plan.collect_schema()
    if error := find_unstorable(declaration.asset_name, "a staging file", dtypes):
        raise error
    with staging_folder(settings.temp_dir) as folder:
        if streams or settings.engine is Engine.AUTO:
            yield evaluate_plan(plan, rules, folder, sample=sample, log=log, options=sink_options)
        else:
            rows = stage_rows(plan, folder, log)
            yield evaluate(rows.collect(), rules, sample=sample)
