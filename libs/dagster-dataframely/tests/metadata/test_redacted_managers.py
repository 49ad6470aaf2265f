"""What an IO manager records of redacted columns."""

import typing
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.people import (
    EXITS,
    PII,
    People,
    Plain,
    categories,
    parquet,
    records,
)

import dagster_dataframely as dd


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


class Anything(dy.Schema):
    """What the column holds, only a frame says."""

    value = dy.Any(metadata=typing.cast("Any", PII))


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
