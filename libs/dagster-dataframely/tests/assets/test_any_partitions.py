"""One input takes one partition, a range of them or a skipped one."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.typed import DRIFTED, RAW, Raw

import dagster_dataframely as dd
from dagster_dataframely.errors import InvalidArgumentError

DAYS = dg.StaticPartitionsDefinition(["mon", "tue", "wed"])
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SKIPS = dg.AssetIn(metadata={"allow_missing_partitions": True})
RANGE = {"dagster/asset_partition_range_start": "mon", "dagster/asset_partition_range_end": "wed"}


class Out(dy.Schema):
    """What is written; the tests look at what is read."""

    day = dy.String(nullable=True)


def lazy(seen: list[Any]) -> Callable[..., Any]:
    def out(raw: dict[str, dy.LazyFrame[Raw]] | dy.LazyFrame[Raw] | None) -> None:
        seen.append(raw)

    return out


def eager(seen: list[Any]) -> Callable[..., Any]:
    def out(raw: "dy.DataFrame[Raw] | dict[str, dy.DataFrame[Raw]] | None") -> None:
        seen.append(raw)

    return out


def given(frame_type: type) -> dg.DagsterType:
    return dd.dagster_type(Raw, lazy=frame_type is pl.LazyFrame, partitions="any")


@pytest.fixture
def run(tmp_path: Any) -> Callable[..., Any]:
    """What the input was in one run, or the error that failed it."""
    manager: Any = pytest.importorskip("dagster_polars").PolarsParquetIOManager(
        base_dir=str(tmp_path)
    )

    def run(
        build: Callable[[list[Any]], Any], frames: dict[str, pl.DataFrame], **arguments: Any
    ) -> Any:
        seen: list[Any] = []

        @dg.asset(partitions_def=DAYS, output_required=False)
        def raw(context: dg.AssetExecutionContext) -> Any:
            if context.partition_key in frames:
                yield dg.Output(frames[context.partition_key])

        out = dd.asset(Out, partitions_def=DAYS, ins={"raw": SKIPS})(build(seen))
        shared: Any = {"resources": {"io_manager": manager}, "run_config": QUIET}
        for day in DAYS.get_partition_keys():
            dg.materialize([raw], partition_key=day, **shared)
        dg.materialize([raw, out], selection=[out], **shared, **arguments)
        (found,) = seen
        return found

    return run


@pytest.mark.io_managers
@pytest.mark.parametrize(("build", "frame_type"), [(lazy, pl.LazyFrame), (eager, pl.DataFrame)])
def test_one_annotation_takes_any_number_of_partitions(
    run: Callable[..., Any], build: Any, frame_type: type
) -> None:
    frames = {"mon": RAW, "tue": RAW[:1]}
    assert type(run(build, frames, partition_key="mon")) is frame_type
    assert run(build, frames, partition_key="wed") is None
    found = run(build, frames, tags=RANGE)
    assert {day: type(frame) for day, frame in found.items()} == {
        "mon": frame_type,
        "tue": frame_type,
    }


@pytest.mark.io_managers
@pytest.mark.parametrize("arguments", [{"partition_key": "tue"}, {"tags": RANGE}])
def test_other_columns_fail_the_step(run: Callable[..., Any], arguments: Any) -> None:
    with pytest.raises(dg.DagsterTypeCheckDidNotPass):
        run(lazy, {"mon": RAW, "tue": DRIFTED}, **arguments)


@pytest.mark.parametrize("frame_type", [pl.LazyFrame, pl.DataFrame])
def test_the_type_takes_a_frame_a_dictionary_or_none(frame_type: type) -> None:
    found = given(frame_type)
    frame = frame_type(RAW.to_dict())
    context: Any = None
    for value in (frame, {"mon": frame}, {}, None):
        assert found.type_check(context, value).success
    for value in (1, frame_type(), {"mon": 1}, {"mon": frame, "tue": frame_type()}):
        assert not found.type_check(context, value).success
    assert found.typing_type == dict[str, frame_type]  # type: ignore[valid-type]


@pytest.mark.parametrize("build", [lazy, eager])
def test_the_annotation_gives_the_type(build: Any) -> None:
    asset = dd.asset(Out, partitions_def=DAYS)(build([]))
    frame_type = pl.LazyFrame if build is lazy else pl.DataFrame
    (definition,) = asset.node_def.input_defs
    assert definition.dagster_type.key == given(frame_type).key


def test_a_union_of_other_types_is_left_to_dagster() -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="Union"):

        @dd.asset(Out)
        def out(raw: dict[str, dy.LazyFrame[Raw]] | dy.DataFrame[Raw]) -> None: ...


def test_only_one_or_any_partitions() -> None:
    with pytest.raises(InvalidArgumentError, match="'all'"):
        dd.dagster_type(Raw, partitions="all")  # type: ignore[arg-type]
