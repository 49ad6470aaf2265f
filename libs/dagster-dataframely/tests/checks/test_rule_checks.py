"""The rules of a schema as checks of a table that something else writes."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import polars.selectors as cs
import pytest
from dagster import AssetExecutionContext
from support.storage import Store

import dagster_dataframely as dd
from dagster_dataframely import _names
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely.data import OrdersSchema, invalid_orders
from dagster_dataframely.errors import InvalidArgumentError


class Trips(dy.Schema):
    """Rules of both severities, of columns and of the schema; one column has none."""

    id = dy.Int64(primary_key=True)
    km = dy.Int64(nullable=True, min=0)
    city = dy.String(nullable=True, max_length=4, metadata=dd.severity("warn"))
    note = dy.String(nullable=True)


CLEAN = pl.DataFrame({"id": [1, 2], "km": [1, None], "city": ["rome", None], "note": ["", None]})
"""No rule fails."""

DIRTY = pl.DataFrame(
    {
        "id": [3, 4, 4],
        "km": [-1, -2, 3],
        "city": ["rome", "oslo", "london"],
        "note": ["a", "b", "c"],
    }
)
"""Two rows fail an error rule, one a warn rule, and two share a key."""

DRIFTED = DIRTY.drop("km")
"""A column is missing, so no rule that names it can be evaluated."""

CHECKS = [
    "dy_schema__columns",
    "dy_rule__id__nullability",
    "dy_rule__km__min",
    "dy_rule__city__max_length",
    "dy_rule__primary_key",
]
FAILED = {"dy_rule__km__min": 2, "dy_rule__city__max_length": 1, "dy_rule__primary_key": 2}
"""How many rows of the dirty frame fail each rule."""

DAYS = dg.StaticPartitionsDefinition(["mon", "tue", "wed", "thu"])
GRID = dg.MultiPartitionsDefinition(
    {"day": DAYS, "city": dg.StaticPartitionsDefinition(["rome", "oslo"])}
)


def table(
    frame: Any, *, partitions_def: dg.PartitionsDefinition[Any] | None = None, **arguments: Any
) -> dg.AssetsDefinition:
    """A plain asset, whose frame is that of the run's partition where there are several."""

    def trips(context: AssetExecutionContext) -> Any:
        return frame[context.partition_key] if partitions_def is not None else frame

    definition: dg.AssetsDefinition = dg.asset(partitions_def=partitions_def, **arguments)(trips)
    return definition


# What the checks are and what they find.


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "lazy"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"check_granularity": "column", "multi_column_rules": "per_rule"},
        {"check_granularity": "schema", "severities": {"amount|min": "warn"}},
        {"check_granularity": "schema", "max_failure_samples": 0, "engine": "in-memory"},
    ],
    ids=["rule", "column", "schema", "no sample"],
)
def test_specs_and_results_are_those_of_an_asset_of_the_schema(
    store: Store, settings: Any, *, eager: bool
) -> None:
    frame = invalid_orders().with_columns(extra=1)

    @dg.asset
    def plain() -> pl.DataFrame:
        return frame

    declared = dd.asset(OrdersSchema, name="plain", **settings)(lambda: frame)
    checks = dd.build_rule_checks(OrdersSchema, asset=plain, **settings)
    expected = store.materialize(declared)
    if eager:
        store.load_eagerly()
    specs = {spec.name: spec for spec in checks.check_specs}
    assert specs == {spec.name: spec for spec in declared.check_specs}
    assert store.found(store.materialize(plain, checks)) == store.found(expected)


def test_a_check_runs_without_the_others(store: Store) -> None:
    trips = table(DIRTY)
    store.materialize(trips)
    checks = dd.build_rule_checks(Trips, asset=trips)
    ((name, (passed, severity, metadata)),) = store.found(
        store.check(checks, trips, only="dy_rule__city__max_length")
    ).items()
    assert (name, passed, severity) == ("dy_rule__city__max_length", False, "WARN")
    assert metadata["dy_failed_count"] == 1
    sample = metadata["dy_failed_sample"].records[0].data
    assert sample == {"id": 4, "city": "london"}  # The column of the rule, and the key.
    assert store.found(store.check(checks, trips, only="dy_schema__columns")) == {
        "dy_schema__columns": (True, "ERROR", {})
    }


class Fleet(dy.Schema):
    """Rules that see other rows, so that taking some away would change what they say."""

    id = dy.Int64(nullable=True, min=0)
    city = dy.String(nullable=True)

    @dy.rule()
    def no_city_has_one(cls) -> pl.Expr:
        return pl.len().over("city") > 1

    @dy.rule()
    def there_are_three(cls) -> pl.Expr:
        return pl.len() > 2


def test_a_check_finds_the_same_whether_others_run_or_not(store: Store) -> None:
    fleet = pl.DataFrame({"id": [1, -2, 3, 4], "city": ["rome", "rome", "oslo", "oslo"]})
    trips = table(fleet)
    checks = dd.build_rule_checks(Fleet, asset=trips)
    assert store.failures(store.materialize(trips, checks)) == {"dy_rule__id__min": 1}
    declared = dd.asset(Fleet, name="trips")(lambda: fleet[1:])
    assert store.failures(store.materialize(declared)) == {
        "dy_rule__id__min": 1,
        "dy_rule__no_city_has_one": 1,
        "dy_rule__there_are_three": 1,
    }
    store.materialize(table(fleet[1:]))
    for check, failed in {"dy_rule__no_city_has_one": 1, "dy_rule__there_are_three": None}.items():
        expected = {} if failed is None else {check: failed}
        assert store.failures(store.check(checks, trips, only=check)) == expected


def test_only_columns_that_rules_name_are_read(store: Store) -> None:
    def explode(_series: pl.Series) -> pl.Series:
        raise AssertionError

    unread = pl.col("note").map_batches(explode, return_dtype=pl.String)
    load = store.files.load_input
    store.files.load_input = lambda context: load(context).with_columns(unread)  # type: ignore[method-assign]
    trips = table(DIRTY)
    checks = dd.build_rule_checks(Trips, asset=trips)
    assert store.failures(store.materialize(trips, checks)) == FAILED


class Selected(dy.Schema):
    """Rules over columns that their expressions do not name, or that name none."""

    a = dy.Int64(nullable=True)
    b = dy.Int64(nullable=True, check=lambda _column: pl.lit(value=True))
    c = dy.String(nullable=True)

    @dy.rule()
    def numbers_are_positive(cls) -> pl.Expr:
        return pl.all_horizontal(cs.numeric() > 0)

    @dy.rule()
    def there_are_rows(cls) -> pl.Expr:
        return pl.len() > 0


@pytest.mark.parametrize(
    ("rules", "columns"),
    [
        (["b|check"], ["b"]),
        (["numbers_are_positive"], ["a", "b", "c"]),
        (["there_are_rows"], ["a", "b", "c"]),
        (["b|check", "there_are_rows"], ["b"]),
    ],
)
def test_rules_are_narrowed_to_the_columns_they_need(rules: list[str], columns: list[str]) -> None:
    schema = read_schema(Selected)
    narrowed = schema.narrowed(rule for rule in schema.rules if rule.name in rules)
    assert [rule.name for rule in narrowed.rules] == rules
    assert list(narrowed.columns) == columns


def test_a_missing_column_fails_the_run_and_is_named(store: Store) -> None:
    trips = table(DRIFTED)
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.materialize(trips, checks)
    name, message = store.error_of(result)
    assert name == "ColumnSchemaError"
    assert "Add `km`; nothing is added for you." in message
    ((name, (passed, severity, _)),) = store.found(result).items()
    assert (name, passed, severity) == ("dy_schema__columns", False, "ERROR")


def test_a_missing_column_does_not_matter_to_a_check_that_does_not_name_it(store: Store) -> None:
    trips = table(DRIFTED)
    store.materialize(trips)
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.check(checks, trips, only="dy_rule__primary_key")
    assert (result.success, store.failures(result)) == (True, {"dy_rule__primary_key": 2})
    result = store.check(checks, trips, only="dy_rule__km__min")
    assert (store.error_of(result)[0], store.found(result)) == ("ColumnSchemaError", {})


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "lazy"])
def test_a_cast_comes_before_the_checks(store: Store, *, eager: bool) -> None:
    trips = table(DIRTY.with_columns(pl.col("id").cast(pl.Int32)))
    if eager:
        store.load_eagerly()
    name, message = store.error_of(
        store.materialize(trips, dd.build_rule_checks(Trips, asset=trips))
    )
    assert (name, "with `cast=True`." in message) == ("ColumnSchemaError", True)
    checks = dd.build_rule_checks(Trips, asset=trips, cast=True)
    assert store.failures(store.materialize(trips, checks)) == FAILED
    drifted = table(DRIFTED)
    assert store.error_of(store.materialize(drifted, checks))[0] == "ColumnSchemaError"


def test_nothing_is_written(store: Store) -> None:
    trips = table(DIRTY)
    store.materialize(trips)
    before = store.files.files
    result = store.check(dd.build_rule_checks(Trips, asset=trips), trips)
    assert store.files.files == before == ["trips.parquet"]
    assert not [e for e in result.all_events if e.is_step_materialization]


# What can be checked.


@pytest.mark.parametrize(
    "value", [{"id": [1]}, [CLEAN], "text"], ids=lambda value: type(value).__name__
)
def test_an_asset_that_is_no_frame_is_named(store: Store, value: Any) -> None:
    trips = table(value)
    checks = dd.build_rule_checks(Trips, asset=trips)
    store.resources = {"io_manager": dg.mem_io_manager}
    result = store.materialize(trips, checks)
    name, message = store.error_of(result)
    assert name == "AssetReadError"
    assert f"`trips` cannot be checked: its IO manager loads it as a `{type(value).__name__}`" in (
        message
    )


@pytest.mark.parametrize("frame", [DIRTY, DIRTY.lazy()], ids=["eager", "lazy"])
def test_a_manager_that_keeps_the_object_gives_either_kind_of_frame(
    store: Store, frame: pl.DataFrame | pl.LazyFrame
) -> None:
    trips = table(frame)
    checks = dd.build_rule_checks(Trips, asset=trips)
    store.resources = {"io_manager": dg.mem_io_manager}
    assert store.failures(store.materialize(trips, checks)) == FAILED


@pytest.mark.parametrize("how", ["spec", "key", "bare key"])
def test_a_table_that_no_asset_writes_loads_through_the_manager_of_its_spec(
    store: Store, how: str
) -> None:
    spec = dg.AssetSpec(["lake", "trips"], metadata={"dagster/io_manager_key": "lake"})
    DIRTY.write_parquet(_created(store.files.path(spec.key)))
    target: Any = {"spec": spec, "key": spec.key, "bare key": ["lake", "trips"]}[how]
    store.resources = {"io_manager": dg.mem_io_manager, "lake": store.files}
    checks = dd.build_rule_checks(Trips, asset=target)
    assert store.failures(store.check(checks, spec)) == FAILED


def _created(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_an_asset_with_an_io_manager_of_its_own_loads_through_it(store: Store) -> None:
    with pytest.warns(dg.BetaWarning, match="io_manager_def"):
        trips = table(DIRTY, io_manager_def=store.files)
    checks = dd.build_rule_checks(Trips, asset=trips)
    dg.materialize([trips], instance=store.instance)
    assert store.failures(store.check(checks, trips)) == FAILED


def test_the_table_of_an_asset_of_the_schema_is_checked_again_under_other_names(
    store: Store,
) -> None:
    @dd.asset(Trips, quarantine=True)
    def trips() -> pl.DataFrame:
        return DIRTY

    checks = dd.build_rule_checks(Trips, asset=trips)
    names = [spec.name for spec in checks.check_specs]
    assert names == [name.replace("dy_", "dy_stored__", 1) for name in CHECKS]
    written = store.materialize(trips, checks)
    assert store.failures(written) == FAILED
    # Something else puts the rows there that the asset had set aside.
    DIRTY.write_parquet(store.files.path(trips.key))
    again = {f"dy_stored__{name.removeprefix('dy_')}": rows for name, rows in FAILED.items()}
    result = store.check(checks, trips)
    assert store.failures(result) == again
    assert set(store.found(result)) == set(names)
    assert store.failures(store.check(checks, trips, only="dy_stored__rule__km__min")) == {
        "dy_stored__rule__km__min": 2
    }


def test_checks_of_several_assets_and_under_another_key(store: Store) -> None:
    trips, fares = table(DIRTY), dg.asset(name="fares")(lambda: CLEAN)
    both = [dd.build_rule_checks(Trips, asset=asset) for asset in (trips, fares)]
    assert store.failures(store.materialize(trips, fares, *both)) == FAILED


def test_dagster_can_move_checks_and_asset_to_another_key(store: Store) -> None:
    trips = table(DIRTY)
    module = ModuleType("module")
    vars(module).update(trips=trips, checks=dd.build_rule_checks(Trips, asset=trips))
    (moved,) = dg.load_assets_from_modules([module], key_prefix="city")
    (checks,) = dg.load_asset_checks_from_modules([module], asset_key_prefix="city")
    assert store.failures(store.materialize(moved, checks)) == FAILED


# Partitions.


BY_DAY = {"mon": DIRTY, "tue": CLEAN, "thu": DIRTY[2:]}
"""Wednesday is never materialized."""


@pytest.fixture
def days(store: Store) -> dg.AssetsDefinition:
    trips = table(BY_DAY, partitions_def=DAYS)
    for day in BY_DAY:
        assert store.materialize(trips, partition_key=day).success
    return trips


def test_a_run_with_a_partition_checks_that_partition(store: Store) -> None:
    trips = table(BY_DAY, partitions_def=DAYS)
    checks = dd.build_rule_checks(Trips, asset=trips)
    assert [spec.partitions_def for spec in checks.check_specs] == [DAYS] * len(CHECKS)
    for day, failed in {"mon": FAILED, "tue": {}}.items():
        result = store.materialize(trips, checks, partition_key=day)
        assert (set(store.found(result, day)), store.failures(result, day)) == (set(CHECKS), failed)
        assert store.found(result) == {}
    assert store.failures(store.check(checks, trips, partition="mon"), "mon") == FAILED
    assert store.statuses("trips", "dy_rule__km__min") == {"mon": "FAILED", "tue": "SUCCEEDED"}


def test_a_run_without_a_partition_checks_each_that_is_materialized(
    store: Store, days: dg.AssetsDefinition
) -> None:
    checks = dd.build_rule_checks(Trips, asset=days)
    result = store.check(checks, days)
    by_day = {day: store.failures(result, day) for day in ("mon", "tue", "wed", "thu")}
    assert by_day == {"mon": FAILED, "tue": {}, "wed": {}, "thu": {"dy_rule__city__max_length": 1}}
    assert store.found(result, "wed") == {}
    sums = {"dy_partitions": 3, "dy_failed_count": 0, "dy_failed_partitions": 0}
    assert store.found(result) == {
        "dy_schema__columns": (True, "ERROR", {"dy_partitions": 3, "dy_failed_partitions": 0}),
        "dy_rule__id__nullability": (True, "ERROR", sums),
        "dy_rule__km__min": (
            False,
            "ERROR",
            sums | {"dy_failed_count": 2, "dy_failed_partitions": 1},
        ),
        "dy_rule__city__max_length": (
            False,
            "WARN",
            sums | {"dy_failed_count": 2, "dy_failed_partitions": 2},
        ),
        "dy_rule__primary_key": (
            False,
            "ERROR",
            sums | {"dy_failed_count": 2, "dy_failed_partitions": 1},
        ),
    }
    assert store.statuses("trips", "dy_rule__city__max_length") == {
        None: "FAILED",
        "mon": "FAILED",
        "tue": "SUCCEEDED",
        "thu": "FAILED",
    }


def test_each_evaluation_is_about_the_partitions_latest_materialization(
    store: Store, days: dg.AssetsDefinition
) -> None:
    store.check(dd.build_rule_checks(Trips, asset=days), days)
    key = dg.AssetCheckKey(days.key, "dy_rule__km__min")
    infos = store.instance.event_log_storage.get_asset_check_partition_info([key])
    current = {info.partition_key: info.is_current for info in infos if info.partition_key}
    assert current == {"mon": True, "tue": True, "thu": True}


def test_a_range_of_partitions_has_an_evaluation_for_each(
    store: Store, days: dg.AssetsDefinition
) -> None:
    checks = dd.build_rule_checks(Trips, asset=days)
    tags = {"asset_partition_range_start": "mon", "asset_partition_range_end": "wed"}
    result = store.check(checks, days, **tags)
    assert [store.failures(result, day) for day in DAYS.get_partition_keys()] == [
        FAILED,
        {},
        {},
        {},
    ]
    assert store.found(result) == {}
    assert [day for day in DAYS.get_partition_keys() if store.found(result, day)] == ["mon", "tue"]


def test_without_a_materialized_partition_every_check_passes(store: Store) -> None:
    trips = table(BY_DAY, partitions_def=DAYS)
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.check(checks, trips)
    nothing = {"dy_partitions": 0, "dy_failed_partitions": 0, "dy_failed_count": 0}
    assert store.found(result) == dict.fromkeys(CHECKS, (True, "ERROR", nothing))


def test_a_partition_with_other_columns_does_not_hide_the_next(store: Store) -> None:
    by_day = {"mon": DRIFTED, "tue": DIRTY, "wed": DRIFTED.drop("city")}
    trips = table(by_day, partitions_def=DAYS)
    for day in by_day:
        assert store.materialize(trips, partition_key=day).success
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.check(checks, trips)
    name, message = store.error_of(result)
    assert (name, "`city`" in message) == ("ColumnSchemaError", False)
    assert (
        set(store.found(result, "mon")) == set(store.found(result, "wed")) == {"dy_schema__columns"}
    )
    assert store.failures(result, "tue") == FAILED
    assert store.found(result) == {}


def test_a_grid_is_checked_cell_by_cell(store: Store) -> None:
    cells = {"rome|mon": DIRTY, "oslo|tue": CLEAN}
    trips = table(cells, partitions_def=GRID)
    checks = dd.build_rule_checks(Trips, asset=trips)
    for cell, failed in {"rome|mon": FAILED, "oslo|tue": {}}.items():
        city, day = cell.split("|")
        key = dg.MultiPartitionKey({"city": city, "day": day})
        assert store.failures(store.materialize(trips, checks, partition_key=key), cell) == failed
    result = store.check(checks, trips)
    assert {cell: store.failures(result, cell) for cell in cells} == {
        "rome|mon": FAILED,
        "oslo|tue": {},
    }


def test_dynamic_partitions(store: Store) -> None:
    partitions = dg.DynamicPartitionsDefinition(name="cities")
    store.instance.add_dynamic_partitions("cities", ["rome"])
    trips = table({"rome": DIRTY}, partitions_def=partitions)
    store.materialize(trips, partition_key="rome")
    result = store.check(dd.build_rule_checks(Trips, asset=trips), trips)
    assert store.failures(result, "rome") == FAILED


def test_a_key_with_partitions_has_partitioned_specs(
    store: Store, days: dg.AssetsDefinition
) -> None:
    checks = dd.build_rule_checks(Trips, asset="trips", partitions_def=DAYS)
    assert store.failures(store.check(checks, days), "mon") == FAILED


def test_checks_of_an_unpartitioned_asset_in_a_run_with_a_partition(store: Store) -> None:
    trips = table(DIRTY)
    fares = dg.asset(name="fares", partitions_def=DAYS)(lambda: CLEAN)
    checks = dd.build_rule_checks(Trips, asset=trips)
    result = store.materialize(trips, fares, checks, partition_key="mon")
    assert store.failures(result) == FAILED


# Arguments.


def test_a_definition_of_several_assets_is_refused() -> None:
    @dg.multi_asset(specs=[dg.AssetSpec("a"), dg.AssetSpec("b")])
    def both() -> Iterator[dg.MaterializeResult[None]]:
        yield dg.MaterializeResult(asset_key="a")

    with pytest.raises(InvalidArgumentError, match="defines 2 assets"):
        dd.build_rule_checks(Trips, asset=both)


@pytest.mark.parametrize("asset", [table(CLEAN), dg.AssetSpec("trips")], ids=["asset", "spec"])
def test_partitions_beside_a_definition_are_refused(
    asset: dg.AssetsDefinition | dg.AssetSpec,
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        dd.build_rule_checks(Trips, asset=asset, partitions_def=DAYS)
    assert raised.value.argument == "partitions_def"


def test_a_spec_brings_its_partitions() -> None:
    checks = dd.build_rule_checks(Trips, asset=dg.AssetSpec("trips", partitions_def=DAYS))
    assert {spec.partitions_def for spec in checks.check_specs} == {DAYS}


def test_dagsters_arguments_reach_the_op_and_the_specs() -> None:
    condition = dg.AutomationCondition.eager()
    retry_policy = dg.RetryPolicy(max_retries=2)
    checks = dd.build_rule_checks(
        Trips,
        asset=["city", "trips"],
        name="nightly",
        automation_condition=condition,
        op_tags={"team": "data"},
        pool="duckdb",
        retry_policy=retry_policy,
    )
    op = checks.op
    assert (op.name, op.pool, op.retry_policy) == ("nightly", "duckdb", retry_policy)
    assert op.tags == {"team": "data"}
    assert {spec.automation_condition for spec in checks.check_specs} == {condition}
    assert checks.can_subset
    assert (
        dd.build_rule_checks(Trips, asset=["city", "trips"]).op.name == "city__trips__rule_checks"
    )


def test_names_of_checks_on_a_stored_table() -> None:
    assert _names.stored_check_name("dy_rule__a") == "dy_stored__rule__a"


def test_a_name_tells_the_checks_of_two_schemas_apart(store: Store) -> None:
    class Loose(dy.Schema):
        id = dy.Int64(primary_key=True)

    trips = table(CLEAN)
    both = [
        dd.build_rule_checks(schema, asset=trips, name=name)
        for schema, name in ((Trips, "trips"), (Loose, "loose"))
    ]
    result = store.materialize(trips, *both)
    assert result.success
    columns = {name for name in store.found(result) if name.startswith("dy_schema__columns")}
    assert columns == {"dy_schema__columns__strict", "dy_schema__columns__loose"}


def test_renamed_fields_of_a_struct_are_a_finding(store: Store) -> None:
    class Geo(dy.Schema):
        geo = dy.Struct({"lat": dy.Float64(nullable=True)}, nullable=True)

    places = table(pl.DataFrame({"geo": [{"latitude": 1.0}]}))
    checks = dd.build_rule_checks(Geo, asset=places, cast=True)
    result = store.materialize(places, checks)
    name, message = store.error_of(result)
    assert name == "ColumnSchemaError"
    assert "No cast of `geo` has one meaning: it has no field `lat`" in message
