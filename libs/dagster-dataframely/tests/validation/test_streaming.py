"""The streaming engine gives what the one in memory gives, and keeps the rows on disk."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from dagster_dataframely._metadata.statistics import describe_families
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._validation import split as _split
from dagster_dataframely._validation.flags import naming_the_rule
from dagster_dataframely._validation.in_memory import evaluate
from dagster_dataframely._validation.limits import Limits
from dagster_dataframely._validation.staging import sink_rows
from dagster_dataframely._validation.streaming import evaluate_plan
from dagster_dataframely._validation.verdict import Verdict, rule_combinations
from dagster_dataframely.data import OrdersSchema, invalid_orders, valid_orders
from dagster_dataframely.errors import InvalidRuleError, RuleEvaluationError


class Groups(dy.Schema):
    """A composite key with a nullable unique column beside it, and rules over several rows."""

    a = dy.Int64(primary_key=True)
    b = dy.String(primary_key=True)
    code = dy.Float64(nullable=True, unique=True, allow_nan=True)

    @dy.rule()
    def groups_have_two_rows(cls) -> pl.Expr:
        return pl.len().over("b") >= 2

    @dy.rule()
    def codes_are_small(cls) -> pl.Expr:
        return cls.code.col.max() < 1000


class Consecutive(dy.Int64):
    """A column type of a user's, whose rule looks at several rows."""

    def validation_rules(self, expr: pl.Expr) -> dict[str, pl.Expr]:
        steps = expr - expr.shift()
        return {**super().validation_rules(expr), "consecutive": steps.fill_null(1) == 1}


class Steps(dy.Schema):
    """Taking a row away leaves a step that is too big."""

    a = Consecutive(unique=True)
    b = dy.Int64(min=0)


INNER = dy.Struct({"x": dy.Float64(nullable=True, allow_nan=True)}, nullable=True)


class Nested(dy.Schema):
    """Keys in which there are nulls, zeros and NaNs at each depth."""

    plain = dy.Struct({"a": INNER}, nullable=True, unique=True)
    twice = dy.Struct({"a": INNER, "b": dy.List(INNER, nullable=True)}, nullable=True, unique=True)
    list = dy.Struct({"a": dy.List(INNER, nullable=True)}, nullable=True, unique=True)
    array = dy.Struct(
        {"a": dy.Array(dy.Int64(nullable=True), 1, nullable=True)}, nullable=True, unique=True
    )


class NestedNull(dy.Schema):
    """One column, in which Polars takes a null as a struct of nulls."""

    s = dy.Struct({"a": dy.Int64(nullable=True)}, nullable=True, unique=True)


class NestedKey(dy.Schema):
    """The same in a primary key of one column."""

    plain = dy.Struct({"a": INNER}, primary_key=True)


class NestedKeys(dy.Schema):
    """The same in a primary key of several columns."""

    plain = dy.Struct({"a": INNER}, primary_key=True)
    array = dy.Struct({"a": dy.Array(dy.Int64(nullable=True), 1, nullable=True)}, primary_key=True)


INNERS: list[Any] = [None, *({"x": x} for x in (None, 0.0, -0.0, float("nan"), 1.0))]


LISTS: list[Any] = [None, [], *([inner] for inner in INNERS), INNERS[:2]]


NESTED_VALUES: dict[str, list[Any]] = {
    "plain": [None, *({"a": inner} for inner in INNERS)],
    "twice": [None, *({"a": a, "b": b} for a in INNERS for b in LISTS)],
    "list": [None, *({"a": inner} for inner in LISTS)],
    "array": [None, *({"a": inner} for inner in (None, [None], [1]))],
}


def nested(schema: type[dy.Schema], values: int, seed: int) -> pl.DataFrame:
    """Rows of some of the values, many of them twice; as many as make several buckets."""
    random = Random(seed)
    few = {name: random.choices(NESTED_VALUES[name], k=values) for name in schema.columns()}
    return pl.DataFrame(
        {name: random.choices(of_column, k=values) for name, of_column in few.items()},
        schema=schema.create_empty().schema,
    )


NULLS_AND_DUPLICATES = pl.DataFrame(
    {
        "a": [1, 1, 1, 2, 2, 3, 3, 4, 5, 6],
        "b": ["x", "x", "y", "x", "y", "z", "z", "y", "x", "w"],
        "code": [None, 1.0, None, float("nan"), -float("nan"), 0.0, -0.0, 5.0, 6.0, 7.0],
    }
)
"""A key twice, two nulls, two NaNs and two zeros under `unique`, and groups that get too small."""


CASES: list[tuple[type[dy.Schema], pl.DataFrame]] = [
    (OrdersSchema, invalid_orders()),
    (OrdersSchema, valid_orders()),
    (OrdersSchema, valid_orders().clear()),
    (Groups, NULLS_AND_DUPLICATES),
    (Groups, NULLS_AND_DUPLICATES.clear()),
    *(
        (schema, nested(schema, values, seed=values))
        for schema in (Nested, NestedKey, NestedKeys)
        for values in (6, 30)
    ),
    (NestedNull, pl.DataFrame({"s": [None, {"a": None}]}, schema=NestedNull.create_empty().schema)),
    (Steps, pl.DataFrame({"a": [1, 2, 3, 4], "b": [1, -1, 1, 1]})),
]


def assert_same(
    streamed: Verdict[pl.LazyFrame], expected: Verdict[pl.DataFrame], schema: type[dy.Schema]
) -> None:
    rules = read_schema(schema)
    assert streamed.rows_in == expected.rows_in
    assert streamed.error_count == expected.error_count
    assert streamed.counts == expected.counts
    for half in ("survivors", "error_rows"):
        found, wanted = getattr(streamed, half), getattr(expected, half)
        assert isinstance(found, pl.LazyFrame)
        assert_frame_equal(found.collect(), wanted)
    assert streamed.samples.keys() == expected.samples.keys()
    for name, sample in expected.samples.items():
        assert_frame_equal(streamed.samples[name], sample)
    assert streamed.duplicates.keys() == expected.duplicates.keys()
    for name, duplicates in expected.duplicates.items():
        assert streamed.duplicates[name].keys == duplicates.keys
        assert_frame_equal(streamed.duplicates[name].sample, duplicates.sample)
    assert rule_combinations(streamed.error_rows, rules) == rule_combinations(
        expected.error_rows, rules
    )
    assert describe_families(streamed.survivors) == describe_families(expected.survivors)


@pytest.mark.parametrize("most_repeated", [0, 100])
@pytest.mark.parametrize("bucket_rows", [1, 3, 100])
@pytest.mark.parametrize(("schema", "frame"), CASES)
def test_verdict_equals_the_one_in_memory(
    schema: type[dy.Schema],
    frame: pl.DataFrame,
    bucket_rows: int,
    most_repeated: int,
    tmp_path: Path,
) -> None:
    limits = Limits(
        bucket_rows, bucket_rows, most_repeated, failed_bytes=1, merged_rows=bucket_rows
    )
    rules = read_schema(schema)
    streamed = evaluate_plan(
        frame.lazy(), rules, tmp_path, sample=3, log=lambda _line: None, limits=limits
    )
    assert_same(streamed, evaluate(frame, rules, sample=3), schema)


def test_a_schema_without_rules_keeps_every_row(tmp_path: Path) -> None:
    schema = type("Free", (dy.Schema,), {"a": dy.Int64(nullable=True)})
    frame = pl.DataFrame({"a": [1, None]})
    verdict = evaluate_plan(
        frame.lazy(), read_schema(schema), tmp_path, sample=3, log=lambda _line: None
    )
    assert_frame_equal(verdict.survivors.lazy().collect(), frame)
    assert (verdict.rows_in, verdict.error_count) == (2, 0)


def test_sampled_rows_are_gathered_when_they_are_asked_for(tmp_path: Path) -> None:
    rules, frame = read_schema(OrdersSchema), invalid_orders()
    samples = evaluate_plan(frame.lazy(), rules, tmp_path, sample=3, log=print).samples
    assert list(samples) == list(evaluate(frame, rules, sample=3).samples)
    rows = {name: samples[name] for name in samples}
    assert all(1 <= found.height <= 3 for found in rows.values())
    # They are read from the file, and nothing keeps them.
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    assert len(samples) == len(rows)
    for name in samples:
        with pytest.raises(FileNotFoundError):
            samples[name]


class Anything(dy.Schema):
    """What its rule gives depends on the frame."""

    a = dy.List(dy.Any())

    @dy.rule()
    def first(cls) -> pl.Expr:
        return cls.a.col.list.first()


def test_a_rule_over_any_dtype_is_refused_where_the_frame_makes_it_no_boolean(
    tmp_path: Path,
) -> None:
    rules = read_schema(Anything)
    valid = pl.DataFrame({"a": [[True], [False]]})
    assert evaluate(valid, rules, sample=5).counts["first"] == 1
    assert evaluate_plan(valid.lazy(), rules, tmp_path, sample=5, log=print).counts["first"] == 1
    numbers = pl.DataFrame({"a": [[1], [0]]})
    with pytest.raises(InvalidRuleError, match="`first` of `Anything` gives `Int64`"):
        evaluate(numbers, rules, sample=5)
    with pytest.raises(InvalidRuleError, match="`first` of `Anything` gives `Int64`"):
        evaluate_plan(numbers.lazy(), rules, tmp_path, sample=5, log=print)


def refuse(batch: pl.Series) -> pl.Series:
    message = "not today"
    raise ValueError(message)


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (lambda _: pl.col("missing") > 0, "ColumnNotFoundError: .*missing"),
        (lambda a: a.cast(pl.String).str.to_date() > pl.date(2020, 1, 1), "Error: "),
        (
            lambda a: a.map_batches(refuse, return_dtype=pl.Boolean, is_elementwise=True),
            "not today",
        ),
        (lambda a: a.map_batches(refuse, return_dtype=pl.Boolean).over("a"), "not today"),
        (lambda a: (a.map_batches(refuse, return_dtype=pl.Boolean)).any(), "not today"),
    ],
    ids=["column", "cast", "one row", "several rows", "table"],
)
def test_a_rule_that_cannot_be_evaluated_is_named(
    tmp_path: Path, check: Callable[[pl.Expr], pl.Expr], problem: str
) -> None:
    checks = {"fine": lambda a: a > 0, "other": check}
    rules = read_schema(type("Schema", (dy.Schema,), {"a": dy.Int64(check=checks)}))
    frame = pl.DataFrame({"a": [1, 2]})
    words = f"Rule `a.check__other` of `Schema` cannot be evaluated: .*{problem}"
    with pytest.raises(RuleEvaluationError, match=words):
        evaluate(frame, rules, sample=5)
    with pytest.raises(RuleEvaluationError, match=words):
        evaluate_plan(frame.lazy(), rules, tmp_path, sample=5, log=print)


def test_what_a_rule_says_of_a_redacted_column_is_not_shown() -> None:
    column = dy.String(
        check={"day": lambda a: a.str.to_date().is_not_null()}, metadata={"pii": True}
    )
    rules = read_schema(type("Schema", (dy.Schema,), {"born": column}))
    with pytest.raises(RuleEvaluationError) as raised:
        evaluate(pl.DataFrame({"born": ["canary"]}), rules, sample=5)
    assert "canary" not in str(raised.value)
    assert "about a redacted column" in str(raised.value)


def test_rules_of_one_row_see_a_batch_at_a_time_and_are_no_part_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For `is_in` in a plan Polars joins, and what it holds back grows with the rows (1.44)."""
    plans: list[str] = []
    batches: list[int] = []
    rows = 400_000

    def sink(plan: pl.LazyFrame, *args: Any) -> None:
        plans.append(plan.explain())
        sink_rows(plan, *args)

    def small(column: pl.Series) -> pl.Series:
        batches.append(column.len())
        return column.is_in([0, 1])

    def rule(column: pl.Expr) -> pl.Expr:
        seen = column.map_batches(small, return_dtype=pl.Boolean, is_elementwise=True)
        return seen | column.is_in([0, 1])

    monkeypatch.setattr(_split, "sink_rows", sink)
    schema = type("Flags", (dy.Schema,), {"a": dy.Int64(check=rule)})
    frame = pl.LazyFrame({"a": pl.int_range(rows, eager=True) % 3})
    verdict = evaluate_plan(frame, read_schema(schema), tmp_path, sample=1, log=lambda _line: None)
    assert verdict.error_count == rows // 3
    (plan,) = plans
    assert "is_in" not in plan
    assert max(batches) < rows


def test_each_phase_is_a_line_with_rows_bytes_and_seconds(tmp_path: Path) -> None:
    lines: list[str] = []
    frame = NULLS_AND_DUPLICATES.lazy()
    evaluate_plan(frame, read_schema(Groups), tmp_path, sample=1, log=lines.append)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert [line.split(" in ")[0] for line in lines] == [
        f"Staged 10 rows, {size:,} bytes,",
        "Looked for duplicates under `code|unique`: 10 rows",
        "Looked for duplicates under `primary_key`: 10 rows",
        "Evaluated the other rules and split the rows: 10 rows",
    ]
    assert all(line.endswith(" s.") for line in lines)


def test_an_error_that_comes_of_no_rule_passes_through() -> None:
    rules = read_schema(type("Schema", (dy.Schema,), {"a": dy.Int64()}))
    table = pl.LazyFrame({"a": [1]})
    with pytest.raises(MemoryError), naming_the_rule(table, rules, rules.rules):
        raise MemoryError
