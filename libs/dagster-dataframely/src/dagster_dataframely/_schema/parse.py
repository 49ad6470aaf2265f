"""Parse a frame as a schema declares it, and keep what could not be parsed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, overload

import dataframely as dy
import polars as pl

from dagster_dataframely._names import ORIGINAL
from dagster_dataframely._schema.cast import REDACTED_IN_BODY
from dagster_dataframely._schema.conversions import PARSED_FROM_TEXT, left_open
from dagster_dataframely._schema.original import add_original, write_original
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._schema.survivors import parse_values
from dagster_dataframely._settings import Settings
from dagster_dataframely._typing import Frame
from dagster_dataframely.errors import CastFailure, ColumnMismatch, InvalidArgumentError, ParseError


@overload
def parse(
    schema: type[dy.Schema], frame: pl.DataFrame, *, missing: Literal["fail", "null"] = ...
) -> pl.DataFrame: ...


@overload
def parse(
    schema: type[dy.Schema], frame: pl.LazyFrame, *, missing: Literal["fail", "null"] = ...
) -> pl.LazyFrame: ...


def parse(
    schema: type[dy.Schema], frame: Frame, *, missing: Literal["fail", "null"] = "fail"
) -> Frame:
    """Parse a frame as a schema declares it; what cannot be parsed becomes null and is kept as text.

    Runs where it is called, in the body of an asset or anywhere else. A value survives if it is null,
    or becomes one that means the same. Text does if it parses and no digit is lost: as a
    `Decimal(10, 2)`, `"12.50"` survives and `"12.345"` does not. Space around it counts for text
    columns only, and `dd.text_format` says how it is written. Between other dtypes a value survives if
    casting it back gives it again, as in `dd.strict_cast`. A list, an array or a struct survives whole.

    The result has the schema's columns in the schema's order, then `dy_original`: JSON text of the
    values that did not survive, by column, as they came; null where all did. Other columns are dropped,
    but for the `dy_original` of an earlier call, which is kept. Rows keep their order, and no rule is
    evaluated. A `pl.LazyFrame` stays lazy, and none of it is collected.

    Args:
        schema: The schema class.
        frame: A frame with the schema's columns, in any order.
        missing: `"fail"` raises where the frame lacks a column; `"null"` fills those that are nullable
            with nulls.

    Returns:
        The frame with the schema's columns and dtypes, and `dy_original`.

    Raises:
        InvalidArgumentError: `missing` is neither `"fail"` nor `"null"`.
        InvalidSchemaError: `schema` is no schema class.
        ParseError: A column is missing, or a conversion is left open, as from text to a duration.

    Example:
        ```python
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)
            amount = dy.Decimal(10, 2)


        frame = pl.DataFrame({"id": ["1", "2"], "amount": ["12.50", "12,50"]})
        print(dd.parse(Orders, frame).rows())
        #> [(1, Decimal('12.50'), None), (2, None, '{"amount":"12,50"}')]
        ```
    """
    if missing not in ("fail", "null"):
        raise InvalidArgumentError("missing", f'it is {missing!r}, and not "fail" or "null".')
    rules = read_schema(schema, redact=Settings.resolve({}).redact | REDACTED_IN_BODY.get())
    found = frame.collect_schema()
    filled = [
        name
        for name, column in rules.columns.items()
        if name not in found and missing == "null" and column.nullable
    ]
    if failures := _failures(rules, found, filled):
        raise ParseError(rules.name, failures)
    if (noted := FILLED_IN_BODY.get()) is not None:
        noted.update(filled)
    return _parse_columns(rules, frame, found)


FILLED_IN_BODY: ContextVar[set[str] | None] = ContextVar("filled", default=None)
"""Takes the columns that `missing="null"` fills in the function that runs."""


@contextmanager
def noting_filled() -> Iterator[set[str]]:
    """Collect the columns that `missing="null"` fills while the context is open."""
    filled: set[str] = set()
    token = FILLED_IN_BODY.set(filled)
    try:
        yield filled
    finally:
        FILLED_IN_BODY.reset(token)


def _failures(rules: SchemaRules, found: pl.Schema, filled: Sequence[str]) -> list[CastFailure]:
    """The columns that are missing, and those whose conversion is left open."""
    if not rules.columns.keys() & found.keys():
        filled = ()  # A frame without columns has no rows to fill.
    mismatches = [m for m in rules.mismatches(found) if m.column not in filled]
    reasons = [(mismatch, _left_open(rules, mismatch, found)) for mismatch in mismatches]
    return [CastFailure(*mismatch, reason) for mismatch, reason in reasons if reason is not None]


def _left_open(rules: SchemaRules, mismatch: ColumnMismatch, found: pl.Schema) -> str | None:
    if mismatch.column not in found:
        return "it is missing"
    dtype = rules.columns[mismatch.column].dtype
    return left_open(found[mismatch.column], dtype, PARSED_FROM_TEXT)


def _parse_columns(rules: SchemaRules, frame: Frame, found: pl.Schema) -> Frame:
    """Parse in steps: Polars computes twice what occurs twice, on some engines (1.35 to 2.1)."""
    steps: list[list[pl.Expr]] = []

    def keep(expression: pl.Expr) -> pl.Expr:
        # Numbers for names: none of the frame's columns is left beside them.
        name = f"{len(steps)} kept"
        steps.append([expression.alias(name)])
        return pl.col(name)

    sources, parsed_columns, values = [], [], []
    lost: dict[str, pl.Expr] = {}
    for place, (name, column) in enumerate(rules.columns.items()):
        if name not in found:
            values.append(pl.lit(None, dtype=column.dtype).alias(name))
            continue
        sources.append(pl.col(name).alias(f"{place}"))
        values.append(pl.col(f"{place}").alias(name))
        if (parsed := parse_values(pl.col(f"{place}"), found[name], column, keep)) is not None:
            values[-1] = pl.col(f"{place} parsed").alias(name)
            parsed_columns.append(parsed.value.alias(f"{place} parsed"))
            lost[name] = pl.when(pl.col(f"{place} parsed").is_null()).then(parsed.source)
    original = write_original(lost, found)
    if found.get(ORIGINAL) == pl.String:
        sources.append(pl.col(ORIGINAL))
        original = add_original(pl.col(ORIGINAL), original)
    plan = frame.lazy().select(sources)
    for step in steps:
        plan = plan.with_columns(step)
    plan = plan.with_columns(parsed_columns).select(*values, original.alias(ORIGINAL))
    return plan.collect(engine="in-memory") if isinstance(frame, pl.DataFrame) else plan
