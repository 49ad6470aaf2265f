"""Cast without changing a value."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, overload

import dataframely as dy
import polars as pl

from dagster_dataframely._cells import REDACTED, render_series
from dagster_dataframely._schema.conversions import left_open
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import SchemaRules
from dagster_dataframely._settings import Settings
from dagster_dataframely._text import count, cut
from dagster_dataframely._typing import Frame
from dagster_dataframely.errors import CastFailure, ColumnMismatch, StrictCastError

_MAX_EXAMPLE = 40
"""Characters of a value in a reason."""


def cast_stored(frame: Frame, rules: SchemaRules) -> Frame:
    """Cast the columns of a stored table to the dtypes of its schema, where a cast has one meaning.

    A value that would change raises. Other columns stay as they are, so that the column check names
    those whose conversion is left open.
    """
    found = frame.collect_schema()
    castable = [m for m in rules.mismatches(found) if open_conversion(rules, m, found) is None]
    return _cast_columns(rules, castable, frame)


def cast_advice(rules: SchemaRules, found: Mapping[str, pl.DataType]) -> str | None:
    """What has to be done before a strict cast, as a sentence; `None` where nothing has."""
    for mismatch in rules.mismatches(found):
        if mismatch.column not in found:
            return f"Add `{mismatch.column}`; nothing is added for you."
        if reason := open_conversion(rules, mismatch, found):
            return f"No cast of `{mismatch.column}` has one meaning: {reason}."
    return None


def open_conversion(
    rules: SchemaRules, mismatch: ColumnMismatch, found: Mapping[str, pl.DataType]
) -> str | None:
    """What a cast of a column leaves open, or `None` where it has one meaning."""
    if mismatch.column not in found:
        return "it is missing"
    return left_open(found[mismatch.column], rules.columns[mismatch.column].dtype)


@overload
def strict_cast[S: dy.Schema](schema: type[S], frame: pl.DataFrame) -> dy.DataFrame[S]: ...


@overload
def strict_cast[S: dy.Schema](schema: type[S], frame: pl.LazyFrame) -> dy.LazyFrame[S]: ...


def strict_cast(
    schema: type[dy.Schema], frame: pl.DataFrame | pl.LazyFrame
) -> pl.DataFrame | pl.LazyFrame:
    """Cast a frame to a schema's dtypes where every value survives, else raise.

    Runs where it is called, in the body of an asset or anywhere else. A value survives if casting it
    back gives it again: `2.0` as a whole number does, `2.5` does not, nor does `"007"`; a null stays a
    null, NaN equals NaN. Numbers are cast to numbers and text, text to numbers and categories, times
    to times. Between other kinds of dtypes there is a conversion to choose, which is yours to write;
    so there is where a time would get a zone or lose it, while from zone to zone the moment stays.

    As with `Schema.cast`, the result has the schema's columns in the schema's order, other columns are
    dropped, and rows keep their order. A column that has its dtype already is not touched, and no rule
    is evaluated.

    A `pl.LazyFrame` stays lazy: columns and kinds of casts are looked at now, values when the plan
    runs, where they raise Polars' `ComputeError` with the same message for the first such column, and
    with what one batch of rows holds.

    Args:
        schema: The schema class.
        frame: A frame with the schema's columns, in any order and with any dtypes.

    Returns:
        The frame with the schema's columns and dtypes.

    Raises:
        InvalidSchemaError: `schema` is no schema class.
        StrictCastError: A column is missing, or a cast would change values or does not exist; an
            example is not shown of a column marked `metadata={"pii": True}`.

    Example:
        ```python
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Trips(dy.Schema):
            id = dy.Int32(primary_key=True)
            vehicle = dy.Enum(["bus", "tram"])


        frame = pl.DataFrame({"id": [1.0, 2.0], "vehicle": ["bus", "tram"]})
        print(dd.strict_cast(Trips, frame).dtypes)
        #> [Int32, Enum(categories=['bus', 'tram'])]

        try:
            dd.strict_cast(Trips, frame.with_columns(id=pl.col("id") / 2))
        except dd.errors.StrictCastError as error:
            print(error.failures[0].changed, error.failures[0].example)
            #> 1 0.5
        ```
    """
    rules = read_schema(schema, redact=Settings.resolve({}).redact | REDACTED_IN_BODY.get())
    mismatches = rules.mismatches(frame.collect_schema())
    return _cast_columns(rules, mismatches, frame).select(rules.column_names)


REDACTED_IN_BODY: ContextVar[frozenset[str]] = ContextVar("redacted", default=frozenset())
"""The columns that the asset whose function runs redacts."""


@contextmanager
def redacting(columns: frozenset[str]) -> Iterator[None]:
    """Show no value of these columns in a cast that is made while the context is open."""
    token = REDACTED_IN_BODY.set(columns)
    try:
        yield
    finally:
        REDACTED_IN_BODY.reset(token)


def _cast_columns(rules: SchemaRules, mismatches: Sequence[ColumnMismatch], frame: Frame) -> Frame:
    """Cast columns: now, where the frame is in memory, else when the plan runs."""
    found = frame.collect_schema()
    results: dict[str, Any] = {}
    for mismatch in mismatches:
        if (reason := open_conversion(rules, mismatch, found)) is not None:
            results[mismatch.column] = CastFailure(*mismatch, reason)
        elif isinstance(frame, pl.LazyFrame):
            results[mismatch.column] = _cast_when_it_runs(rules, mismatch)
        else:
            results[mismatch.column] = _cast(rules, mismatch, frame[mismatch.column])
    if failures := [result for result in results.values() if isinstance(result, CastFailure)]:
        raise StrictCastError(rules.name, failures)
    return frame.with_columns(**results)


def _cast(
    rules: SchemaRules, mismatch: ColumnMismatch, series: pl.Series
) -> pl.Series | CastFailure:
    try:
        there = series.cast(rules.columns[mismatch.column].dtype, strict=False)
        back = there.cast(series.dtype, strict=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return CastFailure(*mismatch, "Polars does not cast it")
    lost = series.filter(back.ne_missing(series))
    if lost.is_empty():
        return there
    redacted = mismatch.column in rules.redacted
    example = REDACTED if redacted else str(render_series(lost.head(1))[0])
    reason = f"{count(lost.len(), 'value')} would change, such as {cut(example, _MAX_EXAMPLE)}"
    return CastFailure(*mismatch, reason, lost.len(), example)


def _cast_when_it_runs(rules: SchemaRules, mismatch: ColumnMismatch) -> pl.Expr:
    def cast(batch: pl.Series) -> pl.Series:
        result = _cast(rules, mismatch, batch)
        if isinstance(result, CastFailure):
            # Polars 1.44 makes the error again, of its message alone.
            raise pl.exceptions.ComputeError(str(StrictCastError(rules.name, [result])))
        return result

    dtype = rules.columns[mismatch.column].dtype
    column = pl.col(mismatch.column)
    return column.map_batches(cast, return_dtype=dtype, is_elementwise=True)
