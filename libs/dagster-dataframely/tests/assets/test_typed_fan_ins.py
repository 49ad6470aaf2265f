"""Partitions of an input annotated with a schema are a dictionary of frames."""

import re
from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.typed import DAYS, DRIFTED, MISMATCH, RAW, Function, Materialize, Out, Raw, build_raw

import dagster_dataframely as dd

GRID = dg.MultiPartitionsDefinition({"day": DAYS, "city": dg.StaticPartitionsDefinition(["oslo"])})


GRID_KEYS = [dg.MultiPartitionKey({"city": "oslo", "day": day}) for day in ("mon", "tue")]


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
