"""Whatever is in the rows, every stored event is strict JSON."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster._serdes import serialize_value
from polars.testing import assert_frame_equal

import dagster_dataframely as dd


class EveryDtype(dy.Schema):
    """A column of every dtype, and a rule that every second row fails."""

    row = dy.Int64(check=lambda row: row % 2 == 0)
    i8, u64 = dy.Int8(nullable=True), dy.UInt64(nullable=True)
    f32, f64 = dy.Float32(nullable=True, allow_nan=True), dy.Float64(allow_inf=True, allow_nan=True)
    decimal = dy.Decimal(precision=38, scale=2, nullable=True)
    date, time = dy.Date(nullable=True), dy.Time(nullable=True)
    moment = dy.Datetime(nullable=True, time_zone="Asia/Kolkata")
    span = dy.Duration(nullable=True)
    flag, text, raw = dy.Bool(nullable=True), dy.String(nullable=True), dy.Binary(nullable=True)
    enum, category = dy.Enum(["a", "b"], nullable=True), dy.Categorical(nullable=True)
    list_, array = (
        dy.List(dy.List(dy.Float64(allow_nan=True))),
        dy.Array(dy.Date(), 2, nullable=True),
    )
    struct = dy.Struct({"x": dy.Struct({"y": dy.Float64(allow_inf=True)})}, nullable=True)


FULL: dict[str, Any] = {
    "i8": -1,
    "u64": 2**64 - 1,
    "f32": float("nan"),
    "f64": -float("inf"),
    "decimal": Decimal("9" * 36 + ".99"),
    "date": dt.date(9999, 12, 31),
    "time": dt.time(23, 59, 59, 999999),
    "moment": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "span": dt.timedelta(days=-1),
    "flag": True,
    "text": '"\u2028\0<script>',
    "raw": b"\xff\x00",
    "enum": "b",
    "category": "x",
    "list_": [[float("nan")], []],
    "array": [dt.date(1, 1, 1), dt.date(9999, 1, 1)],
    "struct": {"x": {"y": float("inf")}},
}
"""The value of each column that is hardest to write down."""


EMPTY = dict.fromkeys(FULL) | {"f64": float("nan"), "list_": []}
"""Nulls wherever they are allowed."""


def refuse(constant: str) -> None:
    message = f"{constant} is not JSON"
    raise AssertionError(message)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
def test_every_event_is_strict_json_and_every_dtype_survives(granularity: Any, engine: Any) -> None:
    rows = [{"row": 0, **FULL}, {"row": 1, **FULL}, {"row": 2, **EMPTY}, {"row": 3, **EMPTY}]
    frame = pl.DataFrame(rows, schema=EveryDtype.create_empty().schema)

    @dd.asset(EveryDtype, quarantine=True, check_granularity=granularity, engine=engine)
    def everything() -> pl.DataFrame:
        return frame

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [everything], resources={"io_manager": dg.mem_io_manager}, instance=instance
        )
        stored = [serialize_value(entry) for entry in instance.all_logs(result.run_id)]
    assert_frame_equal(result.output_for_node("everything"), frame[[0, 2]])
    for text in stored:
        json.loads(text, parse_constant=refuse)
    assert any("9" * 36 + ".99" in text for text in stored)
    assert any("18446744073709551615" in text for text in stored)


class Prices(dy.Schema):
    """Valid from one moment to another, which may be DuckDB's `infinity`."""

    id = dy.Int64()
    start = dy.Date()
    end = dy.Datetime(unique=True, metadata=dd.severity(unique="warn"))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_moments_that_polars_cannot_print_are_shown_as_they_are_stored(engine: Any) -> None:
    first, last = -(2**31) + 1, 2**63 - 1
    frame = pl.DataFrame(
        {"id": [1, 2], "start": [first, 0], "end": [last, last]},
        schema=Prices.create_empty().schema,
    )

    @dd.asset(Prices, engine=engine)
    def prices() -> pl.DataFrame:
        return frame

    result = dg.materialize([prices], resources={"io_manager": dg.mem_io_manager})
    assert_frame_equal(result.output_for_node("prices"), frame)
    (materialized,) = result.asset_materializations_for_node("prices")
    evaluated = {check.check_name: check for check in result.get_asset_check_evaluations()}
    tables: dict[str, Any] = {**materialized.metadata, **evaluated["dy_rule__end__unique"].metadata}
    assert [record.data for record in tables["dataframely/valid_sample"].records] == [
        {"id": 1, "start": f"{first} days", "end": f"{last} us"},
        {"id": 2, "start": "1970-01-01", "end": f"{last} us"},
    ]
    assert [record.data for record in tables["dataframely/valid_stats/temporal"].records] == [
        {
            "column": "start",
            "count": 2,
            "nulls": 0,
            "min": f"{first} days",
            "max": "1970-01-01",
            "span": "2,147,483,647 days",
        },
        {
            "column": "end",
            "count": 2,
            "nulls": 0,
            "min": f"{last} us",
            "max": f"{last} us",
            "span": "0 s",
        },
    ]
    (duplicated,) = tables["dy_duplicated_sample"].records
    assert duplicated.data == {"end": f"{last} us", "dy_rows": 2}
