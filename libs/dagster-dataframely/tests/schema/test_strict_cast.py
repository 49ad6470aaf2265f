"""A strict cast changes no value, or raises."""

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal
from support.strategies import TALLY, columns, values_of

import dagster_dataframely as dd
from dagster_dataframely.errors import CastFailure, CheckNameCollisionError, StrictCastError

NOON = dt.datetime(2024, 7, 1, 12)
IN_NEW_YORK = NOON.replace(tzinfo=ZoneInfo("America/New_York"))
FIELDS = dy.Struct({"b": dy.Datetime(time_unit="ms"), "a": dy.Int8()})
PII: dict[str, Any] = {"metadata": {"pii": True}}

SURVIVES: dict[str, tuple[list[Any], pl.DataType | None, dy.Column]] = {
    "whole floats": ([2.0, None, -0.0], None, dy.Int32()),
    "NaN": ([float("nan"), None, float("inf")], None, dy.Float32()),
    "floats with two decimals": ([0.1, 2.0], None, dy.Decimal(10, 2)),
    "small whole numbers": ([0, 255], None, dy.UInt8()),
    "flags": ([0, 1], None, dy.Bool()),
    "plain numbers as text": (["7", None], None, dy.Int64()),
    "known categories": (["a", None], None, dy.Enum(["b", "a"])),
    "other categories": (["a"], pl.Enum(["a", "z"]), dy.Enum(["b", "a"])),
    "fewer decimals": ([Decimal("1.20")], None, dy.Decimal(10, 1)),
    "milliseconds": ([NOON], None, dy.Datetime(time_unit="ms")),
    "midnights": ([dt.datetime(2024, 7, 1)], None, dy.Date()),
    "a moment elsewhere": ([IN_NEW_YORK], None, dy.Datetime(time_zone="UTC")),
    "lists": ([[1.0, None], None, []], None, dy.List(dy.Int8())),
    "lists of one length": ([[1, 2], None], None, dy.Array(dy.Int64(), 2)),
    "fields in another order": (
        [{"a": 1, "b": NOON}, None],
        None,
        FIELDS,
    ),
    "nothing but nulls": ([None, None], None, dy.Enum(["a"])),
    "no rows": ([], pl.String(), dy.Int64()),
}

CHANGES: dict[str, tuple[list[Any], pl.DataType | None, dy.Column, int, str]] = {
    "fractions": ([1.0, 2.5, 3.5], None, dy.Int64(), 2, "2.5"),
    "NaN": ([1.0, float("nan")], None, dy.Int64(), 1, "NaN"),
    "too much for a float": ([2**53, 2**53 + 1], None, dy.Float64(), 1, "9007199254740993"),
    "too many digits for a float": ([0.1], None, dy.Float32(), 1, "0.1"),
    "too big": ([1, 256], None, dy.UInt8(), 1, "256"),
    "neither flag": ([0, 1, 2], None, dy.Bool(), 1, "2"),
    "leading zeros": (["7", "007", "x"], None, dy.Int64(), 2, "007"),
    "an unknown category": (["a", "z", "z"], None, dy.Enum(["a"]), 2, "z"),
    "decimals": ([Decimal("1.25"), Decimal("1.20")], None, dy.Decimal(10, 1), 1, "1.25"),
    "microseconds": ([NOON.replace(microsecond=1)], None, dy.Datetime(time_unit="ms"), 1, "…"),
    "hours": ([dt.datetime(2024, 7, 1), NOON], None, dy.Date(), 1, "2024-07-01 12:00:00.000000"),
    "the infinity of DuckDB": (
        [2**63 - 1],
        pl.Datetime("us"),
        dy.Datetime(time_unit="ns"),
        1,
        "9223372036854775807 us",
    ),
    "in a list": ([[1.0], [2.5, 3.5]], None, dy.List(dy.Int8()), 1, "[2.5, 3.5]"),
    "a field too many": ([{"a": 1, "b": 2}], None, dy.Struct({"a": dy.Int64()}), 1, "…"),
    "personal data": (["a@example.com"], None, dy.Int64(**PII), 1, "redacted"),
}

IMPOSSIBLE: dict[str, tuple[list[Any], pl.DataType | None, dy.Column, str]] = {
    "a list to a number": ([[1]], None, dy.Int64(), "write the conversion"),
    "numbers to categories": ([0], None, dy.Enum(["a"]), "write the conversion"),
    "text to days": (["2024-07-01"], None, dy.Date(), "write the conversion"),
    "numbers to moments": ([0], None, dy.Datetime(), "write the conversion"),
    "bytes to text": ([b"a"], None, dy.String(), "write the conversion"),
    "a struct to a list": ([{"a": 1}], None, dy.List(dy.Int64()), "write the conversion"),
    "a field too few": ([{"a": 1}], None, FIELDS, "it has no field `b`"),
    "text to flags": (["true"], None, dy.Bool(), "Polars does not cast it"),
    "lists of other lengths": ([[1]], None, dy.Array(dy.Int64(), 2), "Polars does not cast it"),
    "no zone": ([NOON], None, dy.Datetime(time_zone="UTC"), "name the time zone"),
    "a zone too many": ([IN_NEW_YORK], None, dy.Datetime(), "name the time zone"),
    "a day somewhere": ([IN_NEW_YORK], None, dy.Date(), "name the time zone"),
    "no zone in a list": (
        [[NOON]],
        None,
        dy.List(dy.Datetime(time_zone="UTC")),
        "name the time zone",
    ),
    "no zone in a field": (
        [{"a": NOON, "b": 1}],
        None,
        dy.Struct({"a": dy.Datetime(time_zone="UTC")}),
        "name the time zone",
    ),
}


def schema_of(column: dy.Column) -> type[dy.Schema]:
    return type("Declared", (dy.Schema,), {"value": column})


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("values", "dtype", "column"), SURVIVES.values(), ids=SURVIVES)
def test_values_that_survive_are_cast(
    values: list[Any], dtype: pl.DataType | None, column: dy.Column, *, lazy: bool
) -> None:
    frame = pl.Series("value", values, dtype).to_frame()
    cast: Any = dd.strict_cast(schema_of(column), frame.lazy() if lazy else frame)
    assert isinstance(cast, pl.LazyFrame if lazy else pl.DataFrame)
    found = cast.lazy().collect()
    assert found.schema["value"] == column.dtype
    back = found["value"].cast(frame.schema["value"], strict=False)
    assert_series_equal(back, frame["value"])


@pytest.mark.parametrize(
    ("values", "dtype", "column", "changed", "example"), CHANGES.values(), ids=CHANGES
)
def test_values_that_would_change_raise(
    values: list[Any], dtype: pl.DataType | None, column: dy.Column, changed: int, example: str
) -> None:
    schema, frame = schema_of(column), pl.Series("value", values, dtype).to_frame()
    with pytest.raises(StrictCastError) as raised:
        dd.strict_cast(schema, frame)
    (failure,) = raised.value.failures
    assert failure.changed == changed
    assert example in ("…", failure.example)
    assert f"such as {failure.example}. " in str(raised.value)
    plan = dd.strict_cast(schema, frame.lazy())
    with pytest.raises(pl.exceptions.ComputeError) as caught:
        plan.collect(engine="in-memory")
    assert str(raised.value) in str(caught.value)
    # A batch may hold some of the rows only.
    with pytest.raises(pl.exceptions.ComputeError, match="No strict cast to `Declared`: `value`"):
        plan.collect(engine="streaming")


@pytest.mark.parametrize(
    ("values", "dtype", "column", "reason"), IMPOSSIBLE.values(), ids=IMPOSSIBLE
)
def test_casts_that_no_value_decides_raise(
    values: list[Any], dtype: pl.DataType | None, column: dy.Column, reason: str
) -> None:
    frame = pl.Series("value", values, dtype).to_frame()
    with pytest.raises(StrictCastError, match=reason) as raised:
        dd.strict_cast(schema_of(column), frame)
    assert [(f.changed, f.example) for f in raised.value.failures] == [(None, None)]


class Trips(dy.Schema):
    """Columns to be cast, one that is not, and one that may be of several dtypes."""

    id = dy.Int32(primary_key=True)
    vehicle = dy.Enum(["bus", "tram"])
    rider = dy.Int8(metadata={"pii": True})
    note = dy.String(nullable=True)
    stops = dy.Integer()


TRIPS = pl.DataFrame(
    {
        "extra": [0, 0],
        "stops": [3, 4],
        "note": ["", None],
        "vehicle": ["tram", "bus"],
        "rider": [1, 2],
        "id": [1.0, 2.0],
    }
)
"""Every value survives; the columns are in another order, with one more."""


@pytest.mark.parametrize("lazy", [False, True])
def test_columns_are_the_schemas_and_rows_keep_their_order(*, lazy: bool) -> None:
    cast: Any = dd.strict_cast(Trips, TRIPS.lazy() if lazy else TRIPS)
    found = cast.lazy().collect()
    assert_frame_equal(found, Trips.cast(TRIPS))
    assert found.columns == Trips.column_names()
    assert found.schema["stops"] == pl.Int64


def test_every_failure_is_reported_at_once_in_the_schemas_order() -> None:
    frame = TRIPS.drop("note").with_columns(
        id=pl.Series([1.5, 2.0]), vehicle=pl.Series(["tram", "ship"]), rider=pl.Series([1, 999])
    )
    with pytest.raises(StrictCastError) as raised:
        dd.strict_cast(Trips, frame)
    enum = "Enum(categories=['bus', 'tram'])"
    assert raised.value.failures == (
        CastFailure("id", "Int32", "Float64", "1 value would change, such as 1.5", 1, "1.5"),
        CastFailure("vehicle", enum, "String", "1 value would change, such as ship", 1, "ship"),
        CastFailure(
            "rider", "Int8", "Int64", "1 value would change, such as redacted", 1, "redacted"
        ),
        CastFailure("note", "String", None, "it is missing"),
    )
    assert raised.value.columns == ("id", "vehicle", "rider", "note")
    assert str(raised.value) == (
        "No strict cast to `Trips`: `id` (Float64 to Int32): 1 value would change, such as "
        f"1.5; `vehicle` (String to {enum}): 1 value would change, such as ship; "
        "`rider` (Int64 to Int8): 1 value would change, such as redacted; `note`: it is "
        "missing. Fix the frame."
    )


def test_a_lazy_frame_stays_lazy_and_runs_once() -> None:
    runs = []

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        runs.append(frame.height)
        return frame

    plan = dd.strict_cast(Trips, TRIPS.lazy().map_batches(count))
    assert runs == []
    assert_frame_equal(plan.collect(), Trips.cast(TRIPS))
    assert runs == [2]


def test_a_lazy_frame_without_a_column_raises_at_once() -> None:
    with pytest.raises(StrictCastError, match="`note`: it is missing"):
        dd.strict_cast(Trips, TRIPS.lazy().drop("note"))


@pytest.mark.parametrize("lazy", [False, True])
def test_in_an_asset_the_run_fails_with_what_would_change(*, lazy: bool) -> None:
    frame = TRIPS.with_columns(id=pl.Series([1.0, 2.5]))

    @dd.asset(Trips)
    def trips() -> object:
        return dd.strict_cast(Trips, frame.lazy() if lazy else frame)

    error = pl.exceptions.ComputeError if lazy else StrictCastError
    with pytest.raises(error, match=r"`id` .* such as 2\.5"):
        dg.materialize([trips], resources={"io_manager": dg.mem_io_manager})


@given(st.data())
def test_what_a_strict_cast_returns_is_the_original_once_cast_back(data: st.DataObject) -> None:
    source, target = data.draw(columns(deep=1)), data.draw(columns(deep=1))
    values = values_of(source.dtype)
    positions = st.lists(st.integers(0, values.len() - 1), max_size=3)
    original = values.gather(data.draw(positions)).alias("value")
    schema = schema_of(target.column.with_properties(alias=None))
    try:
        cast = dd.strict_cast(schema, original.to_frame())["value"]
    except CheckNameCollisionError:
        TALLY["CheckNameCollisionError"] += 1
        return
    except StrictCastError as error:
        (failure,) = error.failures
        TALLY["casts refused"] += 1
        assert failure.changed is None or 0 < failure.changed <= original.len()
        return
    TALLY["casts made"] += 1
    assert schema.columns()["value"].validate_dtype(cast.dtype)
    back = cast.cast(original.dtype, strict=False)
    # Polars makes no list of nulls of an empty array (1.44).
    assert_series_equal(back, original, check_dtypes=original.dtype != pl.List(pl.Null))
    assert cast.null_count() == original.null_count()


class Person(dy.Schema):
    id = dy.Int64()


NUMBERS = pl.DataFrame({"id": ["canary"]})


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_redact_of_an_asset_reaches_a_cast_in_its_body(*, lazy: bool, is_async: bool) -> None:
    def people() -> Any:
        return dd.strict_cast(Person, NUMBERS.lazy() if lazy else NUMBERS)

    async def people_async() -> Any:
        return people()

    asset = dd.asset(Person, name="people", redact=["id"])(people_async if is_async else people)
    with pytest.raises((StrictCastError, pl.exceptions.ComputeError)) as raised:
        dd.testing.invoke(asset)
    assert "canary" not in str(raised.value)
    assert "such as redacted" in str(raised.value)
    with pytest.raises(StrictCastError, match="canary"):
        dd.strict_cast(Person, NUMBERS)
