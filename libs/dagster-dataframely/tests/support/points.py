"""Plans that count how often they run."""

import dataframely as dy
import polars as pl


class Points(dy.Schema):
    """A rule that streams and one that looks at all rows."""

    id = dy.Int64(primary_key=True)
    x = dy.Float64(min=0.0)


CLEAN = pl.DataFrame({"id": [3, 1, 2], "x": [1.0, 2.0, 3.0]})
"""No rule fails."""
