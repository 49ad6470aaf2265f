"""Settings: default, then environment, then argument; each checked where it enters."""

import difflib
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypedDict

from upath import UPath

from dagster_dataframely.errors import InvalidArgumentError, InvalidSettingError

ENVIRONMENT_PREFIX = "DAGSTER_DATAFRAMELY_"
QUARANTINE_DIR_VARIABLE = f"{ENVIRONMENT_PREFIX}QUARANTINE_DIR"


class Granularity(StrEnum):
    """How many asset checks the rules of a schema become."""

    RULE = "rule"
    """One check for each rule, each with its own history."""
    COLUMN = "column"
    """One check for each column that has rules."""
    SCHEMA = "schema"
    """One check for all rules."""


class MultiColumnRules(StrEnum):
    """Where, at column granularity, the rules go that no single column owns."""

    SCHEMA = "schema"
    """They share one check."""
    PER_RULE = "per_rule"
    """One check for each."""


class Engine(StrEnum):
    """Where the rules are evaluated."""

    AUTO = "auto"
    """A DataFrame in memory, a LazyFrame on disk."""
    IN_MEMORY = "in-memory"
    STREAMING = "streaming"


class QuarantineLayout(StrEnum):
    """Which columns a quarantine has after the schema's."""

    COLUMNS = "columns"
    """One for each rule, named as its check."""
    LIST = "list"
    """The failed rules' names, the run and the time: the same whatever the rules are."""


class Unstorable(StrEnum):
    """What happens to columns that the asset's storage does not give back as they were written."""

    REFUSE = "refuse"
    """The run fails before anything is written."""
    WARN = "warn"
    """The run's log names them."""


class SettingArguments(TypedDict, total=False):
    """The settings as the decorator and `dd.wiring` take them; `None` means not given."""

    check_granularity: Granularity | Literal["rule", "column", "schema"] | None
    multi_column_rules: MultiColumnRules | Literal["schema", "per_rule"] | None
    statistics: bool | None
    max_failure_samples: int | None
    row_sample: int | None
    max_metadata_bytes: int | None
    redact: Collection[str] | None
    temp_dir: str | os.PathLike[str] | None
    engine: Literal["auto", "in-memory", "streaming"] | None
    quarantine_layout: Literal["columns", "list"] | None
    quarantine_io_manager_key: str | None
    quarantine_events: bool | None
    unstorable: Literal["refuse", "warn"] | None
    max_error_share: float | None


@dataclass(frozen=True)
class Settings:
    """Every setting of one asset, resolved and checked."""

    check_granularity: Granularity = Granularity.RULE
    multi_column_rules: MultiColumnRules = MultiColumnRules.SCHEMA
    statistics: bool = True
    max_failure_samples: int = 5
    row_sample: int = 5
    max_metadata_bytes: int = 200_000
    redact: frozenset[str] = frozenset()
    temp_dir: Path | None = None
    engine: Engine = Engine.AUTO
    quarantine_layout: QuarantineLayout = QuarantineLayout.COLUMNS
    quarantine_io_manager_key: str | None = None
    quarantine_events: bool = False
    unstorable: Unstorable = Unstorable.REFUSE
    max_error_share: float = 1.0

    @classmethod
    def resolve(cls, arguments: Mapping[str, Any]) -> "Settings":
        """Take each setting from the argument, else the environment, else the default.

        `redact` is taken from both: what a deployment hides, an argument does not show again.
        """
        values: dict[str, Any] = {}
        for name, setting in SETTINGS.items():
            if (value := arguments.get(name)) is not None:
                values[name] = setting.check(name, value, "the argument")
            elif (value := setting.in_environment(name)) is not None:
                values[name] = value
        everywhere = SETTINGS["redact"].in_environment("redact") or frozenset()
        return cls(**{**values, "redact": values.get("redact", frozenset()) | everywhere})

    def shared(self, parts: int) -> "Settings":
        """These settings for one of several parts of a run that share its byte budget."""
        return replace(self, max_metadata_bytes=self.max_metadata_bytes // parts)


@dataclass(frozen=True)
class _Setting:
    """How one setting is read from text and what it may be; `parse` raises `ValueError` otherwise."""

    parse: Callable[[Any], Any]
    allowed: str
    from_text: Callable[[str], Any] = str

    def check(self, name: str, value: object, source: str) -> Any:
        try:
            return self.parse(value)
        except ValueError:
            raise InvalidSettingError(name, value, source, self.allowed) from None

    def in_environment(self, name: str) -> Any:
        """The value of the setting's variable, or `None` where it is not set."""
        variable = ENVIRONMENT_PREFIX + name.upper()
        text = os.environ.get(variable)
        return None if text is None else self.check(name, self.from_text(text), f"`{variable}`")


def reject_unknown(
    function: str,
    unknown: Iterable[str],
    known: Collection[str],
    decided: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Reject arguments that a function does not take; `decided` has the reasons for some."""
    for argument in unknown:
        if argument in decided:
            raise InvalidArgumentError(argument, decided[argument])
        if argument not in known:
            nearest = difflib.get_close_matches(argument, known, 1)
            hint = f" Did you mean `{nearest[0]}`?" if nearest else ""
            message = f"{function}() got an unexpected keyword argument {argument!r}.{hint}"
            raise TypeError(message)


def quarantine_dir() -> UPath | None:
    """The directory for the error rows of direct invocations, read when it is asked for."""
    text = os.environ.get(QUARANTINE_DIR_VARIABLE)
    if text is None:
        return None
    if not text.strip():
        raise InvalidSettingError(
            "quarantine_dir", text, f"`{QUARANTINE_DIR_VARIABLE}`", "the path of a directory"
        )
    return UPath(text)


def _parse_flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError


def _flag_from_text(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)


def _parse_count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError


def _count_from_text(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


def _parse_share(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise ValueError


def _share_from_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _parse_names(value: object) -> frozenset[str]:
    # A text is a collection too, of its characters.
    names = value if isinstance(value, Collection) and not isinstance(value, (str, bytes)) else [""]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError
    return frozenset(names)


def _names_from_text(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _parse_key(value: object) -> str:
    if isinstance(value, str) and value.isidentifier():
        return value
    raise ValueError


def _parse_directory(value: object) -> Path:
    if isinstance(value, (str, os.PathLike)):
        path = Path(os.fspath(value))
        if str(value).strip() and path.is_dir():
            return path
    raise ValueError


_FLAG = _Setting(_parse_flag, "`true` or `false`", _flag_from_text)
_COUNT = _Setting(_parse_count, "a whole number, 0 or more", _count_from_text)

SETTINGS: Mapping[str, _Setting] = {
    "check_granularity": _Setting(Granularity, "`rule`, `column` or `schema`"),
    "multi_column_rules": _Setting(MultiColumnRules, "`schema` or `per_rule`"),
    "statistics": _FLAG,
    "max_failure_samples": _COUNT,
    "row_sample": _COUNT,
    "max_metadata_bytes": _COUNT,
    "redact": _Setting(
        _parse_names,
        "a list of column names; in the variable, with commas between",
        _names_from_text,
    ),
    "temp_dir": _Setting(_parse_directory, "the path of an existing directory"),
    "engine": _Setting(Engine, "`auto`, `in-memory` or `streaming`"),
    "quarantine_layout": _Setting(QuarantineLayout, "`columns` or `list`"),
    "quarantine_io_manager_key": _Setting(_parse_key, "the key of a resource"),
    "quarantine_events": _FLAG,
    "unstorable": _Setting(Unstorable, "`refuse` or `warn`"),
    "max_error_share": _Setting(_parse_share, "a number from 0 to 1", _share_from_text),
}
