"""What the assets read from and write to, and where their steps run."""

import os

import dagster as dg

from warehouse.storage import build_resources


@dg.definitions
def resources() -> dg.Definitions:
    return dg.Definitions(resources=build_resources(), executor=build_executor())


def build_executor() -> dg.ExecutorDefinition:
    """What `WAREHOUSE_EXECUTOR` names."""
    name = os.environ.get("WAREHOUSE_EXECUTOR", "in-process")
    if name == "multiprocess":
        return dg.multiprocess_executor
    if name == "dask":
        from dagster_dask import dask_executor

        local: dg.ExecutorDefinition = dask_executor.configured(
            {"cluster": {"local": {"n_workers": 2, "dashboard_address": ":0"}}}
        )
        return local
    # Most runs have one step: a process for each run is enough, without another for each step.
    return dg.in_process_executor
