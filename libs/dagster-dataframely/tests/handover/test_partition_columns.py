"""A manager that would replace the partitions of a table that a run is not about."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd


class Days(dy.Schema):
    day = dy.Int64(primary_key=True)
    v = dy.Int64()


if find_spec("dagster_deltalake_polars"):

    @pytest.mark.io_managers
    def test_dagster_deltalake_is_handed_no_partition_that_it_cannot_find(tmp_path: Path) -> None:
        from dagster_deltalake import LocalConfig
        from dagster_deltalake_polars import DeltaLakePolarsIOManager

        days = dg.StaticPartitionsDefinition(["1", "2"])

        @dd.asset(Days, partitions_def=days, metadata={"partition_expr": "day"})
        def table(context: dg.AssetExecutionContext) -> pl.DataFrame:
            return pl.DataFrame({"day": [int(context.partition_key)], "v": [1]})

        storage: Any = LocalConfig()
        manager = DeltaLakePolarsIOManager(root_uri=str(tmp_path), storage_options=storage)
        resources = {"io_manager": manager}
        assert dg.materialize([table], resources=resources, partition_key="1").success
        with pytest.raises(dd.errors.StoredTableError, match="the other partitions"):
            dg.materialize([table], resources=resources, partition_key="2")
