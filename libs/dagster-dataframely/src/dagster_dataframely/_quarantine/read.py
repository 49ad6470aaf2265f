"""Read quarantines of either layout as one table."""

from collections.abc import Iterable, Mapping, Sequence

import dataframely as dy
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._schema.original import failed_in
from dagster_dataframely._schema.read import read_schema
from dagster_dataframely._schema.rules import dtype_rule_name
from dagster_dataframely._typing import Frame
from dagster_dataframely._upstream.polars import NO_NULL_FOR_AN_EMPTY_LIST

_OF_RUN = {_names.RUN_ID: pl.String(), _names.WRITTEN_AT: pl.Datetime("us", "UTC")}
"""Columns of the layout `list` that tell where a row is from."""


def unpivot_quarantine(
    schema: type[dy.Schema], quarantine: Frame | Mapping[str, Frame]
) -> pl.LazyFrame:
    """Error rows with one row for each rule that one of them fails, whatever their layout is.

    For assets that read a quarantine, and for notebooks. Nothing is read before the result is
    collected.

    Args:
        schema: The schema of the table that the error rows were kept out of.
        quarantine: What the IO manager loads: a frame, or one for each partition by its key.

    Returns:
        The columns of the table; `dy_original` of rows from `dd.parse`; `dy_partition` where there is
        a frame for each; `dy_rule`, the name of the rule; and `dy_run_id` and `dy_written_at`, which
        are null where the quarantine does not have them. Where columns differ between partitions,
        those that one lacks are null in it.

    Example:
        ```python
        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema, invalid_orders

        quarantine = dd.wiring.quarantine_frame(OrdersSchema, invalid_orders())
        failed = dd.unpivot_quarantine(OrdersSchema, quarantine)
        print(failed.select("order_id", "dy_rule").head(2).collect().rows())
        #> [(3, 'customer|nullability'), (4, 'customer|min_length')]
        ```
    """
    names = {rule.check_name: rule.name for rule in read_schema(schema).rules}
    if not isinstance(quarantine, Mapping):
        return unpivot(list_failed_rules(quarantine, names))
    frames = [list_failed_rules(frame, names, str(key)) for key, frame in quarantine.items()]
    return unpivot(concat(frames or [list_failed_rules(schema.create_empty(), names, "")]))


def unpivot(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of `list_failed_rules` with the rule in place of the list, for each rule in it."""
    each = rows.explode(_names.FAILED_RULES, **NO_NULL_FOR_AN_EMPTY_LIST).rename(
        {_names.FAILED_RULES: _names.RULE}
    )
    return each.filter(pl.col(_names.RULE).is_not_null())


def concat(frames: Iterable[pl.LazyFrame]) -> pl.LazyFrame:
    """Frames below each other, also where other rules or schemas made their columns."""
    return pl.concat(frames, how="diagonal_relaxed")


def list_failed_rules(
    frame: Frame, names: Mapping[str, str], partition: str | None = None
) -> pl.LazyFrame:
    """The columns of the table, the partition if there is one, and the columns of the layout `list`.

    `names`: those of rules by the columns of a quarantine that has one for each.
    """
    rows = frame.lazy()
    found = rows.collect_schema()
    # No schema may declare a column that begins like this.
    columns = [name for name in found if not name.startswith(_names.COLUMN_PREFIX)]
    original = [_names.ORIGINAL] if _names.ORIGINAL in found else []
    label = [] if partition is None else [pl.lit(partition).alias(_names.PARTITION)]
    return rows.select(
        *columns,
        *original,
        *label,
        _failed_rules(found, columns, names).alias(_names.FAILED_RULES),
        *(
            _moment(found[name])
            if name == _names.WRITTEN_AT and name in found
            else pl.col(name)
            if name in found
            else pl.lit(None, dtype).alias(name)
            for name, dtype in _OF_RUN.items()
        ),
    )


def _failed_rules(found: pl.Schema, columns: Sequence[str], names: Mapping[str, str]) -> pl.Expr:
    """The rules that a row fails, whatever the layout is."""
    if _names.FAILED_RULES in found:
        listed = pl.col(_names.FAILED_RULES)
        return listed.str.split(", ") if found[_names.FAILED_RULES] == pl.String else listed
    others = {*columns, *_OF_RUN, _names.ORIGINAL}
    filters = _names.filter_check_name("")
    fail = {
        names.get(name, name.removeprefix(filters)): pl.col(name) == _names.INVALID
        for name in found
        if name not in others
    }
    if _names.ORIGINAL in found:
        fail |= {dtype_rule_name(name): failed_in(name) for name in columns}
    if not fail:
        return pl.lit([], pl.List(pl.String))
    return pl.concat_list(
        pl.when(fails).then(pl.lit(rule)) for rule, fails in fail.items()
    ).list.drop_nulls()


def _moment(dtype: pl.DataType) -> pl.Expr:
    """DuckDB gives a moment in the zone of the machine."""
    moment = pl.col(_names.WRITTEN_AT).dt
    has_zone = getattr(dtype, "time_zone", None) is not None
    in_utc = moment.convert_time_zone("UTC") if has_zone else moment.replace_time_zone("UTC")
    return in_utc.dt.cast_time_unit("us")
