"""The code location loads and holds what it should."""

import dagster as dg

from warehouse.definitions import defs
from warehouse.job import EXPECTED, planned_runs


def test_definitions_are_loadable() -> None:
    dg.Definitions.validate_loadable(defs())


def test_every_table_is_pinned_and_both_quarantines_are_in_the_graph() -> None:
    graph = defs().resolve_asset_graph()
    materializable = {key.to_user_string() for key in graph.materializable_asset_keys}
    described = {key.to_user_string() for key in graph.get_all_asset_keys()} - materializable
    assert materializable == set(EXPECTED)
    assert described == {"flights_quarantine", "weather_quarantine"}


def test_flights_have_a_run_for_each_month_and_origin() -> None:
    cells = [cell for asset, cell in planned_runs() if asset == "flights"]
    months = [f"2013-{month:02}" for month in range(1, 13)] + ["2014-01", "2014-02"]
    assert cells == [f"{month}|{origin}" for month in months for origin in ("EWR", "JFK", "LGA")]
