"""A partition key is compared with the values of a column, in its dtype."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare

MIDNIGHT = dt.datetime(2026, 1, 1)


COMPARED: list[Any] = [
    pytest.param(dy.Int64(), [1, 1, 2], ["01", "2"], [2, 1], id="integer"),
    pytest.param(dy.Float64(), [1.0, 1.0, 2.5], ["1", "2.50"], [2, 1], id="float"),
    pytest.param(dy.Decimal(9, 2), [1, 1, 2], ["1", "2.0"], [2, 1], id="decimal"),
    pytest.param(dy.Bool(), [True, True, False], ["true", "False"], [2, 1], id="boolean"),
    pytest.param(dy.Enum(["a", "b"]), ["a", "a", "b"], ["a", "b"], [2, 1], id="enum"),
    pytest.param(dy.Categorical(), ["a", "a", "b"], ["a", "b"], [2, 1], id="categorical"),
    pytest.param(dy.Date(), [MIDNIGHT.date()] * 3, ["2026-01-01", "2026-01-02"], [3, 0], id="date"),
    pytest.param(
        dy.Datetime(),
        [MIDNIGHT, MIDNIGHT, MIDNIGHT.replace(hour=3)],
        ["2026-01-01", "2026-01-01 03:00"],
        [2, 1],
        id="datetime",
    ),
]


TOGETHER: list[Any] = [
    pytest.param(dy.Int64(), [1, 1, 2], ["1", "b"], id="a key that is no number"),
    pytest.param(dy.Int64(), [1, 1, 2], ["1", "01"], id="two keys that are one number"),
    pytest.param(dy.Bool(), [True] * 3, ["true", "yes"], id="a key that is no boolean"),
    pytest.param(dy.Date(), [MIDNIGHT.date()] * 3, ["2026-01-01", "a"], id="a key that is no date"),
    pytest.param(
        dy.Datetime(), [MIDNIGHT] * 3, ["2026-01-01", "2026-01-01T00:00Z"], id="a key with a zone"
    ),
    pytest.param(
        dy.Datetime(time_zone="UTC"),
        [MIDNIGHT.replace(tzinfo=dt.UTC)] * 3,
        ["2026-01-01", "2026-01-02"],
        id="a column with a zone",
    ),
    pytest.param(dy.Time(), [dt.time(3)] * 3, ["03:00", "04:00"], id="another dtype"),
]


def declare_by(column: dy.Column, values: list[Any], keys: list[str]) -> dg.AssetsDefinition:
    return declare(
        type("Orders", (dy.Schema,), {"p": column}),
        pl.DataFrame({"p": values}, schema={"p": column.dtype}),
        partitions_def=dg.StaticPartitionsDefinition(keys),
        metadata={"partition_expr": "p"},
    )


def rows_of(asset: dg.AssetsDefinition, instance: dg.DagsterInstance) -> dict[str | None, object]:
    records = instance.fetch_materializations(asset.key, limit=9).records
    events = [record.asset_materialization for record in records]
    return {
        event.partition: event.metadata["dagster/partition_row_count"].value
        for event in events
        if event is not None
    }


@pytest.mark.parametrize(("column", "values", "keys", "counts"), COMPARED)
def test_a_key_is_compared_in_the_dtype_of_its_column(
    run_range: Callable[..., dg.ExecuteInProcessResult],
    instance: dg.DagsterInstance,
    column: dy.Column,
    values: list[Any],
    keys: list[str],
    counts: list[int],
) -> None:
    asset = declare_by(column, values, keys)
    assert run_range(asset, (keys[0], keys[-1])).success
    assert rows_of(asset, instance) == dict(zip(keys, counts, strict=True))


@pytest.mark.parametrize(("column", "values", "keys"), TOGETHER)
def test_where_a_key_is_no_value_of_the_column_each_partition_has_all_rows(
    run_range: Callable[..., dg.ExecuteInProcessResult],
    instance: dg.DagsterInstance,
    column: dy.Column,
    values: list[Any],
    keys: list[str],
) -> None:
    asset = declare_by(column, values, keys)
    assert run_range(asset, (keys[0], keys[-1])).success
    assert rows_of(asset, instance) == dict.fromkeys(keys, 3)


@pytest.mark.io_managers
@pytest.mark.parametrize(
    ("column", "values", "keys", "counts"), [case for case in COMPARED if case.id != "categorical"]
)
def test_duckdb_finds_as_many_rows_of_a_key(
    instance: dg.DagsterInstance,
    duckdb: Any,
    column: dy.Column,
    values: list[Any],
    keys: list[str],
    counts: list[int],
) -> None:
    from duckdb import connect

    asset = declare_by(column, values, keys)
    assert dg.materialize(
        [asset],
        instance=instance,
        resources={"io_manager": duckdb},
        tags={
            "dagster/asset_partition_range_start": keys[0],
            "dagster/asset_partition_range_end": keys[-1],
        },
    ).success
    with connect(duckdb.database) as connection:
        # As Dagster's manager asks for a partition.
        question = "select count(*) from public.orders where p in ('{}')"
        found = [connection.execute(question.format(key)).fetchone() for key in keys]
    assert found == [(count,) for count in counts]
    assert rows_of(asset, instance) == dict(zip(keys, counts, strict=True))
