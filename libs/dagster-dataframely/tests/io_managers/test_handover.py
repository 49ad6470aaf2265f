"""An IO manager is handed a lazy frame where its output's type says so and it takes one."""

import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.declare import annotated, declare
from support.storage import FileIOManager

import dagster_dataframely as dd
from dagster_dataframely.errors import ValidationAbortError


class Orders(dy.Schema):
    """A key and an error rule."""

    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


FRAME = pl.DataFrame({"id": [2, 1, 3], "amount": [1.0, -1.0, 2.0]})
"""The second row is an error row."""
SURVIVORS = FRAME[[0, 2]]


def eager(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def lazy(frame: pl.DataFrame) -> pl.LazyFrame:
    return frame.lazy()


ANNOTATIONS = [pl.LazyFrame, pl.DataFrame]


class Recording(dg.IOManager):
    """Keeps the kind of what it is handed and the rows it holds while it may be read."""

    def __init__(self) -> None:
        self.kinds: dict[str, type] = {}
        self.rows: dict[str, pl.DataFrame] = {}

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        self.kinds[context.asset_key.to_user_string()] = type(obj)
        self.rows[context.asset_key.to_user_string()] = obj.lazy().collect()

    def load_input(self, context: dg.InputContext) -> None: ...


@pytest.mark.parametrize(
    ("annotation", "lazy_output"),
    [
        (pl.LazyFrame, True),
        (pl.LazyFrame | None, True),
        (typing.Optional[pl.LazyFrame], True),  # noqa: UP045
        (dg.MaterializeResult[pl.LazyFrame], True),
        (dg.MaterializeResult[pl.LazyFrame] | None, True),
        (dy.LazyFrame[Orders], True),
        ("pl.LazyFrame | None", True),
        (pl.DataFrame, False),
        (pl.DataFrame | None, False),
        (pl.DataFrame | pl.LazyFrame, False),
        (dg.MaterializeResult, False),
        (None, False),
    ],
    ids=str,
)
def test_these_annotations_make_a_lazy_output(annotation: Any, *, lazy_output: bool) -> None:
    (output,) = (
        output
        for output in declare(Orders, annotated(annotation, None)).op.output_defs
        if output.name == "result"
    )
    assert (output.dagster_type.typing_type is pl.LazyFrame) is lazy_output


@pytest.mark.parametrize("engine", ["auto", "in-memory", "streaming"])
@pytest.mark.parametrize("kind", [eager, lazy])
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_the_annotation_decides_what_table_and_quarantine_are_handed_over_as(
    annotation: Any, kind: Callable[[pl.DataFrame], Any], engine: Any, tmp_path: Path
) -> None:
    manager = Recording()
    orders = declare(
        Orders,
        annotated(annotation, kind(FRAME)),
        quarantine=True,
        engine=engine,
        temp_dir=tmp_path,
    )
    assert dg.materialize([orders], resources={"io_manager": manager}).success
    assert manager.kinds == {"orders": annotation, "orders_quarantine": annotation}
    assert_frame_equal(manager.rows["orders"], SURVIVORS)
    assert manager.rows["orders_quarantine"]["id"].to_list() == [1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [eager, lazy])
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_a_direct_invocation_gives_a_data_frame(
    annotation: Any, kind: Callable[[pl.DataFrame], Any]
) -> None:
    result = dd.testing.invoke(declare(Orders, annotated(annotation, kind(FRAME)), quarantine=True))
    assert isinstance(result.table, pl.DataFrame)
    assert_frame_equal(result.table, SURVIVORS)


@pytest.fixture
def pickled(tmp_path: Path) -> dg.FilesystemIOManager:
    return dg.FilesystemIOManager(base_dir=str(tmp_path / "pickled"))


@pytest.fixture
def parquet(tmp_path: Path) -> object:
    from dagster_polars import PolarsParquetIOManager

    return PolarsParquetIOManager(base_dir=str(tmp_path / "parquet"))


@pytest.fixture
def duckdb(tmp_path: Path) -> object:
    from dagster_duckdb_polars import DuckDBPolarsIOManager

    return DuckDBPolarsIOManager(database=str(tmp_path / "orders.duckdb"))


MANAGERS = [
    "pickled",
    pytest.param("parquet", marks=pytest.mark.io_managers),
    pytest.param("duckdb", marks=pytest.mark.io_managers),
]


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("kind", [eager, lazy])
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_every_manager_takes_what_it_is_handed_and_a_later_run_reads_it(
    annotation: Any,
    kind: Callable[[pl.DataFrame], Any],
    manager: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    staging = tmp_path / "staging"
    staging.mkdir()
    orders = declare(Orders, annotated(annotation, kind(FRAME)), quarantine=True, temp_dir=staging)
    # DuckDB loads no lazy frame; the others that keep the object give back what they got.
    reads_lazily = annotation is pl.LazyFrame and manager != "duckdb"
    seen: list[pl.DataFrame] = []

    def downstream(orders: Any, rejected: Any) -> None:
        seen.extend([orders.lazy().collect(), rejected.lazy().collect()])

    frame_type = pl.LazyFrame if reads_lazily else pl.DataFrame
    downstream.__annotations__ = {"orders": frame_type, "rejected": frame_type, "return": None}
    reader = dg.asset(ins={"rejected": dg.AssetIn("orders_quarantine")})(downstream)
    resources = {"io_manager": request.getfixturevalue(manager)}
    assert dg.materialize([orders], resources=resources).success
    quarantine = dd.build_quarantine_spec(Orders, orders)
    later = dg.materialize([orders, quarantine, reader], selection=[reader], resources=resources)
    assert later.success
    assert_frame_equal(seen[0], SURVIVORS)
    assert seen[1]["id"].to_list() == [1]
    assert list(staging.iterdir()) == []


@pytest.mark.parametrize("kind", [eager, lazy])
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_rows_in_memory_outlive_the_staging(
    annotation: Any, kind: Callable[[pl.DataFrame], Any], tmp_path: Path
) -> None:
    orders = declare(Orders, annotated(annotation, kind(FRAME)), quarantine=True, temp_dir=tmp_path)
    result = dg.materialize([orders], resources={"io_manager": dg.mem_io_manager})
    assert list(tmp_path.iterdir()) == []
    table = result.output_for_node("orders")
    assert isinstance(table, annotation)
    assert_frame_equal(table.lazy().collect(), SURVIVORS)


@pytest.mark.io_managers
def test_a_failing_plan_leaves_the_last_parquet_table(parquet: Any, tmp_path: Path) -> None:
    def stop(frame: pl.DataFrame) -> pl.DataFrame:
        message = "half way"
        raise RuntimeError(message)

    resources = {"io_manager": parquet}
    dg.materialize(
        [declare(Orders, annotated(pl.LazyFrame, SURVIVORS.lazy()))], resources=resources
    )
    table = tmp_path / "parquet" / "orders.parquet"
    before = table.read_bytes()
    broken = declare(
        Orders, annotated(pl.LazyFrame, FRAME.lazy().map_batches(stop, schema=FRAME.schema))
    )
    assert not dg.materialize([broken], resources=resources, raise_on_error=False).success
    with pytest.raises(ValidationAbortError):
        dg.materialize(
            [declare(Orders, annotated(pl.LazyFrame, FRAME.lazy()))], resources=resources
        )
    assert table.read_bytes() == before


def test_each_phase_of_a_lazy_run_is_logged(
    files: FileIOManager, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = declare(Orders, annotated(pl.LazyFrame, FRAME.lazy()), quarantine=True)
    dg.materialize([orders], resources={"io_manager": files})
    logged = capsys.readouterr().err
    for phase in (
        "Staged 3 rows, ",
        "Looked for duplicates under `primary_key`: 3 rows in ",
        "Evaluated the other rules and split the rows: 3 rows in ",
        "Error rows written to orders_quarantine at ",
        "orders: 3 rows in, 2 written in ",
    ):
        assert phase in logged


def test_assets_with_the_same_types_load_and_run_together(files: FileIOManager) -> None:
    @dd.asset(Orders)
    def first() -> pl.LazyFrame:
        return SURVIVORS.lazy()

    def reads_first(first: Any) -> Any:
        return first

    reads_first.__annotations__ = {"first": dy.LazyFrame[Orders], "return": pl.LazyFrame}
    second, third = (dd.asset(Orders, name=name)(reads_first) for name in ("second", "third"))
    defs = dg.Definitions([first, second, third], resources={"io_manager": files})
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process().success
    assert files.files == ["first.parquet", "second.parquet", "third.parquet"]
