"""What a measured process runs: each function prepares, and returns what is then timed.

Nothing but the module asked for is imported, since each side has an environment of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[], object]
"""What is timed; what it returns is kept as the facts of the run, if it is a mapping."""


@dataclass(frozen=True)
class Job:
    """What every program is given."""

    source: Path
    """The Parquet file of `lineitem`."""
    folder: Path
    """Where it writes: the table as `table.parquet`, other rows under other names."""
