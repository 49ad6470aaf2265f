"""Each setting comes from the default, the environment or the argument, and is checked wherever."""

from pathlib import Path
from typing import Any

import pytest

import dagster_dataframely as dd
from dagster_dataframely._settings import (
    SETTINGS,
    Engine,
    QuarantineLayout,
    Settings,
    quarantine_dir,
)
from dagster_dataframely.data import OrdersSchema
from dagster_dataframely.errors import InvalidSettingError

VALUES: dict[str, tuple[object, str, object]] = {
    "check_granularity": ("schema", "column", dd.Granularity.COLUMN),
    "multi_column_rules": ("schema", "per_rule", dd.MultiColumnRules.PER_RULE),
    "statistics": (True, "False", False),
    "max_failure_samples": (7, "0", 0),
    "row_sample": (7, "12", 12),
    "max_metadata_bytes": (7, "50000", 50_000),
    "engine": ("auto", "in-memory", "in-memory"),
    "quarantine_layout": ("columns", "list", "list"),
    "quarantine_io_manager_key": ("restricted", "bucket", "bucket"),
    "quarantine_events": (True, "False", False),
    "unstorable": ("refuse", "warn", "warn"),
    "max_error_share": (0.5, "0.01", 0.01),
}
"""For each setting an argument, a text for the environment, and what the text means."""

WRONG: dict[str, list[tuple[object, str]]] = {
    "check_granularity": [("rules", "RULE"), (1, "")],
    "multi_column_rules": [("column", "perrule")],
    "statistics": [("yes", "0"), (1, "")],
    "max_failure_samples": [(-1, "-1"), (True, "five"), (1.5, "1.5")],
    "row_sample": [("5", "٣")],
    "max_metadata_bytes": [(-1, "200 kB")],
    "redact": [("customer", ""), ([1], "customer,,email"), ([""], " , "), (1, ","), (b"a", ",a")],
    "engine": [("memory", "Streaming")],
    "quarantine_layout": [("rows", "LIST")],
    "quarantine_io_manager_key": [("no key", ""), (1, "a-b")],
    "quarantine_events": [("yes", "on")],
    "unstorable": [("ignore", "WARN")],
    "max_error_share": [(1.01, "1%"), (-0.1, "nan"), ("0.1", "2"), (True, "")],
    "temp_dir": [("", ""), ("/no/such/folder", "/no/such/folder"), (1, " ")],
}
"""For each setting, arguments and texts that are not allowed."""


def test_every_setting_is_tried_here() -> None:
    assert set(WRONG) == set(SETTINGS) == {*VALUES, "temp_dir", "redact"}


def test_defaults() -> None:
    assert Settings.resolve({}) == Settings(
        check_granularity=dd.Granularity.RULE,
        multi_column_rules=dd.MultiColumnRules.SCHEMA,
        statistics=True,
        max_failure_samples=5,
        row_sample=5,
        max_metadata_bytes=200_000,
        redact=frozenset(),
        temp_dir=None,
        engine=Engine.AUTO,
        quarantine_layout=QuarantineLayout.COLUMNS,
        max_error_share=1.0,
    )


@pytest.mark.parametrize("name", VALUES)
def test_the_argument_wins_over_the_environment_over_the_default(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    argument, text, meaning = VALUES[name]
    monkeypatch.setenv(f"DAGSTER_DATAFRAMELY_{name.upper()}", text)
    assert getattr(Settings.resolve({name: None}), name) == meaning
    assert getattr(Settings.resolve({name: argument}), name) == argument


def test_temp_dir_from_both_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_TEMP_DIR", str(tmp_path))
    assert Settings.resolve({}).temp_dir == tmp_path
    assert Settings.resolve({"temp_dir": str(tmp_path.parent)}).temp_dir == tmp_path.parent


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, pairs in WRONG.items() for value, _ in pairs]
)
def test_a_wrong_argument_is_refused_at_definition(name: str, value: Any) -> None:
    with pytest.raises(InvalidSettingError) as raised:
        dd.asset(OrdersSchema, **{name: value})
    error = raised.value
    assert (error.setting, error.value, error.source) == (name, value, "the argument")
    assert error.allowed in str(error)


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, pairs in WRONG.items() for _, text in pairs]
)
def test_a_wrong_variable_is_refused_at_definition(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"DAGSTER_DATAFRAMELY_{name.upper()}"
    monkeypatch.setenv(variable, text)
    with pytest.raises(InvalidSettingError) as raised:
        dd.asset(OrdersSchema)
    assert (raised.value.setting, raised.value.source) == (name, f"`{variable}`")


def test_quarantine_dir_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert quarantine_dir() is None
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR", "somewhere")
    assert str(quarantine_dir()) == "somewhere"
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR", " ")
    with pytest.raises(InvalidSettingError, match="the path of a directory"):
        quarantine_dir()
