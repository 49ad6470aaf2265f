"""Random schemas, and frames with their columns, for what must hold for each of them."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import dataframely as dy
import polars as pl
from hypothesis import strategies as st

TALLY = Counter[str]()
"""What came up in the random tests, and how often; printed at the end of a run."""


class Column(NamedTuple):
    """A column of a schema, and the dtype that a frame has it in."""

    column: dy.Column
    dtype: pl.DataType


class Drawn(NamedTuple):
    """A schema, and a frame with its columns and dtypes."""

    schema: type[dy.Schema]
    frame: pl.DataFrame


RARELY = st.sampled_from([False, False, False, True])

# Values. There are few of each dtype, so that frames repeat them.

DAY = 86_400_000_000
FAR = 2**55
"""Microseconds: eleven centuries."""
FLOATS = pl.Series([-1.0, 0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e38, 5e-324])
SCALARS: dict[Any, pl.Series] = {
    pl.Null: pl.Series([None]),
    pl.Boolean: pl.Series([True, False]),
    pl.Float32: FLOATS,
    pl.Float64: FLOATS,
    pl.String: pl.Series(["", "a", "ab", "abc", "é", "b\n", "\0", "🦆", "x" * 200]),
    pl.Categorical: pl.Series(["a", "b", ""]),
    pl.Binary: pl.Series([b"", b"a", b"\xff\x00"]),
    pl.Date: pl.Series([0, 19782, 19783, 2_000_000, -700_000], dtype=pl.Int32),
    pl.Time: pl.Series([0, DAY // 2 * 1000, DAY * 1000 - 1]),
    pl.Duration: pl.Series([0, 1, -1, DAY, FAR // 1000, -FAR // 1000]),
}


def values_of(dtype: Any) -> pl.Series:
    """What frames hold in columns of a dtype: null, the usual, and the edges."""
    if isinstance(dtype, (pl.List, pl.Array)):
        inner = values_of(dtype.inner)
        if isinstance(dtype, pl.List):
            parts = [inner[:0], inner[:1], inner[1:2], inner[1:3], inner[-3:]]
            values = pl.concat([part.implode() for part in parts])
        else:
            parts = [_repeat(inner[start:], dtype.size) for start in range(inner.len())]
            values = pl.concat([part.implode() for part in parts]).list.to_array(dtype.size)
    elif isinstance(dtype, pl.Struct):
        fields = {field.name: values_of(field.dtype) for field in dtype.fields}
        rows = max(field.len() for field in fields.values())
        repeated = {name: _repeat(field, rows) for name, field in fields.items()}
        values = pl.DataFrame(repeated).to_struct()
    else:
        values = _scalars(dtype).cast(dtype)
    # One chunk: Polars cannot take none of the rows of several chunks of arrays (1.44).
    return pl.concat([pl.Series([None], dtype=dtype), values]).rechunk()


def _repeat(values: pl.Series, length: int) -> pl.Series:
    return values.gather([index % values.len() for index in range(length)])


def _scalars(dtype: Any) -> pl.Series:
    if dtype.is_integer():
        low, high = pl.select(low=dtype.min(), high=dtype.max()).row(0)
        return pl.Series([-1 if low else 0, 0, 1, 2, 3, low, high], dtype=dtype)
    if isinstance(dtype, pl.Decimal):
        scale = dtype.scale
        digits = "9" * ((dtype.precision or 38) - scale) + "." + "9" * scale
        return pl.Series([Decimal(0), Decimal(1).scaleb(-scale), Decimal(1), Decimal(digits)])
    if isinstance(dtype, pl.Enum):
        return dtype.categories
    if isinstance(dtype, pl.Datetime):
        microseconds = pl.Series([0, DAY, DAY, DAY + 1, FAR, -FAR])
        return microseconds // {"ms": 1000, "us": 1, "ns": 1}[dtype.time_unit]
    return SCALARS[type(dtype)]


VALUE = pl.col("value")


@st.composite
def frames(draw: st.DrawFn, columns: Mapping[str, Column]) -> pl.DataFrame:
    """No row, one or a few, in one chunk or two; most values satisfy their column."""
    height = draw(st.sampled_from([0, 1, 5, 12, 12, 12]))
    data = {}
    for name, (column, dtype) in columns.items():
        values = values_of(dtype)
        rules = [rule.fill_null(value=True) for rule in column.validation_rules(VALUE).values()]
        valid = values.to_frame("value").with_columns(pl.all_horizontal(True, *rules).alias("ok"))
        choices = pl.concat([*[valid.filter("ok")["value"]] * 8, values]).rechunk()
        index = st.integers(0, choices.len() - 1)
        data[name] = choices.gather(draw(st.lists(index, min_size=height, max_size=height)))
    frame = pl.DataFrame(data)
    cut = draw(st.integers(0, height))
    return pl.concat([frame[:cut], frame[cut:]], rechunk=False)


# Columns: every class that Dataframely has, with every argument.

ODD_NAMES = [
    "a b", "a_b", "a-b", "a|b", "a__b", "|", " ", "_", "x" * 150, "größe", "列", "🦆", "é", "e\u0301",
    'q"q', "it's", "`tick`", "class", "None", "dy", "count", "len", "literal", "column", "rule",
    "nullability", "a|min", "line\nbreak", "tab\t", "{x}", "100%", "a.b", "a/b", "../x", "$1", "#",
    "dy_x",
]  # fmt: skip
"""Names that a schema can have with `alias=`; some of them share a check name."""

# Dataframely hands names to Rust as C strings, and Polars reads `*` and `^...$` as patterns.
TEXT = st.text(st.characters(exclude_characters="\0*^", exclude_categories=["Cs"]), min_size=1)
NAMES = st.one_of(st.none(), st.none(), st.sampled_from(ODD_NAMES), TEXT)
FIELDS = st.lists(st.sampled_from(["a", *ODD_NAMES]), min_size=1, max_size=3, unique=True)

INTEGERS = [getattr(dy, f"{kind}{bits}") for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)]
UNITS: st.SearchStrategy[Any] = st.sampled_from(["ms", "us", "ns"])
ZONES = st.sampled_from([None, "UTC", "America/New_York"])
ANY_DTYPE = [pl.Null(), pl.Int128(), pl.Int8(), pl.String(), pl.List(pl.Null()), pl.Duration("ms")]


def _is_there(value: pl.Expr) -> pl.Expr:
    """It is there."""
    return value.is_not_null()


CHECKS: list[Any] = [
    _is_there,
    lambda value: value.is_null(),
    [_is_there, _is_there],
    [lambda value: value.is_null(), lambda value: value.is_not_null()],
    {"odd | näme": _is_there, "": lambda value: value.is_null() & value.is_not_null()},
]


@st.composite
def columns(draw: st.DrawFn, *, deep: int = 2, element: bool = False) -> Column:
    """A column; `deep` says how many others it may have inside, one in the other."""
    kind = draw(st.sampled_from([*SIMPLE, *(NESTED if deep else [])]))
    common: dict[str, Any] = {}
    if kind is not _any:
        common["nullable"] = not draw(RARELY)
        common["unique"] = not element and draw(RARELY) and draw(RARELY)
    if draw(RARELY) and draw(RARELY):
        common["check"] = draw(st.sampled_from(CHECKS))
    drawn = kind(draw, common, *([deep - 1] if kind in NESTED else []))
    # What stands for several dtypes does so as a column only, not inside another (Dataframely 3.1).
    return Column(drawn.column, drawn.column.dtype) if element else drawn


def _bounds(draw: st.DrawFn, low: Any, high: Any) -> dict[str, Any]:
    lower = draw(st.sampled_from([None, None, "min", "min_exclusive"]))
    upper = draw(st.sampled_from([None, None, "max", "max_exclusive"]))
    return {word: bound for word, bound in ((lower, low), (upper, high)) if word is not None}


def _own(column: dy.Column) -> Column:
    return Column(column, column.dtype)


def _boolean(_draw: st.DrawFn, common: dict[str, Any]) -> Column:
    return _own(dy.Bool(**common))


def _integer(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    kind = draw(st.sampled_from([*INTEGERS, dy.Integer]))
    is_in = draw(st.sampled_from([None, None, None, [], [0, 2], [127]]))
    limits = _bounds(draw, 0, draw(st.integers(2, 3))) if is_in is None else {"is_in": is_in}
    column = kind(**limits, **common)
    dtype = draw(st.sampled_from([pl.Int8(), pl.UInt64()]))
    return Column(column, dtype if kind is dy.Integer else column.dtype)


def _float(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    kinds: list[Any] = [dy.Float32, dy.Float64, dy.Float]
    kind = draw(st.sampled_from(kinds))
    flags = {"allow_nan": draw(st.booleans()), "allow_inf": draw(st.booleans())}
    column = kind(**flags, **_bounds(draw, draw(st.sampled_from([-1.0, 0.0])), 1.5), **common)
    dtype = draw(st.sampled_from([pl.Float32(), pl.Float64()]))
    return Column(column, dtype if kind is dy.Float else column.dtype)


def _decimal(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    precision, scale = draw(st.sampled_from([(None, 0), (None, 2), (3, 1), (12, 2), (38, 10)]))
    column = dy.Decimal(precision, scale, **_bounds(draw, Decimal(0), Decimal(1)), **common)
    return Column(column, pl.Decimal(precision or draw(st.sampled_from([10, 38])), scale))


def _string(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    return _own(
        dy.String(
            regex=draw(st.sampled_from([None, None, None, None, "^a", "b$", "|", "é", r"^\S*$"])),
            min_length=draw(st.sampled_from([None, None, 0, 1, 2])),
            max_length=draw(st.sampled_from([None, None, 2, 3])),
            **common,
        )
    )


def _enum(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    return _own(
        dy.Enum(draw(st.sampled_from([["a"], ["b", "a", ""], ["é|", "x" * 200]])), **common)
    )


def _categorical(_draw: st.DrawFn, common: dict[str, Any]) -> Column:
    return _own(dy.Categorical(**common))


def _binary(_draw: st.DrawFn, common: dict[str, Any]) -> Column:
    return _own(dy.Binary(**common))


def _date(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    limits = _bounds(draw, dt.date(1970, 1, 1), dt.date(2024, 3, 1))
    return _own(dy.Date(resolution=draw(st.sampled_from([None, "1d", "1mo"])), **limits, **common))


def _time(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    limits = _bounds(draw, dt.time(0), dt.time(12))
    return _own(dy.Time(resolution=draw(st.sampled_from([None, "1m", "1h"])), **limits, **common))


def _datetime(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    zone = draw(ZONES)
    epoch = dt.datetime(1970, 1, 1, tzinfo=None if zone is None else ZoneInfo(zone))
    return _own(
        dy.Datetime(
            time_unit=draw(UNITS),
            time_zone=zone,
            resolution=draw(st.sampled_from([None, "1h", "1mo"])),
            **_bounds(draw, epoch, epoch + dt.timedelta(days=31)),
            **common,
        )
    )


def _duration(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    limits = _bounds(draw, dt.timedelta(0), dt.timedelta(days=1))
    resolution = draw(st.sampled_from([None, "1h"]))
    return _own(dy.Duration(time_unit=draw(UNITS), resolution=resolution, **limits, **common))


def _any(draw: st.DrawFn, common: dict[str, Any]) -> Column:
    return Column(dy.Any(**common), draw(st.sampled_from(ANY_DTYPE)))


def _list(draw: st.DrawFn, common: dict[str, Any], deep: int) -> Column:
    inner = draw(columns(deep=deep, element=True))
    shortest = draw(st.sampled_from([None, 0, 1]))
    longest = draw(st.sampled_from([None, 1, 2]))
    return _own(dy.List(inner.column, min_length=shortest, max_length=longest, **common))


def _array(draw: st.DrawFn, common: dict[str, Any], deep: int) -> Column:
    # Polars 1.35 has no arrays of categoricals.
    inner = draw(columns(deep=deep, element=True).filter(lambda c: "Categ" not in str(c.dtype)))
    return _own(dy.Array(inner.column, draw(st.integers(1, 3)), **common))


def _struct(draw: st.DrawFn, common: dict[str, Any], deep: int) -> Column:
    inner = {name: draw(columns(deep=deep, element=True)).column for name in draw(FIELDS)}
    return _own(dy.Struct(inner, **common))


SIMPLE: list[Callable[..., Column]] = [
    _boolean, _integer, _float, _decimal, _string, _enum, _categorical, _binary, _date, _time,
    _datetime, _duration, _any,
]  # fmt: skip
NESTED: list[Callable[..., Column]] = [_list, _array, _struct]


# Schemas.

KEYS = pl.Series([*range(40), None], dtype=pl.Int8)


@st.composite
def schemas_and_frames(draw: st.DrawFn, *, several_rows: bool = False) -> Drawn:
    """A schema, with rules over several rows where asked for, and a frame with its columns."""
    found: dict[str, Column] = {}
    members: dict[str, Any] = {}
    for number, drawn in enumerate(draw(st.lists(columns(), min_size=1, max_size=4))):
        alias = draw(NAMES)
        column = drawn.column.with_properties(alias=alias if alias not in found else None)
        members[f"c{number}"] = column
        found[column.alias or f"c{number}"] = Column(column, drawn.dtype)
    if draw(st.booleans()):
        members["key"] = dy.Int8(primary_key=True)
        found["key"] = _own(members["key"])
        if draw(st.booleans()):
            members["key_too"] = dy.String(primary_key=True, nullable=False)
            found["key_too"] = _own(members["key_too"])
    if several_rows:
        members["group"] = dy.Int8(nullable=True)
        found["group"] = _own(members["group"])
        for rule in draw(st.lists(st.sampled_from([*OVER_ROWS]), min_size=1, max_size=3)):
            members[rule] = OVER_ROWS[rule](
                draw(st.sampled_from([*found])), draw(st.integers(0, 4))
            )
        if draw(RARELY):
            rule = draw(st.sampled_from([*OVER_TABLES]))
            members[rule] = OVER_TABLES[rule](draw(st.sampled_from([*found])))
    if draw(RARELY):
        members["either_or"] = _either_or(*draw(st.tuples(*[st.sampled_from([*found])] * 2)))
    schema = _declare(members, draw(st.sampled_from(["flat", "split", "override", "diamond"])))
    frame = draw(frames({name: found[name] for name in schema.column_names()}))
    if "key" in members:
        size: dict[str, Any] = {"min_size": frame.height, "max_size": frame.height}
        keys = draw(st.lists(st.integers(0, 40), unique=not draw(RARELY), **size))
        frame = frame.with_columns(KEYS.gather(keys).alias("key"))
    return Drawn(schema, frame)


def _either_or(one: str, other: str) -> Any:
    return dy.rule()(lambda cls: pl.col(one).is_null() | pl.col(other).is_not_null())


OVER_ROWS: dict[str, Callable[[str, int], Any]] = {
    "big_groups": lambda _, bound: dy.rule()(lambda cls: pl.len().over("group") >= bound),
    "small_groups": lambda _, bound: dy.rule()(lambda cls: pl.len().over("group") <= bound),
    "after_a_null": lambda name, _: dy.rule()(
        lambda cls: pl.col(name).is_null() | pl.col(name).shift().is_not_null()
    ),
    "few_nulls": lambda name, bound: dy.rule()(
        lambda cls: pl.col(name).is_null().cum_sum() <= bound
    ),
    "few_rows": lambda _, bound: dy.rule()(lambda cls: pl.int_range(pl.len()) <= 2 * bound),
}
"""Rules over several rows, made of a column's name and a number."""

OVER_TABLES: dict[str, Callable[[str], Any]] = {
    "has_rows": lambda _: dy.rule()(lambda cls: pl.len() > 0),
    "more_values_than_nulls": lambda name: dy.rule()(
        lambda cls: pl.col(name).null_count() <= pl.col(name).count()
    ),
    "no_verdict": lambda _: dy.rule()(lambda cls: pl.lit(None, dtype=pl.Boolean)),
}
"""Rules over the whole table, made of a column's name."""


def _declare(members: Mapping[str, Any], how: str) -> type[dy.Schema]:
    """The schema, in one class or by inheritance."""

    def declare(bases: tuple[type, ...], *names: str) -> type[dy.Schema]:
        return type("Schema", bases, {name: members[name] for name in names})

    first, *rest = members
    if how == "flat" or not rest:
        return declare((dy.Schema,), *members)
    if how == "split":
        return declare((declare((dy.Schema,), first),), *rest)
    if how == "override":
        return declare((type("Base", (dy.Schema,), {first: dy.Int64(unique=True)}),), *members)
    base = declare((dy.Schema,), first)
    left, right = declare((base,), *rest[::2]), declare((base,), *rest[1::2])
    return declare((left, right))
