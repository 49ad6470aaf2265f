"""A frame to a verdict whose error rows are stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely._checks import columns_check_result
from dagster_dataframely._declaration import Declaration, Surroundings
from dagster_dataframely._quarantine import quarantine_frame
from dagster_dataframely._ranges import Parts
from dagster_dataframely._returned import Returned
from dagster_dataframely._settings import Engine
from dagster_dataframely._staging import stage_rows, staging_folder
from dagster_dataframely._storage import refuse_unstorable
from dagster_dataframely._streaming import evaluate_plan
from dagster_dataframely._validation import Verdict, evaluate, in_one_chunk
from dagster_dataframely.errors import ColumnSchemaError


def check_columns(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame
) -> dg.AssetCheckResult:
    """The column-schema check; reads only the frame's schema, so a lazy plan does not run."""
    found = frame.collect_schema()
    return columns_check_result(
        declaration.asset_key,
        declaration.rules.mismatches(found),
        [name for name in found if name not in declaration.rules.columns],
        declaration.settings,
    )


def column_schema_error(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame, *, stored: bool = False
) -> ColumnSchemaError:
    """What a column-schema check that fails raises; `stored` where no function returned the frame."""
    found = frame.collect_schema()
    return ColumnSchemaError(
        declaration.asset_name,
        declaration.rules.name,
        declaration.rules.mismatches(found),
        castable=declaration.rules.is_castable(found),
        stored=stored,
    )


@contextmanager
def verdict_of(
    declaration: Declaration, frame: pl.DataFrame | pl.LazyFrame, surroundings: Surroundings
) -> Iterator[Verdict[Any]]:
    """Evaluate the rules where the engine says.

    A lazy plan runs once, into a file, since it may not give the same rows twice.
    """
    rules, settings = declaration.rules, declaration.settings
    sample, log = settings.max_failure_samples, surroundings.log
    streams = settings.engine is Engine.STREAMING
    if isinstance(frame, pl.DataFrame) and not streams:
        yield evaluate(frame, rules, sample=sample)
        return
    plan = in_one_chunk(frame).lazy() if isinstance(frame, pl.DataFrame) else frame
    staged = plan.select(rules.column_names)
    refuse_unstorable(declaration.asset_name, "a staging file", staged.collect_schema())
    with staging_folder(settings.temp_dir) as folder:
        if streams or settings.engine is Engine.AUTO:
            yield evaluate_plan(staged, rules, folder, sample=sample, log=log)
        else:
            rows = stage_rows(staged, folder, log)
            yield evaluate(rows.collect(), rules, sample=sample)


@dataclass(frozen=True)
class Judged:
    """A verdict whose error rows are stored, and what it is about."""

    declaration: Declaration
    result: Returned
    columns_check: dg.AssetCheckResult
    verdict: Verdict[Any]
    surroundings: Surroundings
    quarantined: pl.DataFrame | pl.LazyFrame | None = None
    address: str | None = None
    """Where the error rows are; `None` where nothing was written."""

    @cached_property
    def parts(self) -> Parts:
        """The verdict on each partition of a run over several."""
        together = self.surroundings.partition_range
        return [] if together is None else together.parts(self.verdict, self.declaration.rules)


def judge(
    declaration: Declaration,
    result: Returned,
    columns_check: dg.AssetCheckResult,
    verdict: Verdict[Any],
    surroundings: Surroundings,
) -> Judged:
    """Write the error rows, where there are any and something takes them."""
    judged = Judged(declaration, result, columns_check, verdict, surroundings)
    if not verdict.error_count or surroundings.writer is None:
        return judged
    quarantined = quarantined_rows(declaration, verdict, surroundings)
    address = surroundings.writer(quarantined)
    surroundings.log(f"Error rows written to {address}: {verdict.error_count:,}.")
    return replace(judged, quarantined=quarantined, address=address)


def quarantined_rows(
    declaration: Declaration, verdict: Verdict[Any], surroundings: Surroundings
) -> pl.DataFrame | pl.LazyFrame:
    """The error rows as the quarantine's layout has them and its IO manager takes them."""
    frame: pl.DataFrame | pl.LazyFrame = quarantine_frame(
        verdict.error_rows,
        declaration.rules,
        declaration.settings.quarantine_layout,
        run_id=surroundings.run_id,
        lists=surroundings.lists,
    )
    return surroundings.hand_over(frame)
