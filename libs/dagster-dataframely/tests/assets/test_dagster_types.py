"""A schema as a Dagster type."""

import re
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.typed import DRIFTED, MISMATCH, RAW, Materialize, Raw, build_raw

import dagster_dataframely as dd


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
