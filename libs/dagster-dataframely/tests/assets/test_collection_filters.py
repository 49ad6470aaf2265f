"""Rules and filters of a collection are evaluated until nothing more fails."""

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.declare import declare
from support.shop import (
    DIRTY,
    ORDERS,
    Line,
    Order,
    Shop,
)
from support.storage import Store

from dagster_dataframely._schema.collection import read_collection
from dagster_dataframely._schema.declaration import Declaration
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._settings import Settings
from dagster_dataframely._validation.filters import apply_filters
from dagster_dataframely._validation.in_memory import evaluate
from dagster_dataframely._validation.streaming import evaluate_plan
from dagster_dataframely._validation.verdict import Verdict
from dagster_dataframely.errors import (
    NothingSurvivedError,
)
from dagster_dataframely.testing import invoke_collection


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


def test_one_member_with_too_many_error_rows_keeps_all_from_being_written(store: Store) -> None:
    shop = declare(
        Shop, DIRTY, quarantine=True, max_error_share=0.45
    )  # 2 of 4 orders, 2 of 5 lines.
    result = store.materialize(shop)
    assert not result.success
    assert store.files.files == ["lines_quarantine.parquet", "orders_quarantine.parquet"]
    assert "Asset orders: 2 error rows of 4 (50.0%)" in str(
        [event.step_failure_data.error for event in result.get_step_failure_events()]
    ).replace("`", "")


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
) -> dict[str, SimpleNamespace]:
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
            name: SimpleNamespace(
                counts=verdict.counts,
                error_count=verdict.error_count,
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
