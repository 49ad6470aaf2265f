"""Quarantines of all kinds of code locations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.quarantined import DIRTY, Orders

import dagster_dataframely as dd
from dagster_dataframely._triage.tables import write_rows
from dagster_dataframely.errors import AssetReadError, InvalidArgumentError

Run = Callable[..., tuple[int, str, str]]
GRID = dg.MultiPartitionsDefinition(
    {"day": dg.StaticPartitionsDefinition(["mon"]), "shop": dg.StaticPartitionsDefinition(["a"])}
)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Kept(dg.IOManager):
    """Keeps what it is given in memory, and gives it back or something else."""

    def __init__(self, instead: object = None) -> None:
        self.kept: dict[dg.AssetKey, Any] = {}
        self.instead = instead

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        self.kept[context.asset_key] = obj

    def load_input(self, context: dg.InputContext) -> Any:
        if isinstance(self.instead, Exception):
            raise self.instead
        return self.instead or self.kept.get(context.asset_key)


def materialized(
    asset: dg.AssetsDefinition, manager: Kept, *others: Any, **arguments: Any
) -> dg.Definitions:
    resources = {"io_manager": manager}
    dg.materialize([asset], resources=resources, run_config=QUIET, **arguments)
    return located(asset, manager, *others)


def located(asset: dg.AssetsDefinition, manager: Kept, *others: Any) -> dg.Definitions:
    return dg.Definitions([asset, *others], resources={"io_manager": manager})


def test_a_partition_of_a_grid_is_loaded_by_its_key() -> None:
    orders = dd.asset(Orders, name="orders", quarantine=True, partitions_def=GRID)(lambda: DIRTY)
    keys = []

    class Noting(Kept):
        def load_input(self, context: dg.InputContext) -> Any:
            keys.append(context.partition_key)
            return super().load_input(context)

    defs = materialized(orders, Noting(), partition_key="mon|a")
    keys.clear()
    partitions = dd.read_quarantine(defs, "orders").collect()["dy_partition"]
    assert partitions.unique().to_list() == ["mon|a"]
    assert [type(key) for key in keys] == [dg.MultiPartitionKey]


def test_an_asset_wired_by_hand_has_the_quarantine_that_its_spec_describes() -> None:
    @dg.asset(check_specs=dd.wiring.check_specs(Orders, asset="orders"), output_required=False)
    def orders(context: dg.AssetExecutionContext) -> Any:
        writer = dd.wiring.delegating_writer(context)
        yield from dd.wiring.process(Orders, DIRTY, asset="orders", quarantine_writer=writer)

    spec = dd.build_quarantine_spec(Orders, "orders")
    defs = materialized(orders, Kept(), spec)
    # A rule that warns is shown beside the one that set the row aside.
    rules = dd.read_quarantine(defs, orders).collect()["dy_rule"]
    assert rules.to_list() == ["id|min", "note|max_length"]


def test_nothing_stored_is_no_row_and_anything_else_an_error() -> None:
    orders = dd.asset(Orders, name="orders", quarantine=True)(lambda: DIRTY[:1])
    defs = materialized(orders, Kept())
    assert dd.read_quarantine(defs, "orders").collect().is_empty()
    with pytest.raises(AssetReadError):
        dd.read_quarantine(located(orders, Kept("text")), "orders")
    with pytest.raises(PermissionError):
        dd.read_quarantine(located(orders, Kept(PermissionError())), "orders")


def test_partitions_of_one_quarantine_are_unpivoted_together() -> None:
    error_rows = dd.wiring.quarantine_frame(Orders, DIRTY)
    parts: dict[str, pl.DataFrame | pl.LazyFrame] = {"mon": error_rows, "tue": error_rows.lazy()}
    found = dd.unpivot_quarantine(Orders, parts).select("id", "dy_partition", "dy_rule").collect()
    # A rule that warns is shown beside the one that set the row aside.
    rules = ["id|min", "note|max_length"]
    assert found.rows() == [(-2, day, rule) for day in parts for rule in rules]
    assert dd.unpivot_quarantine(Orders, {}).collect().is_empty()


def test_a_location_may_be_a_module_of_assets(
    quarantine: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_assets.py").write_text(
        "import dagster as dg\n\n\n@dg.asset\ndef plain() -> int:\n    return 1\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    nothing = "No asset of the code location has a quarantine.\n"
    assert quarantine("list", "-m", "only_assets")[:2] == (0, nothing)
    code, _, told = quarantine("show", "plain", "-m", "only_assets")
    assert code == 1
    assert told == (
        "UnknownQuarantineError: There is no quarantine `plain` in the code location.\n"
    )


@pytest.mark.parametrize("layout", ["columns", "list"])
def test_what_could_not_be_parsed_is_read_with_its_rule(layout: Any) -> None:
    text = pl.DataFrame({"id": ["1", "x", "-1"], "note": ["a", "b", "long"]})

    @dd.asset(dd_orders(), name="orders", quarantine=True, quarantine_layout=layout)
    def orders() -> pl.DataFrame:
        return dd.parse(dd_orders(), text)

    found = dd.read_quarantine(materialized(orders, Kept()), "orders").collect()
    assert found.select("id", "dy_rule").rows() == [
        (None, "id|dtype"),
        (-1, "id|min"),
        (-1, "note|max_length"),
    ]
    assert found["dy_original"].to_list() == ['{"id":"x"}', None, None]


def dd_orders() -> type[dy.Schema]:
    class Parsed(dy.Schema):
        id = dy.Int64(nullable=True, min=0)
        note = dy.String(nullable=True, max_length=3, metadata=dd.severity("warn"))

    return Parsed


def test_csv_holds_no_lists(quarantine: Run, tmp_path: Path) -> None:
    file = tmp_path / "lists.py"
    file.write_text(
        f"""
import dagster as dg
import dataframely as dy
import polars as pl
import dagster_dataframely as dd


class Tags(dy.Schema):
    id = dy.Int64(min=0)
    tags = dy.List(dy.String())


@dd.asset(Tags, quarantine=True)
def tagged() -> pl.DataFrame:
    return pl.DataFrame({{"id": [1, -1], "tags": [["a"], ["b"]]}})


manager = dg.FilesystemIOManager(base_dir={str(tmp_path)!r})
defs = dg.Definitions([tagged], resources={{"io_manager": manager}})
dg.materialize([tagged], resources={{"io_manager": manager}}, run_config={QUIET!r})
"""
    )
    code, _, told = quarantine("export", "tagged", "-f", file, "--to", tmp_path / "rows.csv")
    assert code == 1
    assert "CSV cannot hold `tags`; use `.parquet`" in told


def test_a_wide_row_is_shown_with_a_line_for_each_value() -> None:
    rows = [("a" * 30, "1"), ("b", "2")]
    assert [*write_rows(["name", "n"], rows, 20)] == [
        f"name  {'a' * 19}…", "n     1", "", "name  b", "n     2",
    ]  # fmt: skip


def test_a_quarantine_spec_takes_over_who_and_what_its_table_is_for() -> None:
    orders = dd.asset(
        Orders,
        name="orders",
        quarantine=True,
        owners=["team:sales"],
        tags={"domain": "sales"},
        group_name="silver",
        kinds={"polars"},
        redact=["note"],
    )(lambda: DIRTY)
    spec = dd.build_quarantine_spec(Orders, orders)
    assert (spec.owners, spec.group_name, spec.kinds) == (["team:sales"], "silver", {"polars"})
    assert spec.tags["domain"] == "sales"
    columns = spec.metadata["dagster/column_schema"].columns
    assert [column.name for column in columns if "dy_redacted" in column.tags] == ["note"]


def test_an_asset_without_a_quarantine_gets_no_spec() -> None:
    orders = dd.asset(Orders, name="orders")(lambda: DIRTY)
    with pytest.raises(InvalidArgumentError, match="`orders` sets no error row aside"):
        dd.build_quarantine_spec(Orders, orders)

    class Shop(dy.Collection):
        first: dy.LazyFrame[Orders]
        second: dy.LazyFrame[Orders]

    @dd.collection_asset(Shop)
    def shop() -> dict[str, pl.DataFrame]:
        return {"first": DIRTY, "second": DIRTY}

    with pytest.raises(InvalidArgumentError, match="`first`, `second` sets no error row aside"):
        dd.build_quarantine_specs(Shop, shop)

    @dg.asset
    def plain() -> pl.DataFrame:
        return DIRTY

    assert dd.build_quarantine_spec(Orders, plain).key == dg.AssetKey("plain_quarantine")
