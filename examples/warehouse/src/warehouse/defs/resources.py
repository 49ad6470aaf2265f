"""What the assets read from and write to."""

import dagster as dg

from warehouse.storage import build_resources


@dg.definitions
def resources() -> dg.Definitions:
    return dg.Definitions(resources=build_resources())
