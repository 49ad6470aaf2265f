"""How checks load a stored table, and which assets they take."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.storage import Store
from support.stored_trips import CHECKS, CLEAN, DAYS, DIRTY, FAILED, Trips, table

import dagster_dataframely as dd
from dagster_dataframely import _names
from dagster_dataframely.errors import InvalidArgumentError


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
        for schema, name in ((Trips, "strict"), (Loose, "loose"))
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
