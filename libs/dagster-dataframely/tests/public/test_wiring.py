"""The parts of the decorator, put together by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster import AssetCheckExecutionContext, AssetExecutionContext
from polars.testing import assert_frame_equal
from support.execution import Execute
from support.storage import FileIOManager
from upath import UPath

import dagster_dataframely as dd
from dagster_dataframely import wiring


class Orders(dy.Schema):
    """Rules of both severities, of a column and of the schema."""

    id = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True, min=0)
    note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))


CLEAN = pl.DataFrame({"id": [2, 1], "amount": [4, None], "note": ["a", None]})
"""No rule fails."""

SOME = pl.DataFrame({"id": [2, 1, 3], "amount": [4, -4, 5], "note": ["long", None, "a"]})
"""The first row fails a warn rule, the second an error rule."""

NONE_LEFT = SOME[1:2]
"""Only an error row."""

DRIFTED = SOME.drop("amount")
"""A column is missing."""

ERROR_ROWS = NONE_LEFT.with_columns(
    dy_rule__id__nullability=pl.lit("valid"),
    dy_rule__amount__min=pl.lit("invalid"),
    dy_rule__note__max_length=pl.lit("valid"),
    dy_rule__primary_key=pl.lit("valid"),
)
"""What the quarantine of either has."""

CHECKS = ["dy_schema__columns", *ERROR_ROWS.columns[3:]]

Checks = dict[str, tuple[bool, str]]


def all_checks(passing: str = "ERROR", **failing: str) -> Checks:
    own = dict.fromkeys(CHECKS, passing) | {"dy_rule__note__max_length": "WARN"}
    own |= {"dy_schema__columns": "ERROR"}
    return {name: (name not in failing, failing.get(name, own[name])) for name in CHECKS}


def verdicts(results: list[dg.AssetCheckResult]) -> Checks:
    return {r.check_name or "": (r.passed, r.severity.name) for r in results}


FAILING = {"dy_rule__amount__min": "ERROR", "dy_rule__note__max_length": "WARN"}
SET_ASIDE = all_checks("WARN", dy_rule__amount__min="WARN", dy_rule__note__max_length="WARN")

SETTINGS: list[Any] = [
    {},
    {"check_granularity": "column"},
    {"check_granularity": "column", "multi_column_rules": "per_rule"},
    {"check_granularity": "schema"},
]


# An asset that yields from `process`.


def declare_by_hand(frame: object, *, quarantine: bool = True) -> dg.AssetsDefinition:
    @dg.asset(
        key_prefix="shop",
        metadata=wiring.schema_metadata(Orders),
        check_specs=wiring.check_specs(Orders, asset=["shop", "orders"]),
        output_required=False,
    )
    def orders(context: AssetExecutionContext) -> Iterator[Any]:
        writer = wiring.delegating_writer(context) if quarantine else None
        yield from wiring.process(Orders, frame, asset=["shop", "orders"], quarantine_writer=writer)

    return orders


EXITS = [
    pytest.param(CLEAN, True, None, all_checks(), CLEAN, None, id="clean"),
    pytest.param(SOME, True, None, SET_ASIDE, SOME[::2], ERROR_ROWS, id="set aside"),
    pytest.param(
        SOME, False, "ValidationAbortError", all_checks(**FAILING), None, None, id="abort"
    ),
    pytest.param(
        NONE_LEFT,
        True,
        "NothingSurvivedError",
        all_checks(dy_rule__amount__min="ERROR"),
        None,
        ERROR_ROWS,
        id="nothing survives",
    ),
    pytest.param(
        DRIFTED,
        True,
        "ColumnSchemaError",
        {"dy_schema__columns": (False, "ERROR")},
        None,
        None,
        id="other columns",
    ),
    pytest.param(None, True, None, all_checks(), None, None, id="skip"),
]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("frame", "quarantine", "error", "checks", "table", "error_rows"), EXITS)
def test_an_asset_that_yields_from_process_has_the_six_exits(
    run: Execute,
    frame: pl.DataFrame | None,
    error: str | None,
    checks: Checks,
    table: pl.DataFrame | None,
    error_rows: pl.DataFrame | None,
    *,
    lazy: bool,
    quarantine: bool,
) -> None:
    given = frame.lazy() if lazy and frame is not None else frame
    outcome = run(declare_by_hand(given, quarantine=quarantine))
    assert (outcome.success, outcome.error) == (error is None, error)
    assert outcome.checks == checks
    outcome.assert_stored(table=table, quarantine=error_rows)


def test_an_asset_by_hand_has_the_columns_tab_and_checks_of_the_decorators() -> None:
    @dd.asset(Orders, key_prefix="shop", quarantine=True)
    def orders() -> None: ...

    by_hand = declare_by_hand(CLEAN)
    assert by_hand.metadata_by_key == orders.metadata_by_key
    assert list(by_hand.check_specs) == list(orders.check_specs)


def test_an_asset_by_hand_fails_on_a_collision_before_anything_is_written(
    files: FileIOManager, instance: dg.DagsterInstance
) -> None:
    @dg.asset(key=["shop", "orders_quarantine"])
    def other() -> pl.DataFrame:
        return CLEAN

    orders = declare_by_hand(SOME)
    with pytest.raises(dd.errors.QuarantineKeyCollisionError):
        dg.materialize(
            [orders, other],
            selection=[orders],
            instance=instance,
            resources={"io_manager": files},
        )
    assert files.files == []


# A plain asset with checks of its own.


def checks_with_evaluate(key: str) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(specs=wiring.check_specs(Orders, asset=key))
    def checks(context: AssetCheckExecutionContext, stored: pl.DataFrame) -> Iterator[Any]:
        yield from wiring.evaluate(Orders, stored, asset=key)

    return checks


def checks_with_process(key: str) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(specs=wiring.check_specs(Orders, asset=key))
    def checks(stored: pl.DataFrame) -> Iterator[Any]:
        events = wiring.process(
            Orders, stored, asset=key, quarantine_writer=lambda frame: "nowhere"
        )
        try:
            for event in events:
                if isinstance(event, dg.AssetCheckResult):
                    yield event
        except (dd.errors.ValidationAbortError, dd.errors.NothingSurvivedError):
            return

    return checks


@pytest.mark.parametrize(
    ("build", "frame", "expected"),
    [
        (checks_with_evaluate, CLEAN, all_checks()),
        (checks_with_evaluate, SOME, all_checks(**FAILING)),
        (checks_with_evaluate, NONE_LEFT, all_checks(dy_rule__amount__min="ERROR")),
        (checks_with_process, CLEAN, all_checks()),
        (checks_with_process, SOME, SET_ASIDE),
        (checks_with_process, NONE_LEFT, all_checks(dy_rule__amount__min="ERROR")),
    ],
)
def test_checks_of_their_own_report_on_what_a_plain_asset_stored(
    files: FileIOManager,
    instance: dg.DagsterInstance,
    build: Any,
    frame: pl.DataFrame,
    expected: Checks,
) -> None:
    @dg.asset(metadata=wiring.schema_metadata(Orders))
    def stored() -> pl.DataFrame:
        return frame

    result = dg.materialize(
        [stored, build("stored")], instance=instance, resources={"io_manager": files}
    )
    assert result.success
    assert {
        evaluation.check_name: (evaluation.passed, evaluation.severity.name)
        for evaluation in result.get_asset_check_evaluations()
    } == expected
    assert files.files == ["stored.parquet"]


def test_columns_alone_go_on_an_asset_that_holds_no_frame(instance: dg.DagsterInstance) -> None:
    @dg.asset(metadata=wiring.schema_metadata(Orders))
    def external() -> None: ...

    resources = {"io_manager": dg.mem_io_manager}
    assert dg.materialize([external], instance=instance, resources=resources).success
    spec = dg.AssetSpec("elsewhere", metadata=wiring.schema_metadata(Orders))
    expected = {"dagster/column_schema": wiring.table_schema(Orders)}
    assert external.metadata_by_key[external.key] == expected
    assert spec.metadata == expected
    assert [column.name for column in wiring.table_schema(Orders).columns] == CLEAN.columns


# `evaluate` and `process` alone.


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
    assert results[0].metadata == {"dy_extra_columns": dg.MetadataValue.json(["extra"])}


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


# Quarantine by hand.


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
