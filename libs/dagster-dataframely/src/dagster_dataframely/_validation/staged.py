"""Hold the rows of a plan in files: those that may become the table, and those that failed."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from dagster_dataframely._names import ORIGINAL
from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._text import count
from dagster_dataframely._typing import Log
from dagster_dataframely._upstream.polars import side_by_side
from dagster_dataframely._validation.flags import (
    add_flags,
    all_true,
    flag_batch,
    keep,
    row_wise_rules,
)
from dagster_dataframely._validation.limits import Limits
from dagster_dataframely._validation.split import POSITION, Split
from dagster_dataframely._validation.staging import ROWS_FILE, UNPUBLISHED, sink_rows
from dagster_dataframely._validation.verdict import SURVIVES, Flags, StagedFile
from dagster_dataframely.errors import RuleEvaluationError


class StagedRows:
    """The rows of a plan that ran once.

    Rows that pass every error rule about one row are in one file, which has the schema's columns and
    nothing else, and is written as the table is going to be. The others are in files of their own,
    with a flag for each rule about one row. Both keep the order of the plan.
    """

    def __init__(
        self,
        plan: pl.LazyFrame,
        rules: SchemaRules,
        folder: Path,
        log: Log,
        options: Mapping[str, Any],
        limits: Limits,
    ) -> None:
        self.rules = rules
        self.schema = plan.collect_schema()
        self.table_schema = pl.Schema({name: self.schema[name] for name in rules.column_names})
        self.beside = [name for name in self.schema if name not in self.table_schema]
        rules.reject_non_boolean(self.schema)
        others = [rule for rule in rules.row_rules if not rules.unique_key(rule)]
        self.row_wise = row_wise_rules(rules, others, self.schema)
        """The rules about one row."""
        self.options, self.log, self.limits = options, log, limits
        self.stage(plan, folder / ROWS_FILE)

    @property
    def height(self) -> int:
        """How many rows the plan gave."""
        return self.passes.len()

    @property
    def table(self) -> pl.LazyFrame:
        """The rows of the file that may become the table."""
        return pl.scan_parquet(self.file, glob=False)

    @property
    def rows_of_table(self) -> pl.LazyFrame:
        """These rows with what rules look at, which may be more than the table's columns."""
        if not self.rules.parsed:
            return self.table
        if not self.beside_files:
            return self.table.with_columns(pl.lit(None, pl.String).alias(ORIGINAL))
        beside = pl.scan_parquet(self.beside_files, glob=False)
        return side_by_side([self.table, beside])

    @property
    def failed(self) -> pl.LazyFrame:
        """The other rows, with their flags and positions."""
        return pl.scan_parquet(self.failed_files, glob=False)

    def stage(self, plan: pl.LazyFrame, path: Path) -> None:
        """Run the plan into the files."""
        errors: list[RuleEvaluationError] = []
        decide = partial(decide_by_rules, rules=self.rules, row_wise=self.row_wise, errors=errors)
        start = time.monotonic()
        split = Split(decide, path, self.table_schema, self.limits.failed_bytes, self.beside)
        try:
            self.passes = split.run(plan, self.options)
        except Exception:
            # Of an error in a batch, Polars passes on the message alone.
            if errors:
                raise errors[0] from None
            raise
        self.file, self.failed_files, self.beside_files = (
            path,
            split.failed_files,
            split.beside_files,
        )
        names = [rule.name for rule in self.row_wise]
        self.counts: Mapping[str, int] = {name: split.counts[name] for name in names}
        """How many rows fail each of the rules about one row."""
        self.counts_in_table = {
            name: split.counts[name] - split.counts_of_failed[name] for name in names
        }
        size = sum(file.stat().st_size for file in [path, *split.failed_files])
        seconds = time.monotonic() - start
        self.log(f"Staged {count(self.height, 'row')}, {count(size, 'byte')}, in {seconds:.1f} s.")

    def settle(self, survives: pl.Series) -> None:
        """Set aside the rows of the table that do not survive: the rest is written once more."""
        removed = self.passes & ~survives
        if not removed.any():
            return
        start = time.monotonic()
        path = self.file.with_name(f"settled-{self.file.name}")
        split = Split(
            decide_by_column, path, self.table_schema, self.limits.failed_bytes, self.beside
        )
        in_table = survives.filter(self.passes).alias(SURVIVES)
        split.run(self.rows_of_table.with_columns(in_table), self.options)
        failed = path.with_stem(f"{path.stem}-failed")
        # Flags of rules that only warn are in no file.
        gone = self.with_row_wise(pl.scan_parquet(split.failed_files, glob=False))
        sink_rows(self.merged(gone, removed), failed, UNPUBLISHED)
        for file in [self.file, *self.failed_files, *self.beside_files, *split.failed_files]:
            file.unlink()
        self.file, self.failed_files, self.passes = path, [failed], survives
        self.beside_files = split.beside_files
        names = list(self.counts)
        fail = self.failed.select(pl.col(names).not_().sum()).collect(engine="streaming")
        self.counts_in_table = {name: self.counts[name] - fail[name].item() for name in names}
        seconds = time.monotonic() - start
        self.log(
            f"Wrote the rows once more without {count(int(removed.sum()), 'row')} that rules over "
            f"several rows remove, in {seconds:.1f} s."
        )

    def merged(self, gone: pl.LazyFrame, removed: pl.Series) -> pl.LazyFrame:
        """Put rows that are gone from the table in order with those that failed before.

        They are sorted one part at a time, so that memory does not grow with the rows.
        """
        positions = (removed | ~self.passes).arg_true()
        ends = positions.gather_every(self.limits.merged_rows)[1:].to_list()
        parts = []
        for start, end in pairwise([0, *ends, self.height]):
            at = removed[start:end].arg_true() + start
            before = int(removed.head(start).sum())
            rows = gone.slice(before, at.len()).with_columns(at.alias(POSITION))
            if self.failed_files:
                first = start - int(self.passes.head(start).sum())
                length = end - start - int(self.passes[start:end].sum())
                rows = pl.concat([self.failed.slice(first, length), rows], how="diagonal")
            parts.append(rows.sort(POSITION))
        return pl.concat(parts)

    def where(self, mask: pl.Series, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """Return the rows that a mask is true for, those of the table first: the schema's columns."""
        return pl.concat(self.parts(mask, None, columns or self.rules.column_names))

    def flagged(self, flags: Flags, mask: pl.Series) -> pl.LazyFrame:
        """Return the same rows with a flag for each rule about rows."""
        return pl.concat(self.parts(mask, flags, self.rules.row_columns))

    def parts(
        self, mask: pl.Series, flags: Flags | None, names: Sequence[str]
    ) -> list[pl.LazyFrame]:
        """Return the rows that a mask is true for from each of the files that have any."""
        parts = []
        for belongs, in_table in ((self.passes, True), (~self.passes, False)):
            wanted = mask & belongs
            # Without any row, the table gives the columns.
            if not wanted.any() and (not in_table or mask.any()):
                continue
            chosen = mask.filter(belongs)
            table = self.table if names == self.rules.column_names else self.rows_of_table
            rows = table if in_table else self.failed
            rows = rows if chosen.all() else keep(rows, chosen)
            chosen_names = names
            if flags is not None:
                rows = self.with_row_wise(rows) if in_table else rows
                rows = rows.with_columns(
                    flag.filter(wanted).alias(name) for name, flag in flags.items()
                )
                of_rows = [rule.name for rule in self.rules.row_rules]
                chosen_names = list(dict.fromkeys([*names, *of_rows, *flags]))
            parts.append(rows.select(chosen_names))
        return parts

    def with_row_wise(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Add the flags of the rules about one row, which rows of the table fail only as warnings."""
        has_unknown = bool(self.beside_files)
        fail = [
            rule
            for rule in self.row_wise
            if self.counts_in_table[rule.name] or (has_unknown and rule.unknown is not None)
        ]
        evaluated = {rule.name for rule in fail}
        passed = [rule.name for rule in self.row_wise if rule.name not in evaluated]
        table = add_flags(table, self.rules, fail) if fail else table
        return table.with_columns(pl.lit(value=True).alias(name) for name in passed)

    def columns_in_any_order(self, names: Sequence[str]) -> pl.LazyFrame:
        """Return some columns of every row, those of the table first; `positions_of` tells where."""
        table = self.rows_of_table
        files = [table, self.failed] if self.failed_files else [table]
        return pl.concat(rows.select(names) for rows in files)

    def positions_of(self, rows: pl.Series) -> pl.Series:
        """Return the positions of rows that are counted through the table and then the others."""
        if not self.failed_files:
            return rows
        failed = (~self.passes).arg_true()
        in_table = rows < self.height - failed.len()
        # How many rows of the table come before each row that failed.
        before = failed - pl.int_range(failed.len(), dtype=pl.get_index_type(), eager=True)
        at_table = rows + before.search_sorted(rows, side="right")
        at_failed = pl.lit(failed).gather(
            pl.when(~in_table).then(rows.cast(pl.Int64) - self.height + failed.len())
        )
        positions = pl.when(in_table).then(at_table).otherwise(at_failed)
        return pl.select(positions.cast(rows.dtype).alias(rows.name)).to_series()

    def in_order(self) -> pl.LazyFrame:
        """Return every row in order; the columns that are read are sorted in memory."""
        if not self.failed_files:
            return self.rows_of_table
        table = self.rows_of_table.with_columns(self.passes.arg_true().alias(POSITION))
        failed = self.failed.select(*self.schema, POSITION)
        return pl.concat([table, failed]).sort(POSITION).drop(POSITION)

    def whole_file(self, mask: pl.Series) -> StagedFile | None:
        """Return the file that has exactly the rows that a mask is true for, if there is one."""
        return StagedFile(self.file, self.options) if (mask == self.passes).all() else None

    def at(self, positions: Sequence[int]) -> pl.DataFrame:
        """Read the rows at some positions: the schema's columns."""
        # A slice of one row is read without the rows before it; a concatenation of them is not.
        found = [
            frame.slice(row, 1).select(*self.schema).collect()
            for frame, row in map(self.locate, positions)
        ]
        return pl.concat([self.rows_of_table.head(0).collect(), *found])

    def locate(self, position: int) -> tuple[pl.LazyFrame, int]:
        """Return the files that have a row, and where in them it is."""
        before = int(self.passes.head(position).sum())
        return (
            (self.rows_of_table, before)
            if self.passes[position]
            else (self.failed, position - before)
        )

    def first_failing(self, rule: Rule, number: int) -> pl.DataFrame:
        """Read the first rows that fail a rule about one row: the schema's columns."""
        columns = [POSITION, *self.schema]
        found = []
        if self.failed_files:
            failing = self.failed.filter(~pl.col(rule.name)).select(columns)
            found.append(failing.head(number).collect(engine="streaming"))
        if self.counts_in_table[rule.name]:
            rows = add_flags(self.rows_of_table, self.rules, [rule]).with_row_index(POSITION)
            failing = rows.filter(~pl.col(rule.name)).select(columns)
            in_table = failing.head(number).collect(engine="streaming")
            found.append(in_table.with_columns(self.positions_of(in_table[POSITION])))
        return pl.concat(found).sort(POSITION).head(number).drop(POSITION)


def decide_by_rules(
    batch: pl.DataFrame,
    rules: SchemaRules,
    row_wise: Sequence[Rule],
    errors: list[RuleEvaluationError],
) -> tuple[pl.Series, pl.DataFrame]:
    """Let rows pass that pass the error rules about one row; an error of one is also noted."""
    try:
        flags = flag_batch(batch, rules, row_wise)
    except RuleEvaluationError as error:
        errors.append(error)
        raise
    error_rules = [rule for rule in row_wise if rule.severity == "error"]
    return all_true(flags.to_dict(), error_rules, batch.height), flags


def decide_by_column(batch: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """Let rows pass that a column says survive."""
    return batch[SURVIVES], pl.DataFrame()
