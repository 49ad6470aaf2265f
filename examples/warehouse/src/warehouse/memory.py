"""How much memory a plan took."""

import resource
import sys
from pathlib import Path

import dagster as dg
import polars as pl

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def collect_measured(plan: pl.LazyFrame) -> dg.MaterializeResult[pl.DataFrame]:
    """Run a plan on the streaming engine; what it took is in the materialization's metadata.

    The peak is that of the whole process while the plan ran. The growth is what the plan added to it:
    0 where memory that an earlier step left to the process was enough. Without Linux's `/proc`, both
    count from the highest peak of the process so far.
    """
    _forget_peak()
    before = _peak_memory()
    table = plan.collect(engine="streaming")
    after = _peak_memory()
    return dg.MaterializeResult(
        value=table,
        metadata={
            "warehouse/peak_memory_mib": round(after, 1),
            "warehouse/peak_memory_growth_mib": round(after - before, 1),
        },
    )


def _forget_peak() -> None:
    """Make Linux count the peak from now on; `ru_maxrss` keeps the process's highest."""
    if _CLEAR_REFS.exists():
        _CLEAR_REFS.write_text("5")


def _peak_memory() -> float:
    """MiB of resident memory."""
    if _STATUS.exists():
        (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, others KiB.
    return peak / 1024**2 if sys.platform == "darwin" else peak / 1024
