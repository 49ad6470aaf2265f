"""Build the quarantine as a frame."""

import datetime as dt

import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._names import INVALID, UNKNOWN, VALID
from dagster_dataframely._schema.rules import Rule, SchemaRules
from dagster_dataframely._settings import QuarantineLayout


def quarantine_frame[Frame: (pl.DataFrame, pl.LazyFrame)](
    error_rows: Frame,
    rules: SchemaRules,
    layout: QuarantineLayout = QuarantineLayout.COLUMNS,
    *,
    run_id: str | None = None,
    lists: bool = True,
) -> Frame:
    """The schema's columns, then what the rules say of each row, as the layout has it.

    Takes the error rows of a `Verdict`, lazy or not; rows and their order stay. `lists` says whether
    the storage has lists; where it has none, names are joined to text. `dy_original` of parsed rows
    comes last.
    """
    original = rules.row_columns[len(rules.columns) :]
    if layout is QuarantineLayout.COLUMNS:
        return error_rows.select(*rules.column_names, *map(_word, rules.declared), *original)
    failed = pl.concat_list(
        pl.when(~pl.col(rule.name)).then(pl.lit(rule.name)) for rule in rules.row_rules
    ).list.drop_nulls()
    return error_rows.select(
        *rules.column_names,
        (failed if lists else failed.list.join(", ")).alias(_names.FAILED_RULES),
        pl.lit(run_id, pl.String).alias(_names.RUN_ID),
        pl.lit(dt.datetime.now(dt.UTC), pl.Datetime("us", "UTC")).alias(_names.WRITTEN_AT),
        *original,
    )


def _word(rule: Rule) -> pl.Expr:
    """A rule over the whole table says nothing about a row."""
    valid = pl.lit(None, pl.Boolean) if rule.whole_table else pl.col(rule.name)
    word = pl.when(valid).then(pl.lit(VALID)).when(~valid).then(pl.lit(INVALID))
    return word.otherwise(pl.lit(UNKNOWN)).alias(rule.check_name)
