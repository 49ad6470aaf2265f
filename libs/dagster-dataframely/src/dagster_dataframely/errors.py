"""Every error this library raises on purpose.

All of them derive from `DagsterDataframelyError`. The ones raised while a definition is built are also
`dagster.DagsterInvalidDefinitionError`; the ones raised in a run are also `dagster.Failure`, with
retries off, because running the same code on the same rows fails the same way. `UnreadableFileError`
is the command's. Each carries its facts as attributes, so nobody has to parse a message.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg

from dagster_dataframely._text import count, cut, cut_start, list_within, printable, share

__all__ = [
    "AssetReadError",
    "CastFailure",
    "CheckNameCollisionError",
    "CodeLocationError",
    "CollectionNotSupportedError",
    "ColumnMismatch",
    "ColumnSchemaError",
    "DagsterDataframelyError",
    "ExportError",
    "InvalidArgumentError",
    "InvalidCollectionError",
    "InvalidColumnError",
    "InvalidReferenceError",
    "InvalidRuleError",
    "InvalidSchemaError",
    "InvalidSettingError",
    "InvalidSeverityError",
    "InvalidTextFormatError",
    "ManyChecksWarning",
    "NothingSurvivedError",
    "ParseError",
    "QuarantineAddressError",
    "QuarantineColumnsError",
    "QuarantineDirError",
    "QuarantineKeyCollisionError",
    "QuarantineReadError",
    "ReservedColumnError",
    "ReturnValueError",
    "RuleEvaluationError",
    "StagingError",
    "StorageDtypeError",
    "StoredColumn",
    "StoredTableError",
    "StrictCastError",
    "TooManyErrorRowsError",
    "UnknownQuarantineError",
    "UnknownRuleError",
    "UnreadableFileError",
    "UnstorableColumn",
    "ValidationAbortError",
]

_MAX_MESSAGE = 300
_MAX_VALUE = 40
_MAX_DTYPE = 25
_MAX_TEXT = 80


class ColumnMismatch(NamedTuple):
    """One column of a frame that does not have the dtype its schema declares."""

    column: str
    """The column's name."""
    expected: str
    """The dtype the schema declares."""
    found: str | None
    """The dtype the frame has, or `None` where the frame lacks the column."""


class CastFailure(NamedTuple):
    """One column that `dd.strict_cast` does not cast, or `dd.parse` does not parse."""

    column: str
    """The column's name."""
    expected: str
    """The dtype the schema declares."""
    found: str | None
    """The dtype the frame has, or `None` where the frame lacks the column."""
    reason: str
    """Why it is not cast, in words."""
    changed: int | None = None
    """How many values would change, or `None` where it is not the values that decide."""
    example: str | None = None
    """The first of them, or `redacted` where the schema marks the column as personal data."""


class UnstorableColumn(NamedTuple):
    """One column that a storage does not give back as it was written."""

    column: str
    """The column's name."""
    dtype: str
    """The dtype that is lost: the column's, or one inside of it."""
    instead: str
    """What to declare in its place, in words."""


class StoredColumn(NamedTuple):
    """One column in which a stored table differs from what is about to be written to it."""

    column: str
    """The column's name."""
    stored: str | None
    """The type that the storage has, or `None` where it lacks the column."""
    declared: str | None
    """The type that would be written, or `None` where no such column is declared."""
    fix: str = ""
    """What to type, where that is known for a single column."""


class DagsterDataframelyError(Exception):
    """Base of every error this library raises on purpose; each can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the class with the message alone.
        return _restore, (type(self), self.args), vars(self)


def _restore(
    error: type[DagsterDataframelyError], args: tuple[object, ...]
) -> DagsterDataframelyError:
    return error.__new__(error, *args)


class _DefinitionError(DagsterDataframelyError, dg.DagsterInvalidDefinitionError):
    """A declaration that cannot work, found when the definition is built."""


class _RunError(DagsterDataframelyError, dg.Failure):
    """A run that must not go on; Dagster does not retry it."""

    def __init__(self, description: str) -> None:
        dg.Failure.__init__(self, description, allow_retries=False)


class InvalidSchemaError(_DefinitionError):
    """Something other than a `dataframely.Schema` class was given as the schema."""

    def __init__(self, found: object) -> None:
        found_text = f"an object of type {_code(type(found).__name__)}"
        if isinstance(found, type):
            found_text = f"the class {_code(found.__name__)}, which declares no column"
        super().__init__(
            f"The schema must be a `dataframely.Schema` class, found {found_text}. "
            "Pass the class itself: `@dd.asset(Orders)`."
        )
        self.found = found


class CollectionNotSupportedError(_DefinitionError):
    """A `dataframely.Collection` was given where one schema is needed."""

    def __init__(self, collection: type) -> None:
        name = printable(collection.__name__)
        super().__init__(
            f"`{name}` is a `dataframely.Collection`, and an asset is one table. Declare its members "
            f"together: `@dd.collection_asset({name})`."
        )
        self.collection = collection


class InvalidCollectionError(_DefinitionError):
    """Something other than a `dataframely.Collection` class was given as the collection."""

    def __init__(self, found: object) -> None:
        found_text = f"an object of type {_code(type(found).__name__)}"
        if isinstance(found, type):
            found_text = f"the class {_code(found.__name__)}"
        super().__init__(
            f"The collection must be a `dataframely.Collection` class with members, found "
            f"{found_text}. Pass the class itself."
        )
        self.found = found


class InvalidArgumentError(_DefinitionError):
    """An argument that the decorator decides itself, or two arguments that contradict each other."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(f"{_code(argument)} cannot be used here: {printable(reason)}")
        self.argument = argument


class InvalidReferenceError(_DefinitionError):
    """A name in YAML stands for nothing that can be imported, or for something of another kind."""

    def __init__(
        self, reference: str, wanted: str, problem: str, known: Sequence[str] = ()
    ) -> None:
        head = (
            f"{_code(reference)} has to name {wanted}, "
            f"but {_short(problem, _MAX_TEXT + _MAX_VALUE)}. "
        )
        message = f"{head}Write `module:Name`, with a module that this project can import."
        if known:
            message = _list(f"{head}There is ", [_code(name) for name in known], ".")
        super().__init__(message)
        self.reference = reference
        self.wanted = wanted
        self.problem = problem
        self.known = tuple(known)


class InvalidRuleError(_DefinitionError):
    """A rule gives no expression, or one that is neither true nor false, or its name is kept.

    What a rule over a `dy.Any` column gives shows only in a run. Names that begin with `dy_`, and ones
    that Polars takes for patterns, are kept, for filters of a collection too; then `schema` names the
    collection.
    """

    def __init__(self, schema: str, rule: str, reason: str, fix: str) -> None:
        super().__init__(
            f"Rule {_code(rule)} of {_code(schema)} {printable(reason)}. {printable(fix)}"
        )
        self.schema = schema
        self.rule = rule


class InvalidSettingError(_DefinitionError):
    """A setting has a value that is not allowed, wherever the value came from."""

    def __init__(self, setting: str, value: object, source: str, allowed: str) -> None:
        super().__init__(
            f"Setting {_code(setting)} is {_short(repr(value))}, from {printable(source)}. "
            f"Allowed: {printable(allowed)}."
        )
        self.setting = setting
        self.value = value
        self.source = source
        self.allowed = allowed


class InvalidSeverityError(_DefinitionError):
    """A severity names no rule of the schema, or is neither `"error"` nor `"warn"`."""

    def __init__(self, schema: str, rule: str, severity: object, rules: Sequence[str]) -> None:
        head = f"Severity for {_code(rule)} of schema {_code(schema)}: "
        if rule in rules:
            found = _short(repr(severity))
            message = f"{head}{found} is no severity; use `error` or `warn`."
        else:
            known = [_code(name) for name in rules]
            message = _list(f"{head}there is no such rule; there are ", known, ".")
        super().__init__(message)
        self.schema = schema
        self.rule = rule
        self.severity = severity
        self.rules = tuple(rules)


class InvalidTextFormatError(_DefinitionError):
    """A `dd.text_format` cannot parse the dtype of its column, or of one inside of it."""

    def __init__(self, schema: str, column: str, problem: str) -> None:
        super().__init__(
            f"Text format of {_code(column)} of schema {_code(schema)}: "
            f"{_short(problem, _MAX_TEXT + _MAX_VALUE)}. See `dd.text_format`."
        )
        self.schema = schema
        self.column = column
        self.problem = problem


class InvalidColumnError(_DefinitionError):
    """A schema column has a name that Polars takes for a pattern, or one with a NUL in it."""

    def __init__(self, schema: str, columns: Sequence[str]) -> None:
        super().__init__(
            _list(
                f"Schema {_code(schema)} declares ",
                [_code(repr(column)) for column in columns],
                ". Polars takes `*` and `^...$` for patterns and ends a name at a NUL: rename it.",
            )
        )
        self.schema = schema
        self.columns = tuple(columns)


class ReservedColumnError(_DefinitionError):
    """A schema column begins with the prefix this library keeps for its own names."""

    def __init__(self, schema: str, columns: Sequence[str]) -> None:
        super().__init__(
            _list(
                f"Schema {_code(schema)} declares ",
                [_code(column) for column in columns],
                ". Names that begin with `dy_` are kept for rule columns and checks: rename it.",
            )
        )
        self.schema = schema
        self.columns = tuple(columns)


class CheckNameCollisionError(_DefinitionError):
    """Two rules or columns end up with one check name."""

    def __init__(self, schema: str, check_name: str, names: Sequence[str]) -> None:
        super().__init__(
            f"In schema {_code(schema)}, {' and '.join(_code(name) for name in names)} would share "
            f"the check name {_code(check_name)}, because Dagster allows only letters, digits and "
            "`_`. Rename one of them."
        )
        self.schema = schema
        self.check_name = check_name
        self.names = tuple(names)


class ColumnSchemaError(_RunError):
    """A frame lacks a declared column or has another dtype; no row was looked at."""

    def __init__(
        self,
        asset: str,
        schema: str,
        mismatches: Sequence[ColumnMismatch],
        *,
        advice: str | None,
        stored: bool = False,
    ) -> None:
        found = [
            f"{_code(m.column)} is {_short(m.found or 'missing')}, declared {_short(m.expected)}"
            for m in mismatches
        ]
        cast = f"Return `dd.strict_cast({printable(schema)}, frame)`."
        fix = advice or ("Build the checks with `cast=True`." if stored else cast)
        head = f"Asset {_code(asset)}: not the columns of schema {_code(schema)}: "
        super().__init__(_list(head, found, f". {fix}", separator="; "))
        self.asset = asset
        self.schema = schema
        self.mismatches = tuple(mismatches)
        self.columns = tuple(m.column for m in mismatches)
        self.castable = advice is None


class ValidationAbortError(_RunError):
    """Error rules failed and the table must not be written; the last one stays.

    Either rows failed and the asset has no quarantine, or the rows that are left fail as a table: a
    rule that gives one value for all of them. `address` is where the error rows are, if they were
    set aside.
    """

    def __init__(
        self,
        asset: str,
        counts: Mapping[str, int],
        *,
        error_rows: int,
        rows: int,
        table_rules: Sequence[str] = (),
        address: str | None = None,
    ) -> None:
        parts = [_code(rule) for rule in table_rules]
        found = f"the table of {count(rows - error_rows, 'row')} failed error rules: "
        tail = ". Nothing was written; the last table stays."
        if address is not None:
            tail = f". No table was written; the last one stays. Error rows: {_end_of(address)}"
        elif error_rows:
            parts = [*_counts(counts), *(f"{part} (the whole table)" for part in parts)]
            found = f"{count(error_rows, 'row')} of {rows:,} failed error rules: "
            tail += " `quarantine=True` would set these rows aside and write the others."
        super().__init__(_list(f"Asset {_code(asset)}: {found}", parts, tail))
        self.asset = asset
        self.rules = (*counts, *table_rules)
        self.counts = dict(counts)
        self.table_rules = tuple(table_rules)
        self.error_rows = error_rows
        self.rows = rows
        self.address = address


class NothingSurvivedError(_RunError):
    """Every row failed an error rule; all are in the quarantine and no table was written."""

    def __init__(self, asset: str, counts: Mapping[str, int], *, rows: int, address: str) -> None:
        super().__init__(
            _list(
                f"Asset {_code(asset)}: no row of {rows:,} survived the error rules: ",
                _counts(counts),
                f". No table was written; the last one stays. The rows: {_end_of(address)}",
            )
        )
        self.asset = asset
        self.rules = tuple(counts)
        self.counts = dict(counts)
        self.rows = rows
        self.address = address


class TooManyErrorRowsError(_RunError):
    """More rows are error rows than `max_error_share` allows: set aside, and the last table stays."""

    def __init__(
        self,
        asset: str,
        counts: Mapping[str, int],
        *,
        error_rows: int,
        rows: int,
        limit: float,
        address: str,
    ) -> None:
        head = f"{count(error_rows, 'error row')} of {rows:,} ({share(error_rows, rows)})"
        super().__init__(
            _list(
                f"Asset {_code(asset)}: {head}, above `max_error_share={limit:g}`: ",
                _counts(counts),
                f". The last table stays. The rows: {_end_of(address)}",
            )
        )
        self.asset = asset
        self.rules = tuple(counts)
        self.counts = dict(counts)
        self.error_rows = error_rows
        self.rows = rows
        self.share = error_rows / rows
        self.limit = limit
        self.address = address


class RuleEvaluationError(_RunError):
    """Polars, or the function of a rule's author, refuses to evaluate the rule; nothing was written."""

    def __init__(self, schema: str, rule: str, problem: str) -> None:
        super().__init__(
            f"Rule {_code(rule)} of {_code(schema)} cannot be evaluated: "
            f"{_short(problem, _MAX_TEXT)}. Nothing was written."
        )
        self.schema = schema
        self.rule = rule
        self.problem = problem


class ReturnValueError(_RunError):
    """The decorated function returned something that is not a table."""

    def __init__(
        self,
        asset: str,
        found: str,
        fix: str,
        allowed: str = "a Polars frame, a `dg.MaterializeResult` with one as its `value`",
    ) -> None:
        super().__init__(
            f"Asset {_code(asset)} returned {printable(found)}. Allowed: "
            f"{printable(allowed)}, or `None` to skip. {printable(fix)}".rstrip()
        )
        self.asset = asset
        self.found = found


class AssetReadError(_RunError):
    """The IO manager of a stored asset gives something that is no Polars frame."""

    def __init__(self, asset: str, found: str) -> None:
        super().__init__(
            f"Asset {_code(asset)} cannot be checked: its IO manager loads it as a "
            f"{_code(found)}, and rules are about Polars frames. Bind it to one that loads these, or "
            "load it in a check of your own that reports from `dd.wiring.evaluate`."
        )
        self.asset = asset
        self.found = found


class QuarantineDirError(_RunError):
    """A direct invocation has error rows and no directory it may write them to."""

    def __init__(self, asset: str, reason: str) -> None:
        super().__init__(
            f"Asset {_code(asset)}, called directly, has error rows: {printable(reason)}. Set "
            "`DAGSTER_DATAFRAMELY_QUARANTINE_DIR` to a directory, or use `dd.testing.invoke`."
        )
        self.asset = asset


class StagingError(_RunError):
    """The rows of a lazy frame do not fit where they are staged; nothing was written."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"No space or quota is left in {_end_of(directory)} to stage the rows of a lazy frame: "
            "about one copy of the table. Set `temp_dir` to a directory with more. Nothing was written."
        )
        self.directory = directory


class StrictCastError(_RunError):
    """`dd.strict_cast` would change a value, or lacks a column; nothing was cast."""

    def __init__(self, schema: str, failures: Sequence[CastFailure]) -> None:
        head = f"No strict cast to {_code(schema)}: "
        super().__init__(_list(head, _reasons(failures), ". Fix the frame.", separator="; "))
        self.schema = schema
        self.failures = tuple(failures)
        self.columns = tuple(f.column for f in failures)


class ParseError(_RunError):
    """`dd.parse` lacks a column, or a conversion of one is left open; no value was looked at."""

    def __init__(self, schema: str, failures: Sequence[CastFailure]) -> None:
        missing = any(failure.found is None for failure in failures)
        fill = ', or say `missing="null"` for nullable columns' if missing else ""
        head = f"Frame cannot be parsed as {_code(schema)}: "
        tail = f". Change the frame{fill}."
        super().__init__(_list(head, _reasons(failures), tail, separator="; "))
        self.schema = schema
        self.failures = tuple(failures)
        self.columns = tuple(f.column for f in failures)


class StorageDtypeError(_RunError):
    """Columns have dtypes that what the asset is stored in does not give back; nothing was written."""

    def __init__(self, asset: str, storage: str, unstorable: Sequence[UnstorableColumn]) -> None:
        found = [
            f"{_code(c.column)} ({_short(c.dtype)}): declare {printable(c.instead)}"
            for c in unstorable
        ]
        head = f"Asset {_code(asset)}: {storage} does not give back "
        tail = '. Nothing was written; `unstorable="warn"` would.'
        super().__init__(_list(head, found, tail, separator="; "))
        self.asset = asset
        self.storage = storage
        self.unstorable = tuple(unstorable)
        self.columns = tuple(c.column for c in unstorable)


class StoredTableError(_RunError):
    """The stored table has other columns, or dtypes that would lose something; nothing was written."""

    def __init__(
        self, asset: str, table: str, columns: Sequence[StoredColumn], way_out: str
    ) -> None:
        where = cut_start(printable(table), _MAX_DTYPE)
        super().__init__(
            _list(
                f"Asset {_code(asset)}, stored as {where}: ",
                [_difference(column) for column in columns],
                f". Nothing was written. {way_out}.",
                separator="; ",
            )
        )
        self.asset = asset
        self.table = table
        self.differences = tuple(columns)
        self.columns = tuple(column.column for column in columns)


class QuarantineColumnsError(_RunError):
    """The quarantine is stored as a table with other columns; nothing was written."""

    def __init__(
        self, asset: str, quarantine_key: str, differences: Sequence[StoredColumn]
    ) -> None:
        super().__init__(
            _list(
                f"Asset {_code(asset)}: its stored quarantine {_code(quarantine_key)} differs: ",
                [_difference(StoredColumn(*column[:3])) for column in differences],
                '. Nothing was written. Drop it, or declare `quarantine_layout="list"`.',
                separator="; ",
            )
        )
        self.asset = asset
        self.quarantine_key = quarantine_key
        self.differences = tuple(differences)
        self.added = tuple(c.column for c in differences if c.stored is None)
        self.removed = tuple(c.column for c in differences if c.declared is None)


class QuarantineAddressError(_RunError):
    """Error rows would be written over something that is not a quarantine; nothing was written."""

    def __init__(self, asset: str, quarantine_key: str, manager: str, address: str) -> None:
        where = f" ({cut_start(printable(address), _MAX_VALUE)})" if address else ""
        super().__init__(
            f"Asset {_code(asset)}: {printable(manager)} would write quarantine "
            f"{_code(quarantine_key)} over the table or something else{where}. Nothing was written. "
            "Set `quarantine_io_manager_key`, or address by asset key."
        )
        self.asset = asset
        self.quarantine_key = quarantine_key
        self.manager = manager
        self.address = address


class QuarantineReadError(_RunError):
    """An IO manager cannot say whether error rows are stored; nothing was written."""

    def __init__(self, asset: str, quarantine_key: str, manager: str, problem: str) -> None:
        super().__init__(
            f"Asset {_code(asset)}: {printable(manager)} cannot read {_code(quarantine_key)}: "
            f"{_short(problem, _MAX_TEXT)}. Nothing was written. Remove it, or set "
            "`quarantine_io_manager_key`."
        )
        self.asset = asset
        self.quarantine_key = quarantine_key
        self.manager = manager
        self.problem = problem


class QuarantineKeyCollisionError(_RunError):
    """Another asset of the code location has the key that the error rows would be written under."""

    def __init__(self, asset: str, quarantine_key: str) -> None:
        super().__init__(
            f"Asset {_code(asset)} would write its error rows over asset {_code(quarantine_key)} of "
            "the same code location. Give one of them another key. Nothing was written."
        )
        self.asset = asset
        self.quarantine_key = quarantine_key


class ExportError(DagsterDataframelyError):
    """A file that `python -m dagster_dataframely quarantine export` does not write."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"Nothing is exported to {_end_of(file)}: {_short(reason, _MAX_TEXT)}.")
        self.file = file
        self.reason = reason


class CodeLocationError(DagsterDataframelyError):
    """A module or file of definitions that `python -m dagster_dataframely quarantine` cannot load."""

    def __init__(self, location: str, error: BaseException) -> None:
        reason = _short(str(error), _MAX_TEXT)
        super().__init__(f"The code location {_code(location)} cannot be loaded: {reason}")
        self.location = location


class UnknownRuleError(DagsterDataframelyError):
    """No rule of the table has this name."""

    def __init__(self, quarantine: str, rule: str, known: Sequence[str]) -> None:
        head = f"No rule of {_code(quarantine)} is called {_code(rule)}; there are "
        super().__init__(_list(head, [_code(name) for name in known], "."))
        self.quarantine = quarantine
        self.rule = rule
        self.known = tuple(known)


class UnknownQuarantineError(DagsterDataframelyError):
    """No asset of the code location sets error rows aside under this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        there_are = _list("; there are ", [_code(key) for key in known], ".") if known else "."
        super().__init__(f"There is no quarantine {_code(name)} in the code location{there_are}")
        self.name = name
        self.known = tuple(known)


class UnreadableFileError(DagsterDataframelyError):
    """A file that `python -m dagster_dataframely infer` cannot look at."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{_end_of(file)} cannot be read: {printable(reason)}.")
        self.file = file
        self.reason = reason


class ManyChecksWarning(UserWarning):
    """An asset has so many checks that they take most of its runs' time; given at definition."""

    def __init__(self, asset: str, checks: int, fewer: Mapping[str, int]) -> None:
        # With its own arguments, so that pickle and pytest-xdist can make it again.
        super().__init__(asset, checks, dict(fewer))
        self.asset = asset
        self.checks = checks
        self.fewer = dict(fewer)

    def __str__(self) -> str:
        said = f"Asset {_code(self.asset)} has {self.checks:,} checks, and each takes a run 5 to 30 ms."
        if not self.fewer:
            return said
        offers = [f"{number:,} with {_code(name)}" for name, number in self.fewer.items()]
        return f"{said} `check_granularity` makes fewer: {', '.join(offers)}."


def _reasons(failures: Sequence[CastFailure]) -> list[str]:
    return [
        f"{_code(f.column)}"
        f"{'' if f.found is None else _short(f' ({f.found} to {f.expected})', _MAX_TEXT)}: "
        f"{printable(f.reason)}"
        for f in failures
    ]


def _difference(column: StoredColumn) -> str:
    fix = f" ({printable(column.fix)})" if column.fix else ""
    if column.stored is None:
        return f"{_code(column.column)} is missing there{fix}"
    stored = f"{_code(column.column)} is {_short(column.stored, _MAX_DTYPE)}"
    if column.declared is None:
        return f"{stored} there and not declared{fix}"
    return f"{stored} there, declared {_short(column.declared, _MAX_DTYPE)}{fix}"


def _code(name: str) -> str:
    """A name as it has to be typed: never cut."""
    return f"`{printable(name)}`"


def _short(text: str, length: int = _MAX_VALUE) -> str:
    return cut(printable(text), length)


def _end_of(address: str) -> str:
    """The end of an address, which tells more than its beginning."""
    return cut_start(printable(address), _MAX_TEXT)


def _counts(counts: Mapping[str, int]) -> list[str]:
    return [f"{_code(rule)} ({number:,})" for rule, number in counts.items()]


def _list(head: str, parts: Sequence[str], tail: str, separator: str = ", ") -> str:
    return list_within(_MAX_MESSAGE, head, parts, tail, separator)
