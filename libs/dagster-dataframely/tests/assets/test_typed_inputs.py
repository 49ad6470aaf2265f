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
from support.typed import DAYS, DRIFTED, MISMATCH, RAW, Function, Materialize, Out, Raw, build_raw

import dagster_dataframely as dd

INVALID = pl.DataFrame({"id": [1, 1], "x": [-1.0, 2.0]})
"""The columns are right and every row fails a rule: rules are not an input's matter."""


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


@pytest.mark.parametrize("hint", [dy.DataFrame[Raw] | None, dict[str, dy.LazyFrame[Raw]] | None])
def test_an_optional_input_may_be_none(hint: Any) -> None:
    def out(raw: Any) -> None: ...

    out.__annotations__ = {"raw": hint}
    asset = dd.asset(Raw)(out)
    (type_,) = (i.dagster_type for i in asset.op.input_defs)
    context: Any = None
    assert type_.type_check(context, None).success
    assert not type_.type_check(context, 1).success
