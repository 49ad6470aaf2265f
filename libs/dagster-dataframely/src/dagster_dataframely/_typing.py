"""Name the types that are passed from package to package."""

from collections.abc import Callable

import polars as pl

Frame = pl.DataFrame | pl.LazyFrame

Log = Callable[[str], None]
"""Takes a line that says how far a long step has come."""
