"""What the assets read from and write to, and how a run is executed."""

import dagster as dg

from warehouse.storage import build_resources


@dg.definitions
def resources() -> dg.Definitions:
    # Most runs have one step: a process for each run is enough, without another for each step.
    return dg.Definitions(resources=build_resources(), executor=dg.in_process_executor)
