"""Inputs annotated with a schema are loaded as Polars frames and checked before the body."""

import re
from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.execution import Execute
from support.storage import FileIOManager

import dagster_dataframely as dd


class Raw(dy.Schema):
    """What is read."""

    id = dy.Int64(primary_key=True)
    x = dy.Float64(min=0.0)


class Out(dy.Schema):
    """What is written; no rule."""

    id = dy.Int64(nullable=True)


RAW = pl.DataFrame({"id": [1, 2], "x": [1.0, 2.0], "undeclared": ["a", "b"]})
"""The schema's columns and one more, which an input may have."""

INVALID = pl.DataFrame({"id": [1, 1], "x": [-1.0, 2.0]})
"""The columns are right and every row fails a rule: rules are not an input's matter."""

DRIFTED = pl.DataFrame({"x": [1, 2]})
"""A missing column and another dtype."""

MISMATCH = "`id` is missing, declared Int64; `x` is Int64, declared Float64"

DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])
GRID = dg.MultiPartitionsDefinition({"day": DAYS, "city": dg.StaticPartitionsDefinition(["oslo"])})
GRID_KEYS = [dg.MultiPartitionKey({"city": "oslo", "day": day}) for day in ("mon", "tue")]


def build_raw(
    frame: pl.DataFrame, partitions_def: dg.PartitionsDefinition[Any] | None = None
) -> dg.AssetsDefinition:
    @dg.asset(partitions_def=partitions_def)
    def raw() -> pl.DataFrame:
        return frame

    return raw


Function = Callable[..., Any]


def typed_eager(seen: list[Any]) -> Function:
    def out(raw: dy.DataFrame[Raw]) -> pl.DataFrame:
        seen.append(raw)
        return raw.select("id")

    return out


def typed_lazy(seen: list[Any]) -> Function:
    def out(raw: dy.LazyFrame[Raw]) -> pl.LazyFrame:
        seen.append(raw)
        return raw.select("id")

    return out


def strings_eager(seen: list[Any]) -> Function:
    def out(raw: "dy.DataFrame[Raw]") -> "pl.DataFrame":
        seen.append(raw)
        return raw.select("id")

    return out


def strings_lazy(seen: list[Any]) -> Function:
    def out(raw: "dy.LazyFrame[Raw]") -> "pl.LazyFrame":
        seen.append(raw)
        return raw.select("id")

    return out


@pytest.fixture
def materialize(
    files: FileIOManager, instance: dg.DagsterInstance
) -> Callable[..., dg.ExecuteInProcessResult]:
    def materialize(*assets: dg.AssetsDefinition, **arguments: Any) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            assets, instance=instance, resources={"io_manager": files}, **arguments
        )

    return materialize


Materialize = Callable[..., dg.ExecuteInProcessResult]


@pytest.mark.parametrize(
    ("build", "frame_type"),
    [
        (typed_eager, pl.DataFrame),
        (typed_lazy, pl.LazyFrame),
        (strings_eager, pl.DataFrame),
        (strings_lazy, pl.LazyFrame),
    ],
)
@pytest.mark.parametrize(
    ("frame", "quarantine"), [(RAW, False), (INVALID, True)], ids=["valid", "rows that fail rules"]
)
def test_a_typed_input_is_loaded_as_the_frame_it_names(
    materialize: Materialize,
    build: Callable[[list[Any]], Function],
    frame_type: type,
    frame: pl.DataFrame,
    *,
    quarantine: bool,
) -> None:
    seen: list[Any] = []
    out = dd.asset(Out, quarantine=quarantine)(build(seen))
    assert materialize(build_raw(frame), out).success
    (loaded,) = seen
    assert isinstance(loaded, (pl.DataFrame, pl.LazyFrame))
    assert type(loaded) is frame_type
    assert_frame_equal(loaded.lazy().collect(), frame)


@pytest.mark.parametrize("build", [typed_eager, typed_lazy, strings_eager, strings_lazy])
def test_other_columns_fail_the_step_before_the_body(
    materialize: Materialize, build: Callable[[list[Any]], Function]
) -> None:
    seen: list[Any] = []
    out = dd.asset(Out)(build(seen))
    with pytest.raises(dg.DagsterTypeCheckDidNotPass, match=re.escape(MISMATCH)):
        materialize(build_raw(DRIFTED), out)
    assert seen == []


@pytest.mark.parametrize(
    ("build", "annotation"), [(typed_eager, "pl.DataFrame"), (typed_lazy, "pl.LazyFrame")]
)
def test_other_dtypes_that_can_be_cast_name_the_cast(
    materialize: Materialize, build: Callable[[list[Any]], Function], annotation: str
) -> None:
    out = dd.asset(Out)(build([]))
    cast = f"Annotate `{annotation}` and write `dd.strict_cast(Raw, frame)`"
    wanted = f"`x` is Int64, declared Float64. {cast}"
    with pytest.raises(dg.DagsterTypeCheckDidNotPass, match=re.escape(wanted)):
        materialize(build_raw(RAW.cast({"x": pl.Int64})), out)


def fan_in_days_eager(seen: list[Any]) -> Function:
    def out(raw: dict[str, dy.DataFrame[Raw]]) -> None:
        seen.append(raw)

    return out


def fan_in_days_lazy(seen: list[Any]) -> Function:
    def out(raw: dict[str, dy.LazyFrame[Raw]]) -> None:
        seen.append(raw)

    return out


def fan_in_grid_eager(seen: list[Any]) -> Function:
    def out(raw: dict[dg.MultiPartitionKey, dy.DataFrame[Raw]]) -> None:
        seen.append(raw)

    return out


def fan_in_grid_lazy(seen: list[Any]) -> Function:
    def out(raw: "dict[dg.MultiPartitionKey, dy.LazyFrame[Raw]]") -> None:
        seen.append(raw)

    return out


FAN_INS = [
    (fan_in_days_eager, DAYS, ["mon", "tue"], pl.DataFrame),
    (fan_in_days_lazy, DAYS, ["mon", "tue"], pl.LazyFrame),
    (fan_in_grid_eager, GRID, GRID_KEYS, pl.DataFrame),
    (fan_in_grid_lazy, GRID, GRID_KEYS, pl.LazyFrame),
]


@pytest.mark.parametrize(("build", "partitions_def", "keys", "frame_type"), FAN_INS)
def test_a_typed_fan_in_is_a_dictionary_of_frames(
    materialize: Materialize,
    build: Callable[[list[Any]], Function],
    partitions_def: dg.PartitionsDefinition[Any],
    keys: list[str],
    frame_type: type,
) -> None:
    seen: list[Any] = []
    raw, out = build_raw(RAW, partitions_def), dd.asset(Out)(build(seen))
    for key in keys:
        materialize(raw, partition_key=key)
    assert materialize(raw, out, selection=[out]).success
    (loaded,) = seen
    assert {key: type(frame) for key, frame in loaded.items()} == dict.fromkeys(keys, frame_type)
    for frame in loaded.values():
        assert_frame_equal(frame.lazy().collect(), RAW)


@pytest.mark.parametrize(("build", "partitions_def", "keys", "frame_type"), FAN_INS)
def test_a_typed_fan_in_fails_on_one_partition_and_names_it(
    materialize: Materialize,
    build: Callable[[list[Any]], Function],
    partitions_def: dg.PartitionsDefinition[Any],
    keys: list[str],
    frame_type: type,
) -> None:
    seen: list[Any] = []
    out = dd.asset(Out)(build(seen))
    for key, frame in zip(keys, [RAW, DRIFTED], strict=True):
        materialize(build_raw(frame, partitions_def), partition_key=key)
    with pytest.raises(dg.DagsterTypeCheckDidNotPass, match=re.escape(MISMATCH)) as caught:
        materialize(build_raw(RAW, partitions_def), out, selection=[out])
    assert f"partition `{keys[1]}`" in str(caught.value)
    assert seen == []


@pytest.mark.parametrize("lazy", [False, True])
def test_dagster_type_checks_the_input_of_a_plain_asset(
    materialize: Materialize, *, lazy: bool
) -> None:
    seen: list[Any] = []

    @dg.asset(ins={"raw": dg.AssetIn(dagster_type=dd.dagster_type(Raw, lazy=lazy))})
    def report(raw: Any) -> None:
        seen.append(raw)

    assert materialize(build_raw(RAW), report).success
    assert type(seen[0]) is (pl.LazyFrame if lazy else pl.DataFrame)
    with pytest.raises(dg.DagsterTypeCheckDidNotPass, match=re.escape(MISMATCH)):
        materialize(build_raw(DRIFTED), report)
    assert len(seen) == 1


def test_a_type_check_does_not_run_a_lazy_frame() -> None:
    runs: list[int] = []

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        runs.append(1)
        return frame

    plan = RAW.lazy().map_batches(count)
    assert dd.dagster_type(Raw, lazy=True).type_check(None, plan).success  # type: ignore[arg-type]
    assert runs == []


def test_a_type_refuses_a_frame_of_the_other_kind_and_what_is_no_frame() -> None:
    eager, lazy = dd.dagster_type(Raw), dd.dagster_type(Raw, lazy=True)
    values: list[object] = [RAW, RAW.lazy(), [], None]
    verdicts = {
        name: [found.type_check(None, value).success for value in values]  # type: ignore[arg-type]
        for name, found in (("eager", eager), ("lazy", lazy))
    }
    assert verdicts == {"eager": [True, False, False, False], "lazy": [False, True, False, False]}


@pytest.mark.parametrize("not_a_schema", [dy.Collection, dy.Schema, int, Raw.id])
def test_dagster_type_takes_only_a_schema(not_a_schema: Any) -> None:
    with pytest.raises(dd.errors.DagsterDataframelyError):
        dd.dagster_type(not_a_schema)


def test_an_asset_in_given_by_the_user_is_kept() -> None:
    mapping = dg.AllPartitionMapping()
    given = dg.AssetIn(key=["lake", "raw"], metadata={"columns": 2}, partition_mapping=mapping)

    @dd.asset(Out, partitions_def=DAYS, ins={"raw": given})
    def out(raw: dict[str, dy.LazyFrame[Raw]]) -> None: ...

    key = dg.AssetKey(["lake", "raw"])
    assert out.keys_by_input_name == {"raw": key}
    assert out.get_partition_mapping(key) == mapping
    (definition,) = out.node_def.input_defs
    assert definition.metadata == {"columns": 2}
    assert definition.dagster_type.typing_type == dict[str, pl.LazyFrame]


def test_a_dagster_type_given_by_the_user_is_kept() -> None:
    own = dg.DagsterType(lambda _context, _value: True, name="Own")

    @dd.asset(Out, ins={"raw": dg.AssetIn(dagster_type=own)})
    def out(raw: dy.DataFrame[Raw]) -> None: ...

    (definition,) = out.node_def.input_defs
    assert definition.dagster_type is own


def test_other_inputs_beside_a_typed_one_keep_their_types(materialize: Materialize) -> None:
    @dg.asset
    def limit() -> pl.DataFrame:
        return pl.DataFrame({"rows": [1]})

    @dd.asset(Out, quarantine=True)
    def out(
        context: dg.AssetExecutionContext, limit: pl.DataFrame, raw: dy.DataFrame[Raw]
    ) -> pl.DataFrame:
        assert context.asset_key == dg.AssetKey("out")
        return raw.select("id").head(limit.item())

    result = materialize(build_raw(RAW), limit, out)
    assert result.asset_materializations_for_node("out")[0].metadata["dagster/row_count"].value == 1


def test_a_typed_input_binds_by_position_and_name_in_a_call() -> None:
    @dd.asset(Out)
    def out(raw: dy.DataFrame[Raw]) -> pl.DataFrame:
        return raw.select("id")

    for result in (dd.testing.invoke(out, RAW), dd.testing.invoke(out, raw=RAW)):
        assert result.table is not None
        assert_frame_equal(result.table, RAW.select("id"))


@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_typed_return_annotation_is_allowed(execute: Execute, *, is_lazy: bool) -> None:
    def eager() -> dy.DataFrame[Raw]:
        return Raw.cast(RAW)

    def lazy() -> "dy.LazyFrame[Raw]":
        return Raw.cast(RAW.lazy())

    outcome = execute(dd.asset(Raw, quarantine=True)(lazy if is_lazy else eager))
    outcome.assert_stored(table=RAW.drop("undeclared"), quarantine=None)


@pytest.mark.io_managers
@pytest.mark.parametrize("lazy", [False, True])
def test_a_typed_input_loads_through_the_released_parquet_manager(
    instance: dg.DagsterInstance, tmp_path: Any, *, lazy: bool
) -> None:
    from dagster_polars import PolarsParquetIOManager

    seen: list[Any] = []
    out = dd.asset(Out)(typed_lazy(seen) if lazy else typed_eager(seen))
    resources = {"io_manager": PolarsParquetIOManager(base_dir=str(tmp_path))}
    result = dg.materialize([build_raw(RAW), out], instance=instance, resources=resources)
    assert result.success
    assert type(seen[0]) is (pl.LazyFrame if lazy else pl.DataFrame)
    assert_frame_equal(pl.read_parquet(tmp_path / "out.parquet"), RAW.select("id"))
