"""Which columns are redacted: marks, environment and argument."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.people import (
    PII,
    Plain,
    records,
)

import dagster_dataframely as dd
from dagster_dataframely.errors import InvalidSettingError


def shown(**settings: Any) -> list[str]:
    """The columns whose values a sample shows."""
    frame = pl.DataFrame({"email": ["e"], "phone": ["p"]})
    (event, *_) = dd.wiring.process(Plain, frame, asset="plain", **settings)
    assert isinstance(event, dg.MaterializeResult)
    (row,) = records((event.metadata or {})["dataframely/valid_sample"])
    return [name for name, value in row.items() if value != "redacted"]


def test_environment_and_argument_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown() == ["email", "phone"]
    assert shown(redact={"email"}) == ["phone"]
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_REDACT", "phone, address")
    assert shown() == ["email"]
    assert shown(redact=("email",)) == []
    assert shown(redact=[]) == ["email"]


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: dd.asset(Plain, redact=["mail", "email"]),
        lambda: dd.wiring.check_specs(Plain, asset="plain", redact=["email", "mail"]),
    ],
    ids=["decorator", "wiring"],
)
def test_an_argument_that_names_no_column_is_refused(attempt: Callable[[], Any]) -> None:
    with pytest.raises(InvalidSettingError) as raised:
        attempt()
    assert str(raised.value) == (
        "Setting `redact` is ['mail'], from the argument. Allowed: columns of Plain: email, phone."
    )


@pytest.mark.parametrize(
    ("column", "redacted"),
    [
        (dy.String(metadata={"pii": "name"}), True),
        (dy.List(dy.String(metadata=PII)), True),
        (dy.Array(dy.Struct({"a": dy.Int64(), "b": dy.List(dy.Int64(metadata=PII))}), 1), True),
        (dy.Struct({"a": dy.Int64()}), False),
        (dy.String(metadata={"pii": None}), False),
        (dy.String(), False),
    ],
)
def test_a_mark_inside_a_column_is_one_of_the_column(column: dy.Column, *, redacted: bool) -> None:
    from dagster_dataframely._schema.read import read_schema

    schema = type("Schema", (dy.Schema,), {"column": column})
    assert (read_schema(schema).redacted == {"column"}) == redacted
