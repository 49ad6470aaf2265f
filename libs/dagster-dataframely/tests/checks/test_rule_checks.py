"""The rules of a schema as checks of a table that something else writes."""

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import polars.selectors as cs
import pytest
from support.storage import Store
from support.stored_trips import DIRTY, DRIFTED, FAILED, Trips, table

import dagster_dataframely as dd
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely.data import OrdersSchema, invalid_orders


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
        "dy_schema__columns": (True, "ERROR", {"dy_severity": "error"})
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
