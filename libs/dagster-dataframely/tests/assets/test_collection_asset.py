"""One function, an asset for each member of a collection, and exits that they share."""

import inspect
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster import AssetExecutionContext
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.declare import declare
from support.execution import Execution, left_by_call
from support.storage import Store, left_by_run

import dagster_dataframely as dd
from dagster_dataframely import _names
from dagster_dataframely._assets.collection_asset import DECIDED, DagsterArguments
from dagster_dataframely._schema.collection import read_collection
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._settings import Settings
from dagster_dataframely._validation.filters import apply_filters
from dagster_dataframely._validation.in_memory import evaluate
from dagster_dataframely._validation.streaming import evaluate_plan
from dagster_dataframely._validation.verdict import Verdict
from dagster_dataframely.errors import (
    CheckNameCollisionError,
    ColumnSchemaError,
    InvalidArgumentError,
    InvalidCollectionError,
    InvalidSeverityError,
    NothingSurvivedError,
    ReturnValueError,
    ValidationAbortError,
)
from dagster_dataframely.testing import invoke_collection


class Order(dy.Schema):
    """The head of an order."""

    id = dy.Int64(primary_key=True)
    total = dy.Int64(nullable=True, min=0)


class Line(dy.Schema):
    """Several for each order."""

    id = dy.Int64(primary_key=True)
    line = dy.Int64(primary_key=True)
    amount = dy.Int64(nullable=True, max=9, metadata=dd.severity("warn"))


class Note(dy.Schema):
    """Has another key, so filters do not apply to it."""

    text = dy.String(primary_key=True, max_length=3)


class Shop(dy.Collection):
    """Two members with a common key, and two that may not be there."""

    orders: dy.DataFrame[Order]
    lines: dy.LazyFrame[Line]
    notes: Annotated[dy.DataFrame[Note] | None, dy.CollectionMember(ignored_in_filters=True)]

    @dy.filter()
    def has_lines(self) -> pl.LazyFrame:
        """An order has lines, and a line has an order."""
        return self.orders.lazy().join(self.lines, on="id", how="semi")


ORDERS = pl.DataFrame({"id": [1, 2], "total": [3, None]})
LINES = pl.DataFrame({"id": [1, 2, 2], "line": [1, 1, 2], "amount": [1, 20, None]})
"""One row warns."""
NOTES = pl.DataFrame({"text": ["abc"]})
CLEAN = {"orders": ORDERS, "lines": LINES, "notes": NOTES}

DIRTY = {
    "orders": pl.DataFrame({"id": [1, 2, 3, 4], "total": [1, 2, -3, 4]}),
    "lines": pl.DataFrame(
        {"id": [1, 1, 3, 4, 5], "line": [1, 2, 1, 1, 1], "amount": [1, 20, 3, 4, 50]}
    ),
    "notes": NOTES,
}
"""Order 3 fails a rule, so that its line has no order; order 2 has no line, and line 5 no order."""

ORDER_RULES = ["id__nullability", "total__min", "primary_key"]
LINE_RULES = ["id__nullability", "line__nullability", "amount__max", "primary_key"]
NOTE_RULES = ["text__nullability", "text__max_length", "primary_key"]


def words(frame: pl.DataFrame, rules: list[str], **columns: list[str]) -> pl.DataFrame:
    """Error rows with what each rule says of them, `valid` where nothing else is said."""
    valid = {f"dy_rule__{rule}": ["valid"] * frame.height for rule in rules}
    return frame.with_columns(pl.Series(name, words) for name, words in (valid | columns).items())


ERROR_ROWS = {
    "orders": words(
        DIRTY["orders"][1:3],
        ORDER_RULES,
        dy_rule__total__min=["valid", "invalid"],
        dy_filter__has_lines=["invalid", "unknown"],
    ),
    "lines": words(
        DIRTY["lines"][[2, 4]],
        LINE_RULES,
        dy_rule__amount__max=["valid", "invalid"],
        dy_filter__has_lines=["invalid", "invalid"],
    ),
}
SURVIVORS = {
    "orders": DIRTY["orders"][[0, 3]],
    "lines": DIRTY["lines"][[0, 1, 3]],
    "notes": NOTES,
}
FAILED = {
    "orders": {"dy_rule__total__min": 1, "dy_filter__has_lines": 1},
    "lines": {"dy_rule__amount__max": 2, "dy_filter__has_lines": 2},
    "notes": {},
}
CHECKS = {
    "orders": [
        "dy_schema__columns",
        *(f"dy_rule__{rule}" for rule in ORDER_RULES),
        "dy_filter__has_lines",
    ],
    "lines": [
        "dy_schema__columns",
        *(f"dy_rule__{rule}" for rule in LINE_RULES),
        "dy_filter__has_lines",
    ],
    "notes": ["dy_schema__columns", *(f"dy_rule__{rule}" for rule in NOTE_RULES)],
}

DAYS = dg.StaticPartitionsDefinition(["mon", "tue"])


def of_partition(by_partition: Mapping[str, object]) -> Callable[..., object]:
    def shop(context: AssetExecutionContext) -> object:
        return by_partition[context.partition_key]

    return shop


Execute = Callable[[dg.AssetsDefinition], dict[str, Execution]]


@pytest.fixture(params=["run", "call"])
def execute(request: pytest.FixtureRequest, store: Store) -> Execute:
    """Execute the assets of a collection in a run or by a direct invocation."""

    def run(asset: dg.AssetsDefinition) -> dict[str, Execution]:
        result = store.materialize(asset)
        return {name: left_by_run(result, dg.AssetKey(name), store.files) for name in CHECKS}

    def call(asset: dg.AssetsDefinition) -> dict[str, Execution]:
        return {name: left_by_call(member) for name, member in invoke_collection(asset).items()}

    return run if request.param == "run" else call


def assert_stored(
    members: Mapping[str, Execution],
    *,
    tables: Mapping[str, pl.DataFrame],
    quarantines: Mapping[str, pl.DataFrame],
) -> None:
    for name, member in members.items():
        member.assert_stored(table=tables.get(name), quarantine=quarantines.get(name))


# The six exits, shared.


@pytest.mark.parametrize("quarantine", [True, False])
def test_members_without_error_rows_are_written(execute: Execute, *, quarantine: bool) -> None:
    members = execute(declare(Shop, Shop.cast(CLEAN), quarantine=quarantine))
    assert all(member.success for member in members.values())
    assert_stored(members, tables=CLEAN, quarantines={})
    assert {name: list(member.checks) for name, member in members.items()} == CHECKS
    assert {name: member.failed_rows for name, member in members.items()} == {
        "orders": {},
        "lines": {"dy_rule__amount__max": 1},
        "notes": {},
    }
    assert members["lines"].failed == {"dy_rule__amount__max": "WARN"}


@pytest.mark.parametrize("engine", ["auto", "in-memory", "streaming"])
def test_error_rows_of_every_member_are_set_aside(execute: Execute, engine: str) -> None:
    members = execute(declare(Shop, Shop.cast(DIRTY), quarantine=True, engine=engine))
    assert all(member.success for member in members.values())
    assert_stored(members, tables=SURVIVORS, quarantines=ERROR_ROWS)
    assert {name: member.failed_rows for name, member in members.items()} == FAILED
    assert set(members["orders"].failed.values()) == {"WARN"}
    orders, lines = members["orders"].table, members["lines"].table
    assert orders is not None
    assert lines is not None
    without_warn_rows = lines.with_columns(amount=pl.lit(None, pl.Int64))
    # `Collection.is_valid` cannot take a member that is ignored in filters (Dataframely 3.1).
    tables = {"orders": orders, "lines": without_warn_rows}
    assert Shop.is_valid(tables)


def test_an_error_row_of_one_member_keeps_all_from_being_written(store: Store) -> None:
    frames = CLEAN | {"notes": pl.DataFrame({"text": ["long text"]})}
    assert store.materialize(declare(Shop, Shop.cast(CLEAN))).success
    result = store.materialize(declare(Shop, Shop.cast(frames)))
    assert store.error_of(result)[0] == "ValidationAbortError"
    assert store.failures(result, asset="notes") == {"dy_rule__text__max_length": 1}
    for name, checks in CHECKS.items():
        assert list(store.found(result, asset=name)) == checks
    assert not result.get_asset_materialization_events()
    assert store.files.files == ["lines.parquet", "notes.parquet", "orders.parquet"]


def test_a_filter_keeps_all_from_being_written_without_a_quarantine(store: Store) -> None:
    result = store.materialize(declare(Shop, Shop.cast(CLEAN | {"orders": ORDERS[:1]})))
    name, message = store.error_of(result)
    assert (name, "`has_lines` (2)" in message) == ("ValidationAbortError", True)
    assert store.failures(result, asset="lines") == {
        "dy_rule__amount__max": 1,
        "dy_filter__has_lines": 2,
    }
    assert store.files.files == []


def test_a_member_of_which_nothing_survives_keeps_all_from_being_written(store: Store) -> None:
    frames = CLEAN | {"orders": ORDERS.with_columns(total=-1)}
    result = store.materialize(declare(Shop, Shop.cast(frames), quarantine=True))
    name, message = store.error_of(result)
    assert (name, "`orders`" in message) == ("NothingSurvivedError", True)
    assert store.files.files == ["lines_quarantine.parquet", "orders_quarantine.parquet"]
    found = store.found(result, asset="lines")["dy_filter__has_lines"]
    assert (found[:2], found[2]["dy_failed_count"]) == ((False, "ERROR"), 3)
    address = found[2]["dataframely/quarantine_address"]
    assert address.startswith("lines_quarantine")
    quarantine = store.files.read("lines_quarantine")
    assert quarantine is not None
    assert quarantine["dy_filter__has_lines"].to_list() == ["invalid"] * 3


def test_another_column_of_one_member_keeps_all_from_being_looked_at(store: Store) -> None:
    frames = {**DIRTY, "lines": DIRTY["lines"].drop("amount")}
    result = store.materialize(declare(Shop, dict(frames), quarantine=True), partition_key=None)
    assert store.error_of(result)[0] == "ColumnSchemaError"
    for name in CHECKS:
        assert list(store.found(result, asset=name)) == ["dy_schema__columns"]
    assert store.found(result, asset="lines")["dy_schema__columns"][0] is False
    assert store.files.files == []


def test_a_run_that_skips_writes_no_member(execute: Execute) -> None:
    members = execute(declare(Shop, None, quarantine=True))
    assert all(member.success for member in members.values())
    assert_stored(members, tables={}, quarantines={})
    assert {name: list(member.checks) for name, member in members.items()} == CHECKS
    assert {name: member.failed_rows for name, member in members.items()} == {
        "orders": {},
        "lines": {},
        "notes": {},
    }


@pytest.mark.parametrize("returned", [{"notes": None}, {}], ids=["None", "not there"])
def test_an_optional_member_is_skipped_alone(execute: Execute, returned: dict[str, Any]) -> None:
    frames = {"orders": ORDERS, "lines": LINES} | returned
    members = execute(declare(Shop, frames))
    assert_stored(members, tables={"orders": ORDERS, "lines": LINES}, quarantines={})
    assert list(members["notes"].checks) == CHECKS["notes"]
    assert members["notes"].failed == {}


# Settling.


class Head(dy.Schema):
    """Its rule over several rows fails for the row that is left alone."""

    id = dy.Int64(primary_key=True)
    city = dy.String()

    @dy.rule()
    def no_city_has_one(cls) -> pl.Expr:
        return pl.len().over("city") > 1


class Part(dy.Schema):
    """Part of a head."""

    id = dy.Int64(primary_key=True)
    part = dy.Int64(primary_key=True)


class Chain(dy.Collection):
    """A row that a filter takes away makes a rule fail, which makes another filter fail."""

    heads: dy.LazyFrame[Head]
    parts: dy.LazyFrame[Part]

    @dy.filter()
    def has_parts(self) -> pl.LazyFrame:
        return self.heads.join(self.parts, on="id")

    @dy.filter()
    def one_of_many(self) -> pl.LazyFrame:
        """The heads are at least two, or one whose key is above 9."""
        return self.heads.filter((pl.len() > 1) | (pl.col("id") > 9))


CHAIN = {
    "heads": pl.DataFrame({"id": [1, 2, 3], "city": ["rome", "rome", "oslo"]}),
    "parts": pl.DataFrame({"id": [1, 3, 3, 10], "part": [1, 1, 2, 1]}),
}
"""Head 2 has no part; then Rome has one head, and Oslo has had one all along."""


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rules_and_filters_are_evaluated_again_until_nothing_fails(engine: str) -> None:
    frames = CHAIN | {
        "heads": pl.DataFrame({"id": [1, 2, 4, 5], "city": ["rome", "rome", "oslo", "oslo"]}),
        "parts": pl.DataFrame({"id": [1, 4, 5, 1], "part": [1, 1, 1, 2]}),
    }
    result = invoke_collection(declare(Chain, frames, quarantine=True, engine=engine))
    heads, parts = result["heads"], result["parts"]
    assert heads.quarantine is not None
    assert heads.quarantine.select(
        "id", "dy_rule__no_city_has_one", "dy_filter__has_parts", "dy_filter__one_of_many"
    ).rows() == [
        (1, "invalid", "valid", "valid"),
        (2, "valid", "invalid", "valid"),
    ]
    assert parts.quarantine is not None
    assert parts.quarantine.select("id", "part", "dy_filter__has_parts").rows() == [
        (1, 1, "invalid"),
        (1, 2, "invalid"),
    ]
    assert heads.table is not None
    assert parts.table is not None
    assert Chain.is_valid({"heads": heads.table, "parts": parts.table})
    check = heads.checks["dy_rule__no_city_has_one"]
    assert check.metadata["dy_failed_count"].value == 1
    sample: Any = check.metadata["dy_failed_sample"].value
    assert [record.data["id"] for record in sample.records] == [1]


class Crowd(dy.Schema):
    """Its rule is about all rows."""

    id = dy.Int64(primary_key=True)

    @dy.rule()
    def there_are_three(cls) -> pl.Expr:
        return pl.len() > 2


class Pairs(dy.Collection):
    """Keys that both have."""

    some: dy.LazyFrame[Crowd]
    others: dy.LazyFrame[Crowd]

    @dy.filter()
    def in_both(self) -> pl.LazyFrame:
        return self.some.join(self.others, on="id")


def test_a_rule_over_the_whole_table_looks_at_what_the_filters_leave(store: Store) -> None:
    frames = {"some": pl.DataFrame({"id": [1, 2, 3]}), "others": pl.DataFrame({"id": [2, 3, 4, 5]})}
    assert all(Crowd.is_valid(frame) for frame in frames.values())
    result = store.materialize(declare(Pairs, frames, quarantine=True))
    assert store.error_of(result)[0] == "ValidationAbortError"
    assert store.failures(result, asset="some") == {
        "dy_rule__there_are_three": 1,
        "dy_filter__in_both": 1,
    }
    assert store.files.files == ["others_quarantine.parquet", "some_quarantine.parquet"]


def test_nothing_is_left_of_a_chain() -> None:
    with pytest.raises(NothingSurvivedError) as raised:
        invoke_collection(declare(Chain, CHAIN, quarantine=True))
    assert raised.value.counts == {"no_city_has_one": 2, "has_parts": 1}


def test_a_filter_that_warns_looks_at_what_is_written() -> None:
    severities: Any = {"has_parts": "warn", "heads": {"no_city_has_one": "warn"}}
    frames = CHAIN | {"parts": CHAIN["parts"][:3]}
    result = invoke_collection(declare(Chain, frames, severities=severities))
    heads = result["heads"]
    assert heads.table is not None
    assert heads.table["id"].to_list() == [1, 2, 3]
    assert heads.failed == ["dy_rule__no_city_has_one", "dy_filter__has_parts"]
    check = heads.checks["dy_filter__has_parts"]
    assert (check.severity.name, check.metadata["dy_failed_count"].value) == ("WARN", 1)
    sample: Any = check.metadata["dy_failed_sample"].value
    assert [record.data["id"] for record in sample.records] == [2]
    assert result["parts"].failed == []


class Strict(dy.Collection):
    """An error row of one member takes the rows of its key out of the other."""

    orders: Annotated[dy.LazyFrame[Order], dy.CollectionMember(propagate_row_failures=True)]
    lines: dy.LazyFrame[Line] | None


def test_row_failures_propagate() -> None:
    frames = {name: DIRTY[name] for name in ("orders", "lines")}
    result = invoke_collection(declare(Strict, frames, quarantine=True))
    _, failure = Strict.filter({name: frame.lazy() for name, frame in frames.items()})
    assert failure["lines"].counts()["orders|failure_propagation"] == 1
    assert result["lines"].quarantine is not None
    rows = result["lines"].quarantine.select("id", "dy_filter__orders__failure_propagation")
    assert rows.rows() == [(3, "invalid")]
    assert (
        result["lines"].checks["dy_filter__orders__failure_propagation"].metadata["dy_filter"].value
        == "orders|failure_propagation"
    )
    alone = invoke_collection(declare(Strict, {"orders": frames["orders"]}, quarantine=True))
    assert alone["orders"].failed == ["dy_rule__total__min"]


class Lonely(dy.Collection):
    """The only member that passes failures on is not there."""

    orders: dy.LazyFrame[Order]
    lines: Annotated[dy.LazyFrame[Line] | None, dy.CollectionMember(propagate_row_failures=True)]


def test_a_member_that_is_not_there_propagates_nothing() -> None:
    result = invoke_collection(declare(Lonely, {"orders": ORDERS}, quarantine=True))
    assert result["orders"].failed == []


@st.composite
def shops(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    ids = st.lists(st.integers(0, 4), max_size=6)
    orders, lines = draw(ids), draw(ids)
    totals = draw(st.lists(st.integers(-1, 1), min_size=len(orders), max_size=len(orders)))
    schema = {"id": pl.Int64, "total": pl.Int64}
    return {
        "orders": pl.DataFrame({"id": orders, "total": totals}, schema=schema),
        "lines": pl.DataFrame(
            {"id": lines, "line": range(len(lines)), "amount": [1] * len(lines)},
            schema={"id": pl.Int64, "line": pl.Int64, "amount": pl.Int64},
        ),
    }


def judged(
    collection: type[dy.Collection], frames: dict[str, pl.DataFrame], *, lazy: bool
) -> dict[str, Verdict[Any]]:
    """The verdicts on the members, with frames in memory; without a run, which takes a while."""
    rules = read_collection(collection, propagation=True)
    schemas = {name: read_schema(rules.schemas[name]) for name in frames}
    one = Settings(max_failure_samples=1)
    declared = {name: Declaration(dg.AssetKey(name), rules, one) for name, rules in schemas.items()}
    with tempfile.TemporaryDirectory() as folder:
        verdicts: dict[str, Verdict[Any]] = {}
        for name, frame in frames.items():
            place = Path(folder, name)
            place.mkdir()
            if lazy:
                plan = frame.lazy()
                found = evaluate_plan(plan, schemas[name], place, sample=1, log=lambda _: None)
                verdicts[name] = found
            else:
                verdicts[name] = evaluate(frame, schemas[name], sample=1)
        return {
            name: replace(
                verdict,
                survivors=verdict.survivors.lazy().collect(),
                error_rows=verdict.error_rows.lazy().collect(),
            )
            for name, verdict in apply_filters(rules, declared, verdicts).items()
        }


@settings(deadline=None, max_examples=100)
@given(frames=shops(), lazy=st.booleans())
def test_survivors_and_error_rows_are_dataframelys(
    frames: dict[str, pl.DataFrame], *, lazy: bool
) -> None:
    filtered, failure = Shop.filter({name: frame.lazy() for name, frame in frames.items()})
    for name, verdict in judged(Shop, frames, lazy=lazy).items():
        assert_frame_equal(verdict.survivors, filtered.to_dict()[name].collect())
        assert verdict.error_count == verdict.error_rows.height == len(failure[name])
        counts = {rule: count for rule, count in verdict.counts.items() if count}
        assert counts == failure[name].counts()


@st.composite
def chains(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    heads = draw(st.lists(st.integers(8, 14), max_size=6, unique=True))
    cities = draw(st.lists(st.sampled_from("ab"), min_size=len(heads), max_size=len(heads)))
    parts = draw(st.lists(st.integers(8, 14), max_size=6))
    return {
        "heads": pl.DataFrame(
            {"id": heads, "city": cities}, schema={"id": pl.Int64, "city": pl.String}
        ),
        "parts": pl.DataFrame(
            {"id": parts, "part": range(len(parts))}, schema={"id": pl.Int64, "part": pl.Int64}
        ),
    }


@settings(deadline=None, max_examples=100)
@given(frames=chains(), lazy=st.booleans())
def test_what_is_left_satisfies_the_collection(
    frames: dict[str, pl.DataFrame], *, lazy: bool
) -> None:
    verdicts = judged(Chain, frames, lazy=lazy)
    assert Chain.is_valid({name: verdict.survivors for name, verdict in verdicts.items()})
    for name, verdict in verdicts.items():
        rows = [verdict.survivors, verdict.error_rows.select(frames[name].columns)]
        assert_frame_equal(pl.concat(rows), frames[name], check_row_order=False)
        assert verdict.error_rows["id"].is_in(frames[name]["id"]).all()


# What is declared.


def test_each_member_is_an_asset_with_its_columns_and_checks() -> None:
    shop = declare(Shop, None, quarantine=True, quarantine_layout="list")
    specs = {spec.key.to_user_string(): spec for spec in shop.specs}
    assert set(specs) == set(CHECKS)
    checks: dict[str, list[str]] = {}
    for spec in shop.check_specs:
        checks.setdefault(spec.asset_key.to_user_string(), []).append(spec.name)
    assert checks == CHECKS
    assert specs["orders"].description == "The head of an order."
    assert specs["orders"].kinds == {"polars"}
    assert specs["orders"].metadata[_names.QUARANTINE_LAYOUT] == "list"
    columns = specs["lines"].metadata["dagster/column_schema"]
    assert [column.name for column in columns.columns] == ["id", "line", "amount"]
    assert columns.constraints.other == [
        "primary key: id, line",
        "An order has lines, and a line has an order.",
    ]
    described = {(s.asset_key.path[-1], s.name): s.description for s in shop.check_specs}
    assert described["orders", "dy_filter__has_lines"] == columns.constraints.other[1]
    assert shop.op.name == "shop"


def test_a_member_takes_what_its_asset_out_says() -> None:
    condition = dg.AutomationCondition.eager()
    shop = declare(
        Shop,
        None,
        key_prefix="city",
        io_manager_key="lake",
        code_version="7",
        outs={
            "orders": dg.AssetOut(
                key="heads",
                io_manager_key="duckdb",
                description="Heads.",
                metadata={"partition_expr": "id"},
                group_name="shop",
                code_version="8",
                automation_condition=condition,
                owners=["team:data"],
                tags={"tier": "1"},
                kinds={"duckdb"},
            ),
            "notes": dg.AssetOut(key_prefix=["town", "hall"]),
        },
    )
    specs = {spec.key.to_user_string(): spec for spec in shop.specs}
    assert set(specs) == {"heads", "city/lines", "town/hall/notes"}
    heads = specs["heads"]
    assert (heads.description, heads.group_name, heads.code_version) == ("Heads.", "shop", "8")
    assert (heads.automation_condition, list(heads.owners)) == (condition, ["team:data"])
    assert heads.kinds == {"duckdb", "polars"}
    assert heads.tags["tier"] == "1"
    assert heads.metadata["partition_expr"] == "id"
    assert specs["city/lines"].code_version == "7"
    managers = {key.path[-1]: shop.get_io_manager_key_for_asset_key(key) for key in shop.keys}
    assert managers == {"heads": "duckdb", "lines": "lake", "notes": "lake"}


def test_arguments_of_the_op_reach_it() -> None:
    retry_policy = dg.RetryPolicy(max_retries=2)
    shop = declare(
        Shop,
        None,
        name="nightly",
        pool="duckdb",
        retry_policy=retry_policy,
        op_tags={"team": "data"},
        partitions_def=DAYS,
        group_name="shop",
        deps=["raw"],
    )
    assert (shop.op.name, shop.op.pool, shop.op.retry_policy) == ("nightly", "duckdb", retry_policy)
    assert {spec.partitions_def for spec in shop.check_specs} == {shop.partitions_def} == {DAYS}
    assert {spec.group_name for spec in shop.specs} == {"shop"}
    assert {dep.asset_key for spec in shop.specs for dep in spec.deps} == {dg.AssetKey("raw")}


def test_the_decorator_knows_every_argument_of_dg_multi_asset() -> None:
    upstream = set(inspect.signature(dg.multi_asset).parameters) - {"kwargs"}
    known = {*DagsterArguments.__annotations__, *DECIDED}
    assert known - {"key_prefix", "io_manager_key"} == upstream


@pytest.mark.parametrize("argument", DECIDED)
def test_an_argument_that_the_decorator_decides_is_refused(argument: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        dd.collection_asset(Shop, **{argument: None})
    assert raised.value.argument == argument


@pytest.mark.parametrize("argument", ["outs", "severities"])
def test_a_name_that_is_no_member_is_refused(argument: str) -> None:
    wrong: Any = {"trips": dg.AssetOut() if argument == "outs" else {"id|min": "warn"}}
    with pytest.raises(InvalidArgumentError, match="`trips` is no member of `Shop`"):
        dd.collection_asset(Shop, **{argument: wrong})


@pytest.mark.parametrize(
    "severities", [{"has_line": "warn"}, {"orders": {"min": "warn"}}, {"has_lines": "fatal"}]
)
def test_a_severity_that_fits_nothing_is_refused(severities: Any) -> None:
    with pytest.raises(InvalidSeverityError):
        dd.collection_asset(Shop, severities=severities)


def test_a_schema_is_no_collection() -> None:
    with pytest.raises(InvalidCollectionError):
        dd.collection_asset(Order)  # type: ignore[arg-type]


def test_a_filter_is_something_else_here() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'filter'"):
        dd.collection_asset(Shop, filter=True)  # type: ignore[call-arg]


class Clash(dy.Collection):
    """The filter and the propagation share a check name."""

    orders: Annotated[dy.LazyFrame[Order], dy.CollectionMember(propagate_row_failures=True)]

    @dy.filter()
    def orders__failure_propagation(self) -> pl.LazyFrame:
        return self.orders


def test_filters_whose_checks_share_a_name_are_refused() -> None:
    with pytest.raises(CheckNameCollisionError):
        dd.collection_asset(Clash)


def code_versions(collection: type[dy.Collection], **arguments: Any) -> dict[str, str | None]:
    shop = declare(collection, None, **arguments)
    return {spec.key.to_user_string(): spec.code_version for spec in shop.specs}


def test_the_code_version_changes_with_a_filter_and_its_severity() -> None:
    class Other(dy.Collection):
        """The same members, and another way to filter them."""

        orders: dy.DataFrame[Order]
        lines: dy.LazyFrame[Line]
        notes: Annotated[dy.DataFrame[Note] | None, dy.CollectionMember(ignored_in_filters=True)]

        @dy.filter()
        def has_lines(self) -> pl.LazyFrame:
            """An order has lines, and a line has an order."""
            return self.orders.lazy().join(self.lines, on="id", how="inner")

    assert code_versions(Shop) == code_versions(Shop)
    versions = [code_versions(Shop), code_versions(Other)]
    versions.append(code_versions(Shop, severities={"has_lines": "warn"}))
    for name, distinct in {"orders": 3, "lines": 3, "notes": 1}.items():
        assert len({found[name] for found in versions}) == distinct


def test_a_filter_that_needs_rows_does_not_keep_the_collection_from_being_declared() -> None:
    class Fussy(dy.Collection):
        """Its filter looks at the first row while it is built."""

        orders: dy.DataFrame[Order]

        @dy.filter()
        def first_is_kept(self) -> pl.LazyFrame:
            first = self.orders["id"][0]
            return self.orders.lazy().filter(pl.col("id") == first)

    result = invoke_collection(declare(Fussy, {"orders": ORDERS}, quarantine=True))
    assert result["orders"].failed == ["dy_filter__first_is_kept"]


# What the function may return and take.


def test_a_member_may_come_with_metadata_tags_and_a_data_version(store: Store) -> None:
    orders = dg.MaterializeResult(
        value=ORDERS,
        metadata={"source": "till"},
        tags={"tier": "1"},
        data_version=dg.DataVersion("v1"),
    )
    result = store.materialize(declare(Shop, {"orders": orders, "lines": LINES.lazy()}))
    (event,) = (
        materialization
        for materialization in result.asset_materializations_for_node("shop")
        if materialization.asset_key == dg.AssetKey("orders")
    )
    assert event.metadata["source"].value == "till"
    assert event.metadata["dagster/row_count"].value == 2
    columns: Any = event.metadata["dagster/column_schema"].value
    assert columns.constraints.other[-1] == "An order has lines, and a line has an order."
    assert event.tags is not None
    assert (event.tags["tier"], event.tags["dagster/data_version"]) == ("1", "v1")


@pytest.mark.parametrize(
    ("returned", "asset", "found"),
    [
        ([ORDERS], "shop", "a `list`"),
        (
            {"orders": ORDERS, "lines": LINES, "trips": LINES},
            "shop",
            "`trips`, which is not a member",
        ),
        ({"orders": ORDERS, "lines": None}, "shop", "nothing for member `lines`"),
        ({"orders": ORDERS}, "shop", "nothing for member `lines`"),
        ({"orders": ORDERS, "lines": [1]}, "lines", "a `list`"),
    ],
)
def test_anything_else_is_refused_by_name(returned: Any, asset: str, found: str) -> None:
    with pytest.raises(ReturnValueError) as raised:
        invoke_collection(declare(Shop, returned))
    assert raised.value.asset == asset
    assert raised.value.found.startswith(found)
    if asset == "shop":
        assert "a frame for each member, or an instance, of `Shop`" in str(raised.value)


def test_inputs_config_and_an_async_body(store: Store) -> None:
    class Config(dg.Config):
        first: int = 1

    @dg.asset
    def raw() -> pl.DataFrame:
        return LINES

    @dd.collection_asset(Shop, quarantine=True)
    async def shop(config: Config, raw: dy.LazyFrame[Line]) -> Any:
        return {"orders": ORDERS[: config.first], "lines": raw}

    assert store.materialize(raw, shop).success
    lines = store.files.read("lines")
    assert lines is not None
    assert lines["id"].to_list() == [1]
    called = invoke_collection(shop, config=Config(first=2), raw=LINES.lazy())
    assert called["lines"].failed == ["dy_rule__amount__max"]


@pytest.mark.parametrize("how", ["run", "call"])
def test_partitions(store: Store, how: str) -> None:
    by_day = {"mon": Shop.cast(CLEAN), "tue": Shop.cast(DIRTY)}
    shop = declare(Shop, of_partition(by_day), quarantine=True, partitions_def=DAYS)
    if how == "call":
        called = invoke_collection(shop, partition_key="tue")
        assert called["lines"].metadata["dagster/partition_row_count"] == 3
        return
    assert store.materialize(shop, partition_key="mon").success
    result = store.materialize(shop, partition_key="tue")
    assert {name: store.failures(result, "tue", name) for name in FAILED} == FAILED
    assert store.files.files == [
        "lines/mon.parquet",
        "lines/tue.parquet",
        "lines_quarantine/tue.parquet",
        "notes/mon.parquet",
        "notes/tue.parquet",
        "orders/mon.parquet",
        "orders/tue.parquet",
        "orders_quarantine/tue.parquet",
    ]
    assert store.statuses("orders", "dy_filter__has_lines") == {"mon": "SUCCEEDED", "tue": "FAILED"}


def test_a_lazy_member_is_handed_over_lazily(store: Store) -> None:
    handed: dict[str, type] = {}
    handle = store.files.handle_output

    def record(context: dg.OutputContext, obj: Any) -> None:
        handed[context.asset_key.path[-1]] = type(obj)
        handle(context, obj)

    store.files.handle_output = record  # type: ignore[method-assign]
    assert store.materialize(declare(Shop, Shop.cast(DIRTY), quarantine=True)).success
    assert handed == {
        "orders": pl.DataFrame,
        "orders_quarantine": pl.DataFrame,
        "lines": pl.LazyFrame,
        "lines_quarantine": pl.LazyFrame,
        "notes": pl.DataFrame,
    }


def test_dagster_can_move_the_members_to_other_keys(store: Store) -> None:
    module = ModuleType("module")
    vars(module)["shop"] = declare(Shop, Shop.cast(DIRTY), quarantine=True)
    (moved,) = dg.load_assets_from_modules([module], key_prefix="city")
    result = store.materialize(moved)
    assert store.failures(result, asset="city/orders") == FAILED["orders"]
    assert "city/orders_quarantine.parquet" in store.files.files
    assert isinstance(moved, dg.AssetsDefinition)
    invoked = dd.testing.invoke_collection(moved)
    stored = store.files.read(["city", "orders_quarantine"])
    assert stored is not None
    assert invoked["orders"].quarantine is not None
    assert_frame_equal(invoked["orders"].quarantine, stored)


class Twins(dy.Collection):
    """One member has the key of the other's quarantine."""

    orders: dy.LazyFrame[Order]
    orders_quarantine: dy.LazyFrame[Order]


def test_a_quarantine_may_not_be_another_member(store: Store) -> None:
    frames = {"orders": ORDERS, "orders_quarantine": ORDERS}
    result = store.materialize(declare(Twins, frames, quarantine=True))
    assert store.error_of(result)[0] == "QuarantineKeyCollisionError"
    assert store.files.files == []


@pytest.mark.parametrize("layout", ["columns", "list"])
def test_quarantines_of_the_members_are_assets_of_the_graph(store: Store, layout: Any) -> None:
    shop = declare(
        Shop,
        Shop.cast(DIRTY),
        quarantine=True,
        quarantine_layout=layout,
        outs={"lines": dg.AssetOut(key_prefix="city", group_name="retail")},
    )
    specs = {spec.key.to_user_string(): spec for spec in dd.build_quarantine_specs(Shop, shop)}
    assert list(specs) == ["orders_quarantine", "city/lines_quarantine", "notes_quarantine"]
    lines = specs["city/lines_quarantine"]
    assert (lines.group_name, lines.metadata["dagster/io_manager_key"]) == ("retail", "io_manager")
    assert [dep.asset_key.path for dep in lines.deps] == [["city", "lines"]]

    @dg.asset(ins={"rows": dg.AssetIn(lines.key)})
    def seen(rows: pl.LazyFrame) -> None:
        columns = [column.name for column in lines.metadata["dagster/column_schema"].columns]
        assert rows.collect_schema().names() == columns
        assert ("dy_filter__has_lines" in columns) is (layout == "columns")

    assert store.materialize(shop).success
    assert store.materialize(*specs.values(), seen).success


def test_errors_of_a_call_name_the_member() -> None:
    with pytest.raises(ValidationAbortError) as aborted:
        invoke_collection(declare(Shop, Shop.cast(DIRTY)))
    assert (aborted.value.asset, aborted.value.counts) == (
        "orders",
        {"total|min": 1, "has_lines": 1},
    )
    with pytest.raises(ColumnSchemaError) as drifted:
        invoke_collection(declare(Shop, {"orders": ORDERS, "lines": LINES.drop("line")}))
    assert drifted.value.asset == "lines"
