"""`python -m dagster_dataframely infer` finds in the drops what the schemas say of their columns."""

from typing import Any

import dataframely as dy
import pytest

from dagster_dataframely.__main__ import main
from warehouse import schemas
from warehouse.storage import PROJECT


@pytest.mark.parametrize(
    ("drop", "schema"),
    [
        ("airlines", schemas.Airlines),
        ("airports", schemas.Airports),
        ("planes", schemas.Planes),
        ("weather", schemas.Weather),
        ("flights/2013-01/JFK", schemas.Flights),
    ],
)
def test_a_schema_has_the_columns_of_its_drop_and_allows_its_nulls(
    drop: str, schema: type[dy.Schema], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["infer", str(PROJECT / "data/raw" / f"{drop}.csv.gz"), "--name", "Found"]) == 0
    names: dict[str, Any] = {}
    exec(capsys.readouterr().out, names)
    found, declared = names["Found"].columns(), schema.columns()
    assert list(found) == list(declared)
    assert [name for name in found if found[name].nullable and not declared[name].nullable] == []
