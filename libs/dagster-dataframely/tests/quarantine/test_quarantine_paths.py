"""Where a file writer puts error rows, locally and in an object store."""

from pathlib import Path

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from upath import UPath

import dagster_dataframely as dd

ROWS = pl.DataFrame({"id": [1, 2]})
OTHERS = pl.DataFrame({"id": [3]})
GRID = dg.MultiPartitionKey({"origin": "EWR", "month": "2013-01"})


class Orders(dy.Schema):
    """One key."""

    id = dy.Int64(primary_key=True)


def read(address: str) -> pl.DataFrame:
    return pl.read_parquet(UPath(address).read_bytes())


@pytest.mark.parametrize("protocol", ["", "memory:/"], ids=["local", "object store"])
@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        (None, "sales/orders_quarantine.parquet"),
        ("2013-01", "sales/orders_quarantine/2013-01.parquet"),
        (GRID, "sales/orders_quarantine/2013-01/EWR.parquet"),
    ],
    ids=["unpartitioned", "month", "grid"],
)
def test_a_later_write_replaces_the_file(
    protocol: str, partition: str | None, expected: str, tmp_path: Path
) -> None:
    write = dd.wiring.file_writer(["sales", "orders"], f"{protocol}{tmp_path}", partition)
    assert_frame_equal(read(write(ROWS)), ROWS)
    address = write(OTHERS)
    assert address.endswith(expected)
    assert_frame_equal(read(address), OTHERS)
    assert [path.name for path in UPath(address).parent.iterdir()] == [UPath(address).name]


def test_a_write_that_fails_leaves_the_older_file(tmp_path: Path) -> None:
    write = dd.wiring.file_writer("orders", tmp_path)
    address = write(ROWS)
    unwritable = pl.DataFrame({"id": [object()]})
    with pytest.raises(pl.exceptions.PolarsError):
        write(unwritable)
    assert [path.name for path in tmp_path.iterdir()] == ["orders_quarantine.parquet"]
    assert_frame_equal(read(address), ROWS)


@pytest.mark.parametrize("partition", [GRID, "2013-01|EWR"], ids=["key", "text"])
def test_invoke_takes_the_partition_of_a_grid_as_key_or_text(partition: str) -> None:
    grid = dg.MultiPartitionsDefinition(
        {
            "month": dg.StaticPartitionsDefinition(["2013-01"]),
            "origin": dg.StaticPartitionsDefinition(["EWR"]),
        }
    )

    @dd.asset(Orders, partitions_def=grid)
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        assert isinstance(context.partition_key, dg.MultiPartitionKey)
        assert context.partition_key.keys_by_dimension == {"month": "2013-01", "origin": "EWR"}
        return ROWS

    result = dd.testing.invoke(orders, partition_key=partition)
    assert result.metadata["dagster/partition_row_count"] == 2


def test_a_fan_in_that_is_no_dictionary_fails_its_type() -> None:
    @dd.asset(Orders)
    def orders(parts: dict[str, dy.DataFrame[Orders]]) -> pl.DataFrame:
        return pl.concat(parts.values())

    with pytest.raises(dg.DagsterTypeCheckDidNotPass, match="expected a dictionary by partition"):
        dd.testing.invoke(orders, ROWS)
    assert dd.testing.invoke(orders, {"a": ROWS}).table is not None
