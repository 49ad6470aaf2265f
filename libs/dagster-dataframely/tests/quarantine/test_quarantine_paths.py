"""Where a file writer puts error rows, locally and in an object store."""

import os
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


def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("someone's")
    link = tmp_path / "orders_quarantine.parquet"
    link.symlink_to(elsewhere)
    assert_frame_equal(read(dd.wiring.file_writer("orders", tmp_path)(ROWS)), ROWS)
    assert not link.is_symlink()
    assert elsewhere.read_text() == "someone's"


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_link_in_place_of_the_unfinished_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    (tmp_path / "elsewhere").write_text("someone's")
    link = tmp_path / ".0000000000000000.unfinished"
    link.symlink_to(tmp_path / target)
    with pytest.raises(dd.errors.QuarantineDirError) as raised:
        dd.wiring.file_writer("orders", tmp_path)(ROWS)
    assert isinstance(raised.value.__cause__, FileExistsError)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "someone's"
    assert not (tmp_path / "nowhere").exists()


def test_two_writes_use_two_unfinished_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    rename = Path.replace

    def replace(source: Path, target: Path) -> Path:
        assert source.parent == target.parent
        seen.add(source.name)
        return rename(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    write = dd.wiring.file_writer("orders", tmp_path)
    write(ROWS)
    write(ROWS)
    assert len(seen) == 2


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_file_has_the_mode_that_the_umask_gives(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        address = dd.wiring.file_writer("orders", tmp_path)(ROWS)
    finally:
        os.umask(before)
    assert Path(address).stat().st_mode & 0o777 == 0o666 & ~umask


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
