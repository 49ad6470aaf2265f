"""No value of a redacted column gets into an event, a log or an error; the stored rows keep them."""

import datetime as dt
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
from support.storage import Store

import dagster_dataframely as dd
from dagster_dataframely.errors import InvalidSettingError

PII = {"pii": True}


class People(dy.Schema):
    """Redacted columns of many dtypes, that fail rules, are keys, and stand beside ones that fail."""

    id = dy.Int64(primary_key=True)
    name = dy.String(primary_key=True, max_length=40, unique=True, metadata=PII)
    phone = dy.Int64(max=10**12, metadata=PII)
    salary = dy.Float64(min=0.0, metadata=PII)
    born = dy.Date(nullable=True, min=dt.date(1900, 1, 1), metadata=PII)
    children = dy.List(dy.String(max_length=40), nullable=True, metadata=PII)
    home = dy.Struct({"city": dy.String(metadata=PII)}, nullable=True)
    remark = dy.String(nullable=True, max_length=40, metadata=dd.severity("warn"))
    visits = dy.Int64(min=0)

    @dy.rule()
    def lives_somewhere(cls) -> pl.Expr:
        """A home has a city."""
        return cls.home.col.struct.field("city").str.len_chars() > 0

    @dd.rule(severity="warn")
    def not_everyone_is_rich(cls) -> pl.Expr:
        """The mean salary is below a million."""
        return cls.salary.col.mean() < 1e6


VALID: dict[str, Any] = {
    "id": 1,
    "name": "canary-name",
    "phone": 7_654_321_098,
    "salary": 43_219.875,
    "born": dt.date(1907, 3, 11),
    "children": ["canary-child"],
    "home": {"city": "canary-city"},
    "remark": "canary-remark",
    "visits": 3,
}
CANARIES = ["canary", "654321098", "654,321,098", "43219.8", "43,219.8", "1907-03", "1907, 3"]
"""What must be found nowhere: the beginnings of the values, as they might be printed."""


def rows(*differences: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        [{**VALID, **difference} for difference in differences],
        schema=People.create_empty().schema,
    )


ERRORS: list[dict[str, Any]] = [
    {"name": "canary-name" * 9},
    {"phone": 7_654_321_098_765},
    {"salary": -43_219.875},
    {"born": dt.date(1807, 3, 11)},
    {"children": ["canary-child" * 9]},
    {"home": {"city": ""}},
    {"visits": -1},
    {"name": "canary-twice"},
    {"name": "canary-twice"},
]
"""One for each rule of a redacted column, one for a rule of another, and a key that occurs twice."""

DRIFTED = rows({}).with_columns(
    name=pl.Series(["canary-name"], dtype=pl.Enum(["canary-name"])),
    home=pl.lit({"canary-field": 1}),
)
"""Dtypes that hold values: the categories of an Enum, the fields of a struct."""

EXITS: dict[str, tuple[Any, bool]] = {
    "clean": (rows({}, {"id": 2, "name": "canary-two", "remark": "canary-remark" * 9}), True),
    "set aside": (rows({"id": 0, "name": "canary-zero"}, *ERRORS), True),
    "abort": (rows({"id": 0, "name": "canary-zero"}, *ERRORS), False),
    "nothing survives": (rows({"visits": -1}, {"visits": -2}), True),
    "drift": (DRIFTED, True),
    "skip": (None, True),
}


def lazily(frame: pl.DataFrame | None) -> Callable[[], pl.LazyFrame | None]:
    return annotated(pl.LazyFrame | None, None if frame is None else frame.lazy())


def found(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


def parquet(folder: Path) -> Any:
    from dagster_polars import PolarsParquetIOManager

    return PolarsParquetIOManager(base_dir=str(folder))


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


def records(metadata: Any) -> list[dict[str, Any]]:
    return [dict(record.data) for record in metadata.records]


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
    numeric = dict.fromkeys(["mean", "std", "min", "max", "histogram"], "redacted")
    string = dict.fromkeys(["distinct", "min_length", "mean_length", "max_length"], "redacted")
    assert statistics["phone"] == statistics["salary"] == counts | numeric
    assert statistics["born"] == counts | {"min": "redacted", "max": "redacted"}
    assert statistics["name"] == statistics["remark"] == counts | string
    assert statistics["visits"]["max"] == 3


class Plain(dy.Schema):
    """Nothing is marked."""

    email = dy.String()
    phone = dy.String(metadata={"pii": False})


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


def recorded(manager: object, people: dg.AssetsDefinition) -> tuple[Any, Any]:
    """What a manager's metadata are in the two events they are stored in."""
    result = dg.materialize([people], resources={"io_manager": manager})
    (event,) = result.asset_materializations_for_node(people.node_def.name)
    handled: list[Any] = [
        event.event_specific_data
        for event in result.all_events
        if event.event_type_value == "HANDLED_OUTPUT"
    ]
    (of_rows,) = [data.metadata for data in handled if data.output_name == "result"]
    return event.metadata, of_rows


@pytest.mark.io_managers
def test_rows_that_a_manager_records_are_redacted_too(tmp_path: Path) -> None:
    for metadata in recorded(
        parquet(tmp_path), declare(People, EXITS["clean"][0], redact=["remark"])
    ):
        sample = records(metadata["table"].value)
        assert [(row["visits"], row["name"], row["born"]) for row in sample] == [
            (3, "redacted", "redacted")
        ] * 2
        statistics = {row["statistic"]: row for row in records(metadata["stats"].value)}
        assert statistics["max"]["visits"] == 3.0
        assert {row["name"] for row in statistics.values()} == {"redacted"}
        assert metadata["path"].value == str(tmp_path / "people.parquet")


@pytest.mark.io_managers
def test_settings_about_rows_are_the_managers_too(tmp_path: Path) -> None:
    frame = pl.DataFrame({"email": ["e"], "phone": ["p"]})
    settings: list[dict[str, Any]] = [{}, {"row_sample": 0}, {"statistics": False}]
    for number, setting in enumerate(settings):
        plain = dd.asset(Plain, name=f"plain_{number}", **setting)(lambda: frame)
        for metadata in recorded(parquet(tmp_path), plain):
            assert ("table" in metadata) == ("row_sample" not in setting)
            assert ("stats" in metadata) == ("statistics" not in setting)


class Chatty(dg.InMemoryIOManager):
    """Tells of the rows in a table of its own making."""

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        super().handle_output(context, obj)
        cells = [
            dg.TableRecord({"column": name, "first": str(obj[name][0])}) for name in obj.columns
        ]
        context.add_output_metadata(
            {"columns": dg.TableMetadataValue(cells, None), "rows": obj.height}
        )


@pytest.mark.parametrize("redact", [["email"], None])
def test_a_managers_table_without_the_redacted_columns_is_left_out(redact: Any) -> None:
    plain = dd.asset(Plain, name="plain", redact=redact)(
        lambda: pl.DataFrame({"email": ["canary"], "phone": ["p"]})
    )
    chatty: Any = Chatty
    for metadata in recorded(chatty(), plain):
        assert metadata["rows"].value == 1
        if redact:
            assert metadata["columns"].value == "Left out, since columns are redacted."
        else:
            assert records(metadata["columns"].value)[0] == {"column": "email", "first": "canary"}


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


class Anything(dy.Schema):
    """What the column holds, only a frame says."""

    value = dy.Any(metadata=typing.cast("Any", PII))


def categories(*values: str) -> pl.DataFrame:
    return pl.DataFrame({"value": pl.Series(values, dtype=pl.Enum(values))})


@pytest.mark.io_managers
def test_what_a_manager_says_of_a_redacted_columns_dtype_is_its_name(tmp_path: Path) -> None:
    anything = dd.asset(Anything, name="anything")(lambda: categories("canary"))
    for metadata in recorded(parquet(tmp_path), anything):
        (column,) = metadata["table"].schema.columns
        assert (column.name, column.type) == ("value", "Enum")


class Describing(dg.InMemoryIOManager):
    """Describes the columns in its own words."""

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        super().handle_output(context, obj)
        columns = [dg.TableColumn(name, str(dtype)) for name, dtype in obj.schema.items()]
        said = dg.TableSchema(columns)
        context.add_output_metadata({"raw": said, "wrapped": dg.MetadataValue.table_schema(said)})


class Open(dy.Schema):
    """The same, and not marked."""

    value = dy.Any()


@pytest.mark.parametrize(
    ("schema", "dtype"), [(Anything, "Enum"), (Open, "Enum(categories=['canary'])")]
)
def test_columns_that_a_manager_describes_are_redacted_too(
    schema: type[dy.Schema], dtype: str
) -> None:
    anything = dd.asset(schema, name="anything")(lambda: categories("canary"))
    describing: Any = Describing
    for metadata in recorded(describing(), anything):
        for key in ("raw", "wrapped"):
            (column,) = metadata[key].schema.columns
            assert (column.name, column.type) == ("value", dtype)


def test_the_dtypes_that_a_manager_describes_are_cut() -> None:
    codes = [f"code {number}" for number in range(20_000)]
    anything = dd.asset(Open, name="anything")(lambda: categories(*codes))
    describing: Any = Describing
    for metadata in recorded(describing(), anything):
        (column,) = metadata["raw"].schema.columns
        assert column.type.startswith("Enum(categories=['code 0', 'code 1'")
        assert len(column.type) == 200


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
