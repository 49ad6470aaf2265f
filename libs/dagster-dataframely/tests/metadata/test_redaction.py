"""No value of a redacted column gets into an event, a log or an error; the stored rows keep them."""

import traceback
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import annotated, declare
from support.people import (
    EXITS,
    PII,
    People,
    categories,
    parquet,
    records,
    rows,
)
from support.storage import Store

import dagster_dataframely as dd

CANARIES = ["canary", "654321098", "654,321,098", "43219.8", "43,219.8", "1907-03", "1907, 3"]
"""What must be found nowhere: the beginnings of the values, as they might be printed."""


def lazily(frame: pl.DataFrame | None) -> Callable[[], pl.LazyFrame | None]:
    return annotated(pl.LazyFrame | None, None if frame is None else frame.lazy())


def found(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


def duckdb(folder: Path) -> Any:
    from dagster_duckdb_polars import DuckDBPolarsIOManager

    return DuckDBPolarsIOManager(database=str(folder / "people.duckdb"))


def pickled(folder: Path) -> Any:
    return dg.FilesystemIOManager(base_dir=str(folder))


def memory(folder: Path) -> Any:
    return dg.mem_io_manager


MANAGERS = [
    pytest.param(parquet, marks=pytest.mark.io_managers),
    pytest.param(duckdb, marks=pytest.mark.io_managers),
    pickled,
    memory,
]


@pytest.mark.parametrize("name", EXITS)
@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize("manager", MANAGERS)
def test_no_exit_shows_a_value_of_a_redacted_column(
    name: str,
    manager: Callable[[Path], Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    instance: dg.DagsterInstance,
    *,
    lazy: bool,
) -> None:
    frame, quarantine = EXITS[name]
    result = dg.materialize(
        [
            declare(
                People, lazily(frame) if lazy else frame, redact=["remark"], quarantine=quarantine
            )
        ],
        resources={"io_manager": manager(tmp_path)},
        instance=instance,
        raise_on_error=False,
    )
    assert result.success == (name in ("clean", "set aside", "skip"))
    events = [dg.serialize_value(entry) for entry in instance.all_logs(result.run_id)]
    assert [(text, found(text)) for text in events if found(text)] == []
    printed = capfd.readouterr()
    assert found(printed.out + printed.err) == []
    assert "RUN_SUCCESS" in printed.err if result.success else "RUN_FAILURE" in printed.err


@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
@pytest.mark.parametrize("name", EXITS)
def test_no_error_and_no_check_of_a_call_shows_a_value(
    name: str, granularity: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR", str(tmp_path))
    frame, quarantine = EXITS[name]
    people: Any = declare(
        People, frame, redact=["remark"], quarantine=quarantine, check_granularity=granularity
    )
    reports: list[str] = []
    try:
        for event in people(dg.build_asset_context()) if quarantine else people():
            metadata = dg.AssetMaterialization("any", metadata=event.metadata)
            reports.append(dg.serialize_value(metadata))
    except dd.errors.DagsterDataframelyError as raised:
        reports += [*traceback.format_exception(raised), repr(vars(raised))]
    assert any("Error" in report for report in reports) == (
        name in ("abort", "nothing survives", "drift")
    )
    assert found("".join(reports)) == []


def test_table_and_quarantine_keep_the_values() -> None:
    frame, _ = EXITS["set aside"]
    result = dd.testing.invoke(declare(People, frame, redact=["remark"], quarantine=True))
    assert result.table is not None
    assert result.quarantine is not None
    kept = pl.concat([result.table, result.quarantine.select(result.table.columns)])
    assert kept.sort("id", "name").equals(frame.sort("id", "name"))


def test_a_value_is_one_word_and_a_null_stays_null() -> None:
    frame = rows({"born": None, "remark": None}, {"id": 2, "name": "other", "visits": -1})
    result = dd.testing.invoke(declare(People, frame, redact=["remark"], quarantine=True))
    assert records(result.metadata["dataframely/valid_sample"]) == [
        {
            "id": 1,
            "name": "redacted",
            "phone": "redacted",
            "salary": "redacted",
            "born": None,
            "children": "redacted",
            "home": "redacted",
            "remark": None,
            "visits": 3,
        }
    ]
    (invalid,) = records(result.metadata["dataframely/invalid_sample"])
    assert (invalid["name"], invalid["visits"]) == ("redacted", -1)
    assert invalid["dy_rule__visits__min"] == "invalid"
    (failed,) = records(result.checks["dy_rule__visits__min"].metadata["dy_failed_sample"])
    assert (failed["id"], failed["name"], failed["born"]) == (2, "redacted", "redacted")


def test_duplicated_keys_are_counted_without_their_values() -> None:
    frame, _ = EXITS["abort"]
    checks = {c.check_name: c for c in dd.wiring.evaluate(People, frame, asset="people")}
    metadata = checks["dy_rule__primary_key"].metadata
    assert metadata["dy_duplicated_keys"].value == 2
    assert records(metadata["dy_duplicated_sample"]) == [
        {"id": 1, "name": "redacted", "dy_rows": 6},
        {"id": 1, "name": "redacted", "dy_rows": 2},
    ]


def test_statistics_of_a_redacted_column_are_two_counts() -> None:
    frame, _ = EXITS["clean"]
    metadata = dd.testing.invoke(declare(People, frame, redact=["remark"])).metadata
    statistics = {
        row.pop("column"): row
        for family in ("numeric", "temporal", "string")
        for row in records(metadata[f"dataframely/valid_stats/{family}"])
    }
    counts = {"count": 2, "nulls": 0}
    numeric = dict.fromkeys(["mean", "std", "min", "median", "max", "histogram"], "redacted")
    lengths = ["min_length", "mean_length", "max_length"]
    string = dict.fromkeys(["distinct", "empty", *lengths], "redacted")
    assert statistics["phone"] == statistics["salary"] == counts | numeric
    assert statistics["born"] == counts | dict.fromkeys(["min", "max", "span"], "redacted")
    assert statistics["name"] == statistics["remark"] == counts | string
    assert statistics["visits"]["max"] == 3


class Account(dy.Schema):
    """Its number is personal, and stored as text."""

    id = dy.Int64(primary_key=True)
    number = dy.Int64(metadata=PII)


class Accounts(dy.Collection):
    accounts: dy.LazyFrame[Account]

    @dy.filter()
    def known(self) -> pl.LazyFrame:
        return self.accounts.filter(pl.col("number") > 0)


def rules_of(asset: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    return dd.build_rule_checks(Account, asset=asset, cast=True)


def filters_of(asset: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    return dd.build_collection_checks(Accounts, members={"accounts": asset}, cast=True)


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("checks_of", [rules_of, filters_of])
@pytest.mark.parametrize("number", ["12", "canary"])
def test_a_value_that_is_not_cast_is_not_shown(
    store: Store,
    tmp_path: Path,
    manager: Callable[[Path], Any],
    checks_of: Callable[[dg.AssetsDefinition], dg.AssetChecksDefinition],
    number: str,
) -> None:
    @dg.asset
    def accounts() -> pl.DataFrame:
        return pl.DataFrame({"id": [1], "number": [number]})

    store.resources = {"io_manager": manager(tmp_path)}
    result = store.materialize(accounts, checks_of(accounts))
    assert result.success is (number == "12")
    events = [
        dg.serialize_value(entry)
        for entry in store.instance.all_logs(result.run_id)
        if entry.step_key != "accounts"  # The managers of dagster-polars record its rows.
    ]
    assert [(text, found(text)) for text in events if found(text)] == []
    if not result.success:
        message = "1 value would change, such as redacted"
        assert any(message in text for text in events)


class Named(dy.Schema):
    value = dy.String()


@pytest.mark.parametrize("hint", [dy.DataFrame[Named], dict[str, dy.LazyFrame[Named]], None])
@pytest.mark.parametrize("redact", ["argument", "variable"])
def test_an_input_is_redacted_as_its_asset_is(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, hint: Any, redact: str
) -> None:
    arguments: dict[str, Any] = {}
    if redact == "variable" or hint is None:
        monkeypatch.setenv("DAGSTER_DATAFRAMELY_REDACT", "value")
    else:
        arguments = {"redact": ["value"]}

    @dg.asset
    def raw() -> Any:
        frame = categories("canary")
        return {"a": frame.lazy()} if typing.get_origin(hint) is dict else frame

    def named(raw: Any) -> Any:
        return raw

    named.__annotations__["raw"] = hint or Any
    ins = {"raw": dg.AssetIn(dagster_type=dd.dagster_type(Named))} if hint is None else None
    asset = dd.asset(Named, ins=ins, **arguments)(named)
    result = dg.materialize(
        [raw, asset],
        instance=instance,
        resources={"io_manager": dg.mem_io_manager},
        raise_on_error=False,
    )
    assert not result.success
    events = [dg.serialize_value(entry) for entry in instance.all_logs(result.run_id)]
    assert [(text, found(text)) for text in events if found(text)] == []
