"""IO managers that do other things with an object than to write it out."""

import pickle
from typing import Any

import dagster as dg
from upath import UPath


class Pickling(dg.UPathIOManager):
    """Pickles what it gets to a bucket."""

    extension = ".pickle"

    def dump_to_path(self, context: dg.OutputContext, obj: Any, path: UPath) -> None:
        with path.open("wb") as file:
            file.write(pickle.dumps(obj))

    def load_from_path(self, context: dg.InputContext, path: UPath) -> Any:
        with path.open("rb") as file:
            return pickle.loads(file.read())


class Keeping(dg.IOManager):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, ...], Any] = {}

    @staticmethod
    def address(context: dg.OutputContext | dg.InputContext) -> tuple[str, ...]:
        partition = (context.partition_key,) if context.has_asset_partitions else ()
        return (*context.asset_key.path, *partition)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        self.kept[self.address(context)] = obj

    def load_input(self, context: dg.InputContext) -> Any:
        return self.kept[self.address(context)]


class Remembering(Keeping):
    """Passes on what it gets to another manager, and remembers it."""

    def __init__(self, inner: dg.IOManager) -> None:
        super().__init__()
        self.inner = inner

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        self.inner.handle_output(context, obj)
        super().handle_output(context, obj)
