"""Write the source of a schema, formatted as ruff does."""

import ast
import itertools
import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import dataframely as dy
import polars as pl
from dataframely.experimental import infer_schema

from dagster_dataframely._infer.body import write_asset
from dagster_dataframely._infer.facts import Inference, Observed
from dagster_dataframely._infer.files import Table
from dagster_dataframely._infer.literals import string_literal as _string
from dagster_dataframely._names import COLUMN_PREFIX, is_nameable
from dagster_dataframely._text import count, cut, printable

_WIDTH = 88
"""Ruff's default."""


_LONGEST_ATTRIBUTE = 50
"""With a longer name ruff breaks a line in other ways than this module does."""


_HIDDEN = {*dir(dy.Schema), "dd", "dy", "pl", "datetime", "zoneinfo", "Decimal"}
"""What a column's attribute must not hide."""


_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class _Brackets:
    """A call, a list or a dictionary; the opening has all that stands before the first item."""

    opening: str
    items: tuple["str | _Brackets", ...]

    def __str__(self) -> str:
        return f"{self.opening}{', '.join(map(str, self.items))}{self.closing}"

    @property
    def closing(self) -> str:
        return _CLOSING[self.opening[-1]]

    def with_prefix(self, prefix: str) -> "_Brackets":
        return _Brackets(f"{prefix}{self.opening}", self.items)

    def with_items(self, *items: "str | _Brackets") -> "_Brackets":
        return _Brackets(self.opening, (*self.items, *items))


def write_module(
    inference: Inference, table: Table, *, class_name: str, ranges: bool, schema_only: bool
) -> str:
    """A module with one schema, whose comments hold what may become its rules.

    For text it has an asset, too, which reads the files and parses them.
    """
    facts = {name: _facts(name, inference, ranges=ranges) for name in inference.columns}
    head = [f"# {printable(table.title)}: {count(inference.rows, 'row')}."]
    if inference.rows == 0:
        head.append("# Without rows nothing is known of nulls, keys and ranges.")
    if any(facts.values()):
        head.append("# Arguments in comments hold for these rows: move them into the parentheses.")
    if inference.rows > 1 and not inference.key:
        head.append("# No column and no pair of columns is a key, without nulls and duplicates.")
    if inference.almost is not None:
        name, rows = inference.almost
        head.append(f"# {printable(name)} is one, but for {count(rows, 'row')}.")
    body = [
        f"    # Left out, since Polars cannot read it: {printable(name)}, {printable(dtype)}."
        for name, dtype in table.left_out.items()
    ]
    attributes = _attributes(inference.columns)
    for name, seen in inference.columns.items():
        body += _text_lines(name, table, ranges=ranges)
        body += _column_lines(name, attributes[name], seen, facts[name], table)
    tail = [] if schema_only else write_asset(table, class_name)
    imports = ["import dataframely as dy"]
    if tail or any("dd.text_format(" in line for line in body):
        imports = ["import dagster_dataframely as dd", *imports]
    if tail:
        imports.append("import polars as pl")
    if any("pathlib." in line for line in tail):
        imports = ["import pathlib", "", *imports]
    # Python reads the encoding of a module from a comment in its first two lines (PEP 263).
    lines = [*imports, "", *head, "", "", f"class {class_name}(dy.Schema):"]
    return "\n".join([*lines, *body, *tail, ""])


def _text_lines(name: str, table: Table, *, ranges: bool) -> Iterator[str]:
    """Comments on what the texts of a column mean."""
    texts = table.texts.get(name)
    if texts is None or not is_nameable(name):
        return
    if texts.lost:
        such = f", such as {_string(cut(texts.example or '', 40))}" if ranges else ""
        kind = texts.meaning.dtype.base_type()
        yield f"    # {texts.lost:,} of {count(texts.texts, 'text')} cannot be parsed as {kind}{such}."
    if table.drops is not None and name in table.drops.lacking:
        yield f"    # {printable(table.drops.lacking[name].name)} lacks it."
    if texts.meaning.note:
        yield f"    # {texts.meaning.note}"


def _text_format(name: str, table: Table) -> list[_Brackets]:
    """The metadata that says how a column is written."""
    texts = table.texts.get(name)
    if texts is None or not texts.meaning.formats:
        return []
    items: list[str | _Brackets] = []
    for word, value in texts.meaning.formats.items():
        if word == "formats":
            items += map(_string, value)
        elif isinstance(value, str):
            items.append(f"{word}={_string(value)}")
        else:
            items.append(_Brackets(f"{word}=[", tuple(map(_string, value))))
    return [_Brackets("metadata=dd.text_format(", tuple(items))]


def _facts(name: str, inference: Inference, *, ranges: bool) -> list[str]:
    """The arguments that hold for a column."""
    facts = []
    if name in inference.key:
        facts.append("primary_key=True")
    elif name in inference.unique:
        facts.append("unique=True")
    bounds = inference.columns[name].python_bounds()
    if ranges and bounds is not None:
        low, high = (repr(bound).replace("'", '"') for bound in bounds)
        facts += [f"min={low}", f"max={high}"]
    return facts


def _column_lines(
    name: str, attribute: str, seen: Observed, facts: list[str], table: Table
) -> Iterator[str]:
    indent, dtype = " " * 4, printable(str(seen.dtype))
    if not is_nameable(name):
        yield f"{indent}# Left out, since no schema can declare it: {name!r}, {dtype}."
        return
    if name.startswith(COLUMN_PREFIX):
        yield f"{indent}# Rename it: dd.asset keeps names that begin with `{COLUMN_PREFIX}`."
    column = _column(seen)
    if "dy.Any()" in str(column):
        yield f"{indent}# dy.Any stands for what Dataframely has no column for: {dtype}."
        facts = []
    if attribute != name:
        column = column.with_items(f"alias={_string(name)}")
    column = column.with_items(*_text_format(name, table))
    lines = _break(column.with_prefix(f"{attribute} = "), len(indent))
    with_comment = f"{lines[0]}  # {', '.join(facts)}"
    if facts and len(lines) == 1 and _fits(with_comment):
        yield with_comment
    else:
        yield from (f"{indent}# {fact}" for fact in facts)
        yield from lines


def _column(seen: Observed) -> _Brackets:
    """A column's constructor, by Dataframely's own inference where nothing is inside of the dtype."""
    dtype = seen.dtype
    if isinstance(dtype, pl.Struct):
        if not all(is_nameable(f.name) for f in dtype.fields):
            return _Brackets("dy.Any(", ())
        fields = (
            _column(_inside(seen, f.name, f.dtype)).with_prefix(f"{_string(f.name)}: ")
            for f in dtype.fields
        )
        column = _Brackets("dy.Struct(", (_Brackets("{", tuple(fields)),))
    elif isinstance(dtype, (pl.List, pl.Array)):
        element = _column(_inside(seen, "", dtype.inner))
        column = _Brackets("dy.List(", (element,))
        if isinstance(dtype, pl.Array):
            if "dy.Any()" in str(element):
                return _Brackets("dy.Any(", ())  # An array of them accepts nothing (3.1).
            column = _Brackets("dy.Array(", (element, f"shape={dtype.shape[0]}"))
    else:
        column = _flat_column(dtype)
        if column.opening == "dy.Any(":
            return column  # It takes no `nullable`.
    return column.with_items(
        *(["nullable=True"] if seen.nullable else []),
        *(["allow_inf=True"] if seen.infinite else []),
        *(["allow_nan=True"] if seen.nan else []),
    )


def _inside(seen: Observed, name: str, dtype: Any) -> Observed:
    """What was seen inside of a column, if it was: without rows only its dtype is known."""
    return seen.inner.get(name, Observed(dtype))


def _flat_column(dtype: pl.DataType) -> _Brackets:
    inferred = infer_schema(pl.DataFrame(schema={"column": dtype})).partition(" = ")[2]
    call: Any = ast.parse(inferred, mode="eval").body
    lists = [_Brackets("[", tuple(map(_string, ast.literal_eval(arg)))) for arg in call.args]
    named = [f"{word.arg}={_literal(ast.literal_eval(word.value))}" for word in call.keywords]
    return _Brackets(f"{ast.unparse(call.func)}(", (*lists, *named))


def _attributes(names: Iterable[str]) -> dict[str, str]:
    """An attribute for each column: its name where that can be one, and each only once."""
    attributes = {name: name for name in names if _can_be_attribute(name)}
    taken = set(attributes)
    for name in names:
        if name not in attributes:
            words = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:_LONGEST_ATTRIBUTE]
            base = words if words[:1].isalpha() else f"column_{words}".rstrip("_")
            numbered = (f"{base}_{number}" for number in itertools.count(2))
            attributes[name] = next(
                attribute
                for attribute in itertools.chain([base, f"{base}_"], numbered)
                if attribute not in taken and _is_free(attribute)
            )
            taken.add(attributes[name])
    return attributes


def _can_be_attribute(name: str) -> bool:
    return (
        name.isidentifier()
        and _is_free(name)
        and not name.startswith("__")  # Python renames these.
        and name == unicodedata.normalize("NFKC", name)  # And these.
        and len(name) <= _LONGEST_ATTRIBUTE
    )


def _is_free(attribute: str) -> bool:
    return not keyword.iskeyword(attribute) and attribute not in _HIDDEN


def _break(item: str | _Brackets, indent: int, end: str = "") -> list[str]:
    """Lines for a piece of source, broken at its outermost brackets first."""
    line = f"{' ' * indent}{item}{end}"
    if isinstance(item, str) or not item.items or _fits(line):
        return [line]
    together = f"{' ' * (indent + 4)}{', '.join(map(str, item.items))}"
    if len(item.items) == 1:
        middle = _break(item.items[0], indent + 4)
    elif item.closing == ")" and _fits(together):
        middle = [together]
    else:
        middle = [line for part in item.items for line in _break(part, indent + 4, ",")]
    return [f"{' ' * indent}{item.opening}", *middle, f"{' ' * indent}{item.closing}{end}"]


def _fits(line: str) -> bool:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in line)
    return len(line) + wide <= _WIDTH


def _literal(value: object) -> str:
    return _string(value) if isinstance(value, str) else repr(value)
