import tempfile
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from dagster_dataframely.data import OrdersSchema, invalid_orders


class IpcIOManager(dg.ConfigurableIOManager):
    """Stores frames as Arrow IPC files."""

    replaces_tables: ClassVar[bool] = True
    folder: str

    def _path(self, context: dg.InputContext | dg.OutputContext) -> Path:
        return Path(self.folder, *context.get_asset_identifier()).with_suffix(".arrow")

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        path = self._path(context)
        path.parent.mkdir(parents=True, exist_ok=True)
        obj.write_ipc(path)

    def load_input(self, context: dg.InputContext) -> Any:
        lazy = context.dagster_type.typing_type is pl.LazyFrame
        return (pl.scan_ipc if lazy else pl.read_ipc)(self._path(context))


@dd.asset(OrdersSchema, key_prefix="shop", quarantine=True)
def orders() -> pl.DataFrame:
    return invalid_orders()


with tempfile.TemporaryDirectory() as folder:
    dg.materialize([orders], resources={"io_manager": IpcIOManager(folder=folder)})
    print(sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.arrow")))
#> ['shop/orders.arrow', 'shop/orders_quarantine.arrow']
