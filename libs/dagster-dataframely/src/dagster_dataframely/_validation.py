"""A frame and its `SchemaRules` to a `Verdict`; knows no Dagster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from dagster_dataframely._rules import Rule, SchemaRules
from dagster_dataframely._uniqueness import (
    Duplicates,
    FoundDuplicates,
    duplicated_rows,
    find_duplicates,
)

SURVIVES = "dy_survives"
"""A Boolean column beside the rules': false for an error row."""
_ROWS = "dy_rows"


@dataclass(frozen=True)
class Findings:
    """How many rows of one frame fail each rule, and some of them."""

    counts: Mapping[str, int]
    """For every rule, how many rows fail it, 0 included; for a rule over the whole table, 1 where the
    survivors fail it."""
    samples: Mapping[str, pl.DataFrame]
    """For each rule that fails, the first rows that do: the schema's columns. For a uniqueness rule
    one row for each key; for a rule over the whole table none."""
    duplicates: Mapping[str, Duplicates]
    """For each uniqueness rule that rows fail."""

    def failed(self, rules: Iterable[Rule]) -> dict[str, int]:
        """The rules among these that fail, with their counts, in the order given."""
        return {rule.name: self.counts[rule.name] for rule in rules if self.counts[rule.name]}


@dataclass(frozen=True)
class Verdict[Frame: (pl.DataFrame, pl.LazyFrame)](Findings):
    """What the rules say of one frame: of every row, and of the rows that are left as a table."""

    rows_in: int
    error_count: int
    survivors: Frame
    """The rows that fail no error rule: the schema's columns, in the frame's row order."""
    flagged: Frame
    """Every row, with one Boolean column for each rule that says something of a row, named as the
    rule: false where the row fails it; and `SURVIVES`."""
    error_rows: Frame
    """The rows of `flagged` that fail an error rule, without `SURVIVES`."""

    @property
    def survivor_count(self) -> int:
        """How many rows fail no error rule."""
        return self.rows_in - self.error_count


@dataclass(frozen=True, eq=False)
class _Samples(Mapping[str, pl.DataFrame]):
    """Rows of a table by rule, gathered when they are asked for: thousands of rules may fail."""

    table: pl.DataFrame
    positions: Mapping[str, Sequence[int] | pl.Series]

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self.table[self.positions[name]]

    def __contains__(self, name: object) -> bool:
        return name in self.positions

    def __iter__(self) -> Iterator[str]:
        return iter(self.positions)

    def __len__(self) -> int:
        return len(self.positions)


def evaluate(frame: pl.DataFrame, rules: SchemaRules, *, sample: int) -> Verdict[pl.DataFrame]:
    """Evaluate every rule once over the frame and split it; the frame has the schema's columns.

    Where taking error rows away makes a rule over several rows fail for a row that had passed, that
    row is an error row too, and so on until nothing more fails: what survives satisfies every error
    rule. Rules over the whole table look at what survives. `sample` bounds the rows kept as an example
    for each rule.
    """
    table = in_one_chunk(frame.select(rules.column_names))
    rules.reject_non_boolean(table.schema)
    flags, duplicates = _evaluate_rules(table, rules, sample)
    survives = all_true(flags, rules.error_rules, table.height)
    if not survives.all():
        volatile = volatile_rules(rules, table.schema)
        flags, survives = settle(table.lazy(), flags, survives, volatile)
    survivors = table if survives.all() else table.filter(survives)
    counts = {name: int((~flags[name]).sum()) for name in flags.columns}
    counts |= count_failing_tables(survivors.lazy(), rules.table_rules)
    positions = {
        name: duplicates[name].first_rows
        if name in duplicates
        else (~flags[name]).arg_true().head(sample)
        for name in flags.columns
        if counts[name]
    }
    flagged = table.hstack([*flags.get_columns(), survives.alias(SURVIVES)])
    return Verdict(
        rows_in=table.height,
        error_count=int((~survives).sum()),
        survivors=survivors,
        flagged=flagged,
        error_rows=flagged.filter(~survives).drop(SURVIVES),
        counts={rule.name: counts[rule.name] for rule in rules.rules},
        samples=_Samples(table, positions),
        duplicates={name: duplicates[name].duplicates for name in duplicates if counts[name]},
    )


def in_one_chunk(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with each nested column in one piece.

    Polars panics over some rules on structs and arrays in several chunks, as a concatenation leaves
    them (1.35 to 1.44).
    """
    nested = [column for column in frame.get_columns() if column.dtype.is_nested()]
    return frame.with_columns(column.rechunk() for column in nested)


def _evaluate_rules(
    table: pl.DataFrame, rules: SchemaRules, sample: int
) -> tuple[pl.DataFrame, dict[str, FoundDuplicates]]:
    """A Boolean column for each rule about rows, and the keys that uniqueness rules found twice."""
    others = [rule for rule in rules.row_rules if not rule.wants_unique]
    flags = {flag.name: flag for flag in evaluate_flags(table.lazy(), others)}
    duplicates = {}
    for rule in rules.row_rules:
        if key := rules.unique_key(rule):
            keys = table.select(key)
            positions = duplicated_rows(keys, rule.expression)
            duplicates[rule.name] = find_duplicates(keys[positions], positions, sample)
            passes = pl.repeat(value=True, n=table.height, dtype=pl.Boolean, eager=True)
            flags[rule.name] = passes.scatter(positions, False).alias(rule.name)
    return pl.DataFrame([flags[rule.name] for rule in rules.row_rules]), duplicates


def count_failing_tables(table: pl.LazyFrame, rules: Iterable[Rule]) -> dict[str, int]:
    """For each rule over the whole table, 1 where the table fails it and 0 where it does not."""
    flags = [flag_expression(rule) for rule in rules]
    if not flags:
        return {}
    (verdicts,) = table.select(flags).collect(engine="streaming").rows(named=True)
    return {name: int(not passes) for name, passes in verdicts.items()}


def row_wise_rules(rules: Iterable[Rule], schema: pl.Schema) -> list[Rule]:
    """The rules among these that look at one row at a time.

    Polars filters the parts of a concatenation on their own exactly where that gives the same rows,
    so the plan of such a filter tells (1.35 to 2.1).
    """
    part = pl.LazyFrame(schema=schema)
    parts = pl.concat([part, part])
    plans = ((rule, parts.filter(rule.expression.fill_null(value=True))) for rule in rules)
    return [rule for rule, plan in plans if plan.explain().lstrip().startswith("UNION")]


def volatile_rules(rules: SchemaRules, schema: pl.Schema) -> list[Rule]:
    """The error rules that may fail for a row only because other rows were taken away.

    Dataframely's own look at one row, except for the uniqueness rules, which taking rows away cannot
    break.
    """
    by_hand = [rule for rule in rules.error_rules if rule.written_by_hand]
    row_wise = {rule.name for rule in row_wise_rules(by_hand, schema)}
    return [rule for rule in by_hand if rule.name not in row_wise]


def evaluate_flags(table: pl.LazyFrame, rules: Iterable[Rule]) -> pl.DataFrame:
    """One Boolean column for each rule; a null counts as true, as it does for Dataframely (3.1)."""
    rules = list(rules)
    # `with_columns` and not `select`: an expression that gives one value must fill every row.
    return (
        table.with_columns(flag_expression(rule) for rule in rules)
        .select(rule.name for rule in rules)
        .collect()
    )


def flag_expression(rule: Rule) -> pl.Expr:
    """The rule as a Boolean column under its name, without nulls."""
    return rule.expression.fill_null(value=True).alias(rule.name)


def all_true(flags: pl.DataFrame, rules: Iterable[Rule], rows: int) -> pl.Series:
    """Whether a row passes all of these rules."""
    names = [rule.name for rule in rules]
    if not names:
        # Polars gives a frame without columns no rows.
        return pl.repeat(value=True, n=rows, dtype=pl.Boolean, eager=True)
    return flags.select(pl.all_horizontal(names).alias(SURVIVES)).to_series()


def settle(
    table: pl.LazyFrame, flags: pl.DataFrame, survives: pl.Series, rules: list[Rule]
) -> tuple[pl.DataFrame, pl.Series]:
    """Evaluate the rules again on what is left until none fails; each round takes rows away."""
    while rules and survives.any():
        positions = survives.arg_true()
        again = evaluate_flags(keep(table, survives), rules)
        fails = ~all_true(again, rules, again.height)
        if not fails.any():
            break
        flags = flags.with_columns(
            flags[name].scatter(positions.filter(~again[name]), False) for name in again.columns
        )
        survives = survives.scatter(positions.filter(fails), False)
    return flags, survives


def keep(table: pl.LazyFrame, survives: pl.Series) -> pl.LazyFrame:
    """The rows of a table that a mask of the same height is true for."""
    return table.with_columns(survives.alias(SURVIVES)).filter(SURVIVES).drop(SURVIVES)


def rule_combinations(
    error_rows: pl.DataFrame | pl.LazyFrame, rules: SchemaRules
) -> list[tuple[list[str], int]]:
    """The sets of rules that rows fail together with the number of rows, biggest first.

    Where sets are equally big, the one that fails the earlier rule comes first.
    """
    names = [rule.name for rule in rules.row_rules]
    # A filter of a collection says nothing of a row that failed a rule.
    flags = error_rows.lazy().select(pl.col(name).fill_null(value=True) for name in names)
    sets = flags.group_by(names).agg(pl.len().alias(_ROWS)).collect(engine="streaming")
    biggest_first = sets.sort(_ROWS, *names, descending=[True, *([False] * len(names))])
    return [
        ([name for name, passes in zip(names, flags, strict=True) if not passes], rows)
        for *flags, rows in biggest_first.select(*names, _ROWS).iter_rows()
    ]
