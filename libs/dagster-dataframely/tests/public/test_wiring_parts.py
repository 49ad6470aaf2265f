"""Each part of the decorator, by itself."""

from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.wired_orders import (
    CHECKS,
    CLEAN,
    DRIFTED,
    ERROR_ROWS,
    FAILING,
    SOME,
    Checks,
    Orders,
    all_checks,
)
from upath import UPath

import dagster_dataframely as dd
from dagster_dataframely import wiring


def verdicts(results: list[dg.AssetCheckResult]) -> Checks:
    return {r.check_name or "": (r.passed, r.severity.name) for r in results}


SETTINGS: list[Any] = [
    {},
    {"check_granularity": "column"},
    {"check_granularity": "column", "multi_column_rules": "per_rule"},
    {"check_granularity": "schema"},
]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("settings", SETTINGS)
def test_results_match_the_specs_at_each_granularity(
    settings: dict[str, Any], *, lazy: bool
) -> None:
    specs = wiring.check_specs(Orders, asset="orders", **settings)
    frame = SOME.lazy() if lazy else SOME
    evaluated = list(wiring.evaluate(Orders, frame, asset="orders", **settings))
    _, *processed = wiring.process(
        Orders, frame, asset="orders", quarantine_writer=lambda _: "there", **settings
    )
    names = [(spec.asset_key, spec.name) for spec in specs]
    for results in (evaluated, processed):
        found = [r for r in results if isinstance(r, dg.AssetCheckResult)]
        assert [(result.asset_key, result.check_name) for result in found] == names


def test_evaluate_reports_extra_columns_and_no_row_raises() -> None:
    wide = SOME.with_columns(extra=1)
    results = list(wiring.evaluate(Orders, wide, asset="orders"))
    assert verdicts(results) == all_checks(**FAILING)
    assert results[0].metadata == {
        "dy_severity": dg.MetadataValue.text("error"),
        "dy_extra_columns": dg.MetadataValue.json(["extra"]),
    }


def test_evaluate_reports_other_columns_and_then_raises() -> None:
    seen: list[dg.AssetCheckResult] = []
    with pytest.raises(dd.errors.ColumnSchemaError) as caught:
        seen.extend(wiring.evaluate(Orders, DRIFTED, asset="orders"))
    assert caught.value.columns == ("amount",)
    assert verdicts(seen) == {"dy_schema__columns": (False, "ERROR")}


def test_evaluate_runs_a_plan_once_and_not_at_all_on_drift() -> None:
    runs: list[int] = []

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        runs.append(1)
        return frame

    plan = SOME.lazy().map_batches(count)
    assert len(list(wiring.evaluate(Orders, plan, asset="orders"))) == len(CHECKS)
    assert runs == [1]
    with pytest.raises(dd.errors.ColumnSchemaError):
        list(wiring.evaluate(Orders, plan.drop("amount"), asset="orders"))
    assert runs == [1]


def test_evaluate_and_process_take_severities() -> None:
    severities: Any = {"amount|min": "warn", "note|max_length": "error"}
    specs = wiring.check_specs(Orders, asset="orders", severities=severities)
    results = list(wiring.evaluate(Orders, SOME, asset="orders", severities=severities))
    assert [spec.name for spec in specs] == [result.check_name for result in results]
    failed = {r.check_name: r.severity.name for r in results if not r.passed}
    assert failed == {"dy_rule__amount__min": "WARN", "dy_rule__note__max_length": "ERROR"}
    with pytest.raises(dd.errors.ValidationAbortError) as caught:
        list(wiring.process(Orders, SOME, asset="orders", severities=severities))
    assert caught.value.counts == {"note|max_length": 1}


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"row_sample": 0}, {"dataframely/valid_sample", "dataframely/invalid_sample"}),
        (
            {"statistics": False},
            {"dataframely/valid_stats/numeric", "dataframely/valid_stats/string"},
        ),
    ],
)
def test_process_takes_the_settings_of_the_decorator(
    settings: dict[str, Any], missing: set[str]
) -> None:
    def metadata(**settings: Any) -> set[str]:
        materialization, *_ = wiring.process(
            Orders, SOME, asset="orders", quarantine_writer=lambda _: "there", **settings
        )
        return set(materialization.metadata or {})

    assert metadata() - metadata(**settings) == missing


@pytest.mark.parametrize("partition_key", [None, "mon"])
def test_process_counts_a_partition(partition_key: str | None) -> None:
    materialization, *_ = wiring.process(Orders, CLEAN, asset="orders", partition_key=partition_key)
    assert isinstance(materialization, dg.MaterializeResult)
    metadata = materialization.metadata or {}
    assert metadata["dagster/row_count"] == 2
    assert metadata.get("dagster/partition_row_count") == (2 if partition_key else None)


def test_process_hands_the_error_rows_to_any_writer() -> None:
    written: list[pl.DataFrame] = []

    def write(frame: pl.DataFrame, /) -> str:
        written.append(frame)
        return "the list"

    materialization, *_ = wiring.process(Orders, SOME, asset="orders", quarantine_writer=write)
    (frame,) = written
    assert_frame_equal(frame, ERROR_ROWS)
    assert isinstance(materialization, dg.MaterializeResult)
    address = (materialization.metadata or {})["dataframely/quarantine_address"]
    assert address == dg.MetadataValue.text("the list")


@pytest.mark.parametrize("partitions_def", [None, dg.StaticPartitionsDefinition(["mon"])])
def test_check_specs_carry_key_and_partitions(
    partitions_def: dg.PartitionsDefinition[Any] | None,
) -> None:
    specs = wiring.check_specs(Orders, asset=["shop", "orders"], partitions_def=partitions_def)
    key = dg.AssetKey(["shop", "orders"])
    assert [(spec.name, spec.asset_key, spec.partitions_def) for spec in specs] == [
        (name, key, partitions_def) for name in CHECKS
    ]


def test_quarantine_frame_has_the_error_rows_with_a_word_for_each_rule() -> None:
    assert_frame_equal(wiring.quarantine_frame(Orders, SOME.with_columns(extra=1)), ERROR_ROWS)
    assert_frame_equal(wiring.quarantine_frame(Orders, CLEAN), ERROR_ROWS.clear())
    warned = wiring.quarantine_frame(Orders, SOME, severities={"amount|min": "warn"})
    assert_frame_equal(warned, ERROR_ROWS.clear())


def test_check_name_is_the_name_of_the_rules_check_and_quarantine_column() -> None:
    rules = ["id|nullability", "amount|min", "note|max_length", "primary_key"]
    assert [wiring.check_name(rule) for rule in rules] == CHECKS[1:]
    assert wiring.check_name("größe|min") == "dy_rule__gr__e__min"


GRID_KEY = dg.MultiPartitionKey({"region": "eu", "day": "mon"})


@pytest.mark.parametrize(
    ("key", "partition_key", "expected"),
    [
        ("orders", None, "orders_quarantine.parquet"),
        (["shop", "orders"], None, "shop/orders_quarantine.parquet"),
        (dg.AssetKey(["shop", "orders"]), "mon", "shop/orders_quarantine/mon.parquet"),
        ("orders", GRID_KEY, "orders_quarantine/mon/eu.parquet"),
    ],
)
@pytest.mark.parametrize("kind", [str, Path, UPath])
def test_file_writer_writes_at_quarantine_path(
    tmp_path: Path, kind: Any, key: Any, partition_key: str | None, expected: str
) -> None:
    directory = tmp_path / "not_yet_there"
    path = wiring.quarantine_path(key, kind(str(directory)), partition_key)
    assert str(path) == str(directory / expected)
    assert not directory.exists()
    write = wiring.file_writer(key, kind(str(directory)), partition_key)
    for frame in (CLEAN, ERROR_ROWS):
        assert write(frame) == str(path)
        assert_frame_equal(pl.read_parquet(directory / expected), frame)
    files = [found for found in directory.rglob("*") if found.is_file()]
    assert files == [directory / expected]


@pytest.mark.parametrize(
    ("key", "partition_key"),
    [
        (["..", "orders"], None),
        (["/abs", "orders"], None),
        (["a/../..", "orders"], None),
        ("orders", ".."),
        ("orders", "/abs"),
        ("orders", "a/../../.."),
        ("orders", ""),
        ("orders", dg.MultiPartitionKey({"region": "..", "day": "mon"})),
        ("orders", dg.MultiPartitionKey({"region": "eu", "day": "/abs"})),
    ],
)
def test_no_key_and_no_partition_leave_the_directory(
    tmp_path: Path, key: Any, partition_key: str | None
) -> None:
    for build in (wiring.quarantine_path, wiring.file_writer):
        with pytest.raises(dd.errors.QuarantineDirError):
            build(key, str(tmp_path), partition_key)


def test_delegating_writer_needs_a_run() -> None:
    with pytest.raises(dg.DagsterError, match="directly invoked"):
        wiring.delegating_writer(dg.build_asset_context())
