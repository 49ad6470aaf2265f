"""How much memory a step took."""

import resource
import sys

import dagster as dg
import polars as pl


def collect_measured(plan: pl.LazyFrame) -> dg.MaterializeResult[pl.DataFrame]:
    """Run a plan on the streaming engine; what it took is in the materialization's metadata.

    The peak is that of the process since it started. The growth is the part of it that the plan
    caused: 0 where an earlier step of the same process needed more.
    """
    before = peak_memory()
    table = plan.collect(engine="streaming")
    after = peak_memory()
    return dg.MaterializeResult(
        value=table,
        metadata={
            "warehouse/peak_memory_mib": round(after, 1),
            "warehouse/peak_memory_growth_mib": round(after - before, 1),
        },
    )


def peak_memory() -> float:
    """MiB of resident memory."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts KiB, macOS bytes.
    return peak / 1024**2 if sys.platform == "darwin" else peak / 1024
