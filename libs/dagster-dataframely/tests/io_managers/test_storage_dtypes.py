"""A column that a storage would lose is refused before anything is written; the others come back."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import declare
from support.round_trips import ALL_DTYPES, STORAGES, managers, send, series_of
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely._io_managers.dtypes import find_unstorable
from dagster_dataframely.errors import StorageDtypeError, UnstorableColumn


def is_refused(storage: Any, dtype: pl.DataType) -> bool:
    return find_unstorable("any", storage, {"column": dtype}) is not None


@pytest.mark.io_managers
@pytest.mark.parametrize("storage", STORAGES)
def test_what_is_not_refused_comes_back_with_every_value(storage: str, tmp_path: Path) -> None:
    kept = [dtype for dtype in ALL_DTYPES if not is_refused(storage, dtype)]
    frame = pl.DataFrame({f"c{index}": series_of(dtype) for index, dtype in enumerate(kept)})
    found = send(frame, managers(tmp_path)[storage])
    assert_frame_equal(found.cast(frame.schema), frame)


TRY = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from support.round_trips import try_each
storage, folder, *numbers = sys.argv[1:]
try_each(storage, map(int, numbers), Path(folder))
"""


@pytest.mark.io_managers
@pytest.mark.parametrize("storage", STORAGES)
def test_what_is_refused_would_be_lost(storage: str, tmp_path: Path) -> None:
    refused = [n for n, dtype in enumerate(ALL_DTYPES) if is_refused(storage, dtype)]
    kept: dict[int, str] = {}
    while left := [str(number) for number in refused if number not in kept]:
        command = [sys.executable, "-c", TRY, storage, str(tmp_path), *left]
        tried = subprocess.run(
            command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False
        )
        for line in tried.stdout.splitlines():
            number, *found = line.split()
            kept[int(number)] = found[0] if found else "ended the process"
    assert {
        str(ALL_DTYPES[number]): found for number, found in kept.items() if found == "True"
    } == {}


class Parcels(dy.Schema):
    """A column for each storage that it would lose, one of them inside of another."""

    id = dy.Int64(primary_key=True, min=0)
    carrier = dy.Enum(["secret"], nullable=True)
    trip = dy.Struct({"time": dy.List(dy.Duration())}, nullable=True)
    thing = dy.Object(nullable=True)


NO_PARCELS = Parcels.create_empty()

LOST = {
    "DuckDB": ("trip", "thing"),
    "Delta Lake": ("carrier", "trip", "thing"),
    "Parquet": ("thing",),
}


@pytest.mark.io_managers
@pytest.mark.parametrize("quarantine", [True, False])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_declared_column_that_would_be_lost_fails_the_run_before_the_function(
    storage: str, tmp_path: Path, instance: dg.DagsterInstance, *, quarantine: bool
) -> None:
    executions = []

    @dd.asset(Parcels, key_prefix="shop", quarantine=quarantine)
    def parcels() -> pl.DataFrame:
        executions.append(1)
        return NO_PARCELS

    resources = {"io_manager": managers(tmp_path)[storage]}
    with pytest.raises(StorageDtypeError) as raised:
        dg.materialize([parcels], instance=instance, resources=resources)
    assert (raised.value.asset, raised.value.storage) == ("shop/parcels", storage)
    assert raised.value.columns == LOST[storage]
    assert "secret" not in str(raised.value)
    assert executions == []
    assert list(tmp_path.iterdir()) == []


def test_the_error_says_what_to_declare_instead() -> None:
    dtypes: dict[str, pl.DataType] = {"trip": pl.List(pl.Duration()), "thing": pl.Object()}
    error = find_unstorable("parcels", "DuckDB", dtypes)
    assert error is not None
    assert error.unstorable == (
        UnstorableColumn("trip", "Duration", "`dy.Int64` of microseconds"),
        UnstorableColumn("thing", "Object", "a dtype of Polars"),
    )
    assert str(error) == (
        "Asset `parcels`: DuckDB does not give back `trip` (Duration): declare `dy.Int64` of "
        "microseconds; `thing` (Object): declare a dtype of Polars. Nothing was written; "
        '`unstorable="warn"` would.'
    )


class Anything(dy.Schema):
    """What the second column holds, only a frame says."""

    id = dy.Int64(nullable=True, min=0)
    value = dy.Any()


DURATIONS = pl.DataFrame({"id": [1, -1], "value": series_of(pl.Duration("us"))})
"""The second row is an error row."""


def hand_wired(frame: pl.DataFrame) -> dg.AssetsDefinition:
    @dg.asset(check_specs=dd.wiring.check_specs(Anything, asset="anything"), output_required=False)
    def anything(context: dg.AssetExecutionContext) -> Any:
        writer = dd.wiring.delegating_writer(context)
        yield from dd.wiring.process(Anything, frame, asset="anything", quarantine_writer=writer)

    return anything


def decorated(frame: pl.DataFrame) -> dg.AssetsDefinition:
    return declare(Anything, frame, quarantine=True)


@pytest.mark.io_managers
@pytest.mark.parametrize("build", [decorated, hand_wired])
@pytest.mark.parametrize("rows", [1, 2], ids=["table", "quarantine"])
def test_what_only_the_frame_says_is_refused_before_anything_is_written(
    rows: int, build: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    resources = {"io_manager": managers(tmp_path)["DuckDB"]}
    with pytest.raises(StorageDtypeError, match="`value`"):
        dg.materialize([build(DURATIONS.head(rows))], instance=instance, resources=resources)
    assert list(tmp_path.iterdir()) == []


class Member(dy.Schema):
    """A column that Delta Lake would lose."""

    id = dy.Int64(primary_key=True)
    kind = dy.Enum(["a"])


class Both(dy.Collection):
    """The first member can be stored."""

    ids: dy.LazyFrame[Anything]
    kinds: dy.LazyFrame[Member]


@pytest.mark.io_managers
def test_a_member_that_would_be_lost_keeps_the_others_from_being_written(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    @dd.collection_asset(Both)
    def both() -> dict[str, pl.DataFrame]:
        return {"ids": DURATIONS.head(1), "kinds": Member.create_empty()}

    resources = {"io_manager": managers(tmp_path)["Delta Lake"]}
    with pytest.raises(StorageDtypeError, match="`kinds`"):
        dg.materialize([both], instance=instance, resources=resources)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.io_managers
def test_a_manager_that_writes_in_its_own_way_is_not_second_guessed(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    from dagster_polars import PolarsDeltaIOManager, PolarsParquetIOManager

    class AsText(PolarsDeltaIOManager):
        def write_df_to_path(self, context: Any, df: pl.DataFrame, path: Any) -> None:
            super().write_df_to_path(context, df.cast({pl.Enum: pl.String}), path)

    class ReadsInItsOwnWay(PolarsParquetIOManager):
        def scan_df_from_path(self, path: Any, context: Any, partition_key: Any = None) -> Any:
            return pl.scan_parquet(str(path))

    kinds = pl.DataFrame({"id": [1], "kind": ["a"]}, schema=Member.create_empty().schema)
    found: list[pl.DataFrame] = []

    @dg.asset(io_manager_key="memory")
    def read(member: pl.DataFrame) -> None:
        found.append(member)

    member = dd.asset(Member, name="member")(lambda: kinds)
    resources = {"io_manager": AsText(base_dir=str(tmp_path)), "memory": dg.mem_io_manager}
    dg.materialize([member, read], instance=instance, resources=resources)
    assert_frame_equal(Member.cast(found[0]), kinds)
    parcels = dd.asset(Parcels, name="parcels")(lambda: NO_PARCELS)
    with pytest.raises(StorageDtypeError, match="Parquet"):
        dg.materialize(
            [parcels],
            instance=instance,
            resources={"io_manager": ReadsInItsOwnWay(base_dir=str(tmp_path))},
        )


def test_a_manager_that_keeps_or_pickles_objects_takes_every_dtype(
    instance: dg.DagsterInstance, files: FileIOManager
) -> None:
    parcels = dd.asset(Parcels, name="parcels")(lambda: NO_PARCELS)
    resources = {"io_manager": dg.mem_io_manager}
    assert dg.materialize([parcels], instance=instance, resources=resources).success


def test_rows_that_cannot_be_staged_are_refused_before_the_plan_runs(
    instance: dg.DagsterInstance,
) -> None:
    executions = []

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        executions.append(1)
        return frame

    parcels = dd.asset(Parcels, name="parcels")(lambda: NO_PARCELS.lazy().map_batches(count))
    with pytest.raises(StorageDtypeError, match="a staging file does not give back `thing`"):
        dd.testing.invoke(parcels)
    assert executions == []
