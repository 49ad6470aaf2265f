"""All events of a run together are small, whatever is in the rows."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster._serdes import serialize_value

import dagster_dataframely as dd
from dagster_dataframely.errors import ManyChecksWarning


def deep(levels: int) -> tuple[dy.Column, Any]:
    """A struct in a struct in a struct, and so on, around a long text."""
    if levels == 0:
        return dy.String(), "x" * 1_000
    column, value = deep(levels - 1)
    return dy.Struct({"inner": column, "n": dy.Int64()}), {"inner": value, "n": levels}


BIG: dict[str, tuple[dy.Column, Any]] = {
    "text": (dy.String(max_length=9), "\N{GRINNING FACE}" * 500_000),
    "raw": (dy.Binary(), b"\xff" * 2_000_000),
    "numbers": (dy.List(dy.Int64(), max_length=3), list(range(100_000))),
    "texts": (dy.List(dy.String(max_length=3), max_length=9), ["x" * 20_000] * 100),
    "struct": deep(20),
    "quotes": (dy.String(max_length=9), '"\u2028\\0' * 100),
}
"""Columns whose values are large in each way: two megabytes, and a hundred thousand elements."""


Big: type[dy.Schema] = type(
    "Big",
    (dy.Schema,),
    {"id": dy.Int64(primary_key=True, min=0)} | {name: column for name, (column, _) in BIG.items()},
)


SMALL: dict[str, Any] = {"text": "", "numbers": [], "texts": [], "quotes": ""}


LARGE = {name: value for name, (_, value) in BIG.items()}


TOO_LONG = [f"{name}|max_length" for name in SMALL]


WARN = dict.fromkeys([*TOO_LONG, "texts|inner_max_length"], "warn")


def rows(*differences: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"id": n, **LARGE, **difference} for n, difference in enumerate(differences)],
        schema=Big.create_empty().schema,
    )


MANY = pl.Enum([f"{number:0100}" for number in range(10_000)])


EXTRA = {f"extra column {number}": pl.lit(0) for number in range(2_000)}
"""A dtype whose name takes a megabyte, and columns that no schema declares."""


EXITS: dict[str, tuple[pl.DataFrame, dict[str, Any]]] = {
    "clean": (rows(SMALL, SMALL), {}),
    "warn": (rows({}, {}), {"severities": WARN}),
    "set aside": (rows(SMALL, SMALL, {}, {}, {"id": 0}), {"quarantine": True}),
    "abort": (rows(SMALL, {}, {}), {}),
    "nothing survives": (rows({}, {}), {"quarantine": True}),
    "drift": (rows({}).with_columns(text=pl.lit(None, MANY), **EXTRA), {}),
}
"""Every exit that has a frame."""


def stored(asset: dg.AssetsDefinition, manager: object = dg.mem_io_manager) -> int:
    """Bytes of all events of a run."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [asset], resources={"io_manager": manager}, instance=instance, raise_on_error=False
        )
        return sum(len(serialize_value(entry)) for entry in instance.all_logs(result.run_id))


NOTHING: dict[str, Any] = {"row_sample": 0, "max_failure_samples": 0, "statistics": False}


@pytest.mark.parametrize("exit_", EXITS)
@pytest.mark.parametrize(
    ("engine", "granularity", "budget"),
    [("in-memory", "rule", 200_000), ("streaming", "schema", 20_000)],
)
def test_what_a_run_records_of_its_rows_stays_under_the_budget(
    exit_: str, engine: Any, granularity: Any, budget: int
) -> None:
    frame, arguments = EXITS[exit_]
    arguments = {**arguments, "name": "big", "engine": engine, "check_granularity": granularity}
    bare = dd.asset(Big, max_metadata_bytes=0, **NOTHING, **arguments)(lambda: frame)
    full = dd.asset(Big, max_metadata_bytes=budget, **arguments)(lambda: frame)
    recorded = stored(full) - stored(bare)
    assert recorded <= budget
    assert recorded > budget // 100


@pytest.mark.io_managers
def test_what_an_io_manager_records_of_the_rows_is_in_the_budget_too(tmp_path: Path) -> None:
    from dagster_polars import PolarsParquetIOManager

    frame, arguments = EXITS["warn"]
    manager = PolarsParquetIOManager(base_dir=str(tmp_path))
    bare = dd.asset(Big, name="big", max_metadata_bytes=0, **NOTHING, **arguments)(lambda: frame)
    full = dd.asset(Big, name="big", **arguments)(lambda: frame)
    assert 10_000 < stored(full, manager) - stored(bare, manager) <= 200_000


CODES = [f"code {number}" for number in range(20_000)]


class Coded(dy.Schema):
    """Dtypes whose text takes 240 kB each."""

    code = dy.Enum(CODES)
    codes = dy.List(dy.Enum(CODES))
    both = dy.Struct({"list": dy.Array(dy.Enum(CODES), 1), "code": dy.Enum(CODES)})


CODED = pl.DataFrame(
    {"code": ["code 1"], "codes": [["code 2"]], "both": [{"list": ["code 3"], "code": "code 4"}]},
    schema=Coded.create_empty().schema,
)
OTHER = CODED.with_columns(code=pl.lit("code 1", pl.Enum([*CODES[:-1], "another"])))


@pytest.mark.parametrize("frame", [CODED, OTHER])
def test_the_text_of_a_dtype_is_cut_in_every_event(frame: pl.DataFrame) -> None:
    assert stored(dd.asset(Coded, name="coded")(lambda: frame)) < 100_000


def test_the_text_of_a_dtype_is_cut_in_definitions() -> None:
    asset = dd.asset(Coded, name="coded", quarantine=True)(lambda: CODED)
    for spec in (*asset.specs, dd.build_quarantine_spec(Coded, asset)):
        first, *_ = spec.metadata["dagster/column_schema"].columns
        assert first.type.startswith("Enum(categories=['code 0', 'code 1', ")
        assert first.type.endswith(" more])")
        assert len(serialize_value(spec.metadata["dagster/column_schema"])) < 6_000


def test_dtypes_that_differ_where_they_are_cut_are_told_apart() -> None:
    with pytest.raises(dd.errors.ColumnSchemaError) as caught:
        dd.testing.invoke(dd.asset(Coded, name="coded")(lambda: OTHER))
    (mismatch,) = caught.value.mismatches
    assert mismatch.found == f"another {mismatch.expected}"


def wide(columns: int) -> tuple[type[dy.Schema], pl.DataFrame]:
    """A schema in which every column has a rule, and rows that fail all of them."""
    members: dict[str, Any] = {f"c{n}": dy.Int64(nullable=True, min=0) for n in range(columns)}
    schema = type("Wide", (dy.Schema,), {"key": dy.Int64(primary_key=True)} | members)
    frame = pl.DataFrame({"key": range(20), **{name: [-1] * 10 + [1] * 10 for name in members}})
    return schema, frame


def test_a_wide_table_with_many_rules_gives_each_part_its_share() -> None:
    schema, frame = wide(1_000)
    arguments: dict[str, Any] = {"name": "wide", "quarantine": True, "check_granularity": "schema"}
    bare = dd.asset(schema, max_metadata_bytes=0, **NOTHING, **arguments)(lambda: frame)
    full = dd.asset(schema, **arguments)(lambda: frame)
    assert stored(full) - stored(bare) <= 200_000
    metadata = dd.testing.invoke(full).metadata
    tables = {
        key: value for key, value in metadata.items() if isinstance(value, dg.TableMetadataValue)
    }
    assert {
        key.partition("/")[2]: table.schema.columns[0].name for key, table in tables.items()
    } == {
        "valid_sample": "key",
        "valid_stats/numeric": "column",
        "invalid_by_rules": "rules",
        "invalid_sample": "key",
    }
    assert tables["dataframely/valid_sample"].schema.columns[-1].name.startswith("… ")
    last = dict(tables["dataframely/valid_stats/numeric"].records[-1].data)
    assert str(last["column"]).endswith(" more columns (max_metadata_bytes)")


def test_of_many_failing_checks_the_worst_show_rows_and_each_says_what_it_leaves_out() -> None:
    schema, frame = wide(300)
    frame = frame.with_columns(
        pl.when(pl.col("key") == 0).then(-1).otherwise(1).cast(pl.Int64).alias(f"c{number}")
        for number in range(250)
    )
    with pytest.warns(ManyChecksWarning):
        asset = dd.asset(schema, name="wide")(lambda: frame)
    results = [*evaluations(asset)]
    shown = {
        name: metadata["dy_failed_sample"]
        for name, metadata in results
        if isinstance(metadata["dy_failed_sample"], dg.TableMetadataValue)
    }
    assert len(shown) > 15
    assert set(shown) <= {f"dy_rule__c{number}__min" for number in range(250, 300)}
    for name, table in shown.items():
        column = name.removeprefix("dy_rule__").removesuffix("__min")
        assert dict(table.records[0].data)[column] == -1
        assert dict(table.records[0].data)["key"] == 0
    notes = {metadata["dy_failed_sample"].value for name, metadata in results if name not in shown}
    assert notes == {
        "1 row left out (max_metadata_bytes)", "5 rows left out (max_metadata_bytes)",
    }  # fmt: skip
    sizes = [len(serialize_value(table)) for table in shown.values()]
    assert 40_000 < sum(sizes) <= 200_000 * 5 // 16


def evaluations(asset: Any) -> Iterator[tuple[str, Any]]:
    """The failed checks of a call."""
    with suppress(dd.errors.ValidationAbortError):
        for event in asset():
            if not event.passed:
                yield event.check_name, event.metadata


def test_a_run_over_many_partitions_shares_one_budget() -> None:
    schema, frame = wide(20)
    days = dg.StaticPartitionsDefinition([f"d{number}" for number in range(20)])
    arguments: dict[str, Any] = {
        "name": "wide",
        "quarantine": True,
        "partitions_def": days,
    }
    sizes = []
    for settings in ({"max_metadata_bytes": 0, **NOTHING}, {}):
        asset = dd.asset(schema, **arguments, **settings)(lambda: frame)
        with dg.DagsterInstance.ephemeral() as instance:
            result = dg.materialize(
                [asset],
                instance=instance,
                resources={"io_manager": dg.mem_io_manager},
                tags={
                    "dagster/asset_partition_range_start": "d0",
                    "dagster/asset_partition_range_end": "d19",
                },
                raise_on_error=False,
            )
            entries = instance.all_logs(result.run_id)
            sizes.append(sum(len(serialize_value(entry)) for entry in entries))
    bare, full = sizes
    assert 20_000 < full - bare <= 200_000
