"""Find the quarantines of a code location, and read them through their tables' IO managers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

import dagster as dg
import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._io_managers.stored import is_not_there
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._quarantine.read import concat, list_failed_rules, unpivot
from dagster_dataframely._quarantine.spec import quarantine_beside
from dagster_dataframely._schema.declaration import read_declarations
from dagster_dataframely._settings import QuarantineLayout
from dagster_dataframely._text import type_name
from dagster_dataframely._upstream.locations import QuarantineLoader, find_instance
from dagster_dataframely._upstream.polars import is_pyarrow_dataset
from dagster_dataframely.errors import AssetReadError, InvalidArgumentError, UnknownQuarantineError


@dataclass(frozen=True)
class Quarantine:
    """The error rows of one table of a code location."""

    spec: dg.AssetSpec
    definition: dg.AssetsDefinition
    """Has the resources that the error rows are loaded with."""
    loader: QuarantineLoader
    rules: Mapping[str, str]
    """The names of rules by their columns; of an asset that is wired by hand, those its spec has."""

    @property
    def name(self) -> str:
        """The key as a user writes it."""
        return self.spec.key.to_user_string()

    @cached_property
    def columns(self) -> Sequence[dg.TableColumn]:
        """What the spec says of the columns."""
        columns: Sequence[dg.TableColumn] = self.spec.metadata[_names.COLUMN_SCHEMA].columns
        return columns

    @property
    def redacted(self) -> frozenset[str]:
        """The columns whose values must not be shown; what `dd.parse` kept may be of any of them."""
        found = {c.name for c in self.columns if _names.REDACTED in c.tags}
        return frozenset(found | {_names.ORIGINAL} if found else found)

    @property
    def partition_keys(self) -> Sequence[str | None]:
        """The keys of all partitions; `None` stands for a table without any."""
        partitions_def = self.spec.partitions_def
        if partitions_def is None:
            return [None]
        with dg.partition_loading_context(dynamic_partitions_store=self.loader.instance):
            keys: Sequence[str] = partitions_def.get_partition_keys()
        return keys

    def frames(
        self,
        partition_keys: Sequence[str | None] | None = None,
        progress: Callable[[str], None] = lambda _line: None,
    ) -> Iterator[tuple[str | None, pl.LazyFrame]]:
        """What is stored of these partitions, or of all, as `list_failed_rules` gives it."""
        keys = self.partition_keys if partition_keys is None else partition_keys
        if unknown := [key for key in keys if key not in self.partition_keys]:
            reason = f"`{unknown[0]}` is not a partition of `{self.name}`."
            raise InvalidArgumentError("partition_keys", reason)
        for number, key in enumerate(keys, start=1):
            if key is not None:
                progress(f"{self.name}: {number:,} of {len(keys):,} partitions")
            frame = self.load(key)
            if frame is not None:
                yield key, list_failed_rules(frame, self.rules, None if key is None else str(key))

    def rows(self, partition_keys: Sequence[str | None] | None = None) -> pl.LazyFrame:
        """What is stored of these partitions, or of all, as one table."""
        if frames := [frame for _, frame in self.frames(partition_keys)]:
            return concat(frames)
        columns = [c.name for c in self.columns if not c.name.startswith(_names.COLUMN_PREFIX)]
        label = None if self.spec.partitions_def is None else ""
        empty = pl.LazyFrame(schema=dict.fromkeys(columns, pl.Null))
        return list_failed_rules(empty, {}, label)

    def load(self, partition_key: str | None) -> pl.LazyFrame | None:
        """What is stored, or `None` where nothing is."""
        manager, load = self.loader.prepare(self.spec, self.definition, partition_key)
        try:
            frame = load()
            if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
                rows = frame.lazy()
                rows.collect_schema()  # A plan finds out here that its file is not there.
                return rows.collect().lazy() if is_pyarrow_dataset(rows) else rows
        except Exception as error:
            if is_not_there(manager, error):
                return None
            raise
        if frame is None:
            return None
        raise AssetReadError(self.name, type_name(frame))


def find_quarantines(
    location: dg.RepositoryDefinition, loader: QuarantineLoader
) -> dict[dg.AssetKey, Quarantine]:
    """The quarantines of a code location's tables, by their keys.

    Those of `dd.asset` and `dd.collection_asset`, whether the graph shows them or not; of assets that
    are wired by hand, those that have a spec.
    """
    by_key = location.assets_defs_by_key
    found = {}
    for definition in dict.fromkeys(by_key.values()):
        for spec in definition.specs:
            if (table := spec.metadata.get(_names.QUARANTINE_OF)) is not None:
                owner = by_key.get(getattr(table, "asset_key", table), definition)
                columns = spec.metadata[_names.COLUMN_SCHEMA].columns
                rules = {c.name: c.tags[_names.RULE] for c in columns if _names.RULE in c.tags}
                found[spec.key] = Quarantine(spec, owner, loader, rules)
        declared = read_declarations(definition)
        if declared is not None and declared.has_quarantine:
            for declaration in declared.declarations.values():
                spec = quarantine_beside(
                    declaration.rules,
                    definition,
                    declaration.asset_key,
                    QuarantineLayout.COLUMNS,
                )
                rules = {rule.check_name: rule.name for rule in declaration.rules.rules}
                found[spec.key] = Quarantine(spec, definition, loader, rules)
    return found


def choose_quarantine(
    quarantines: dict[dg.AssetKey, Quarantine], asset_key: dg.AssetKey
) -> Quarantine:
    """The quarantine under a key, or that of the table under it.

    Raises:
        UnknownQuarantineError: There is none.
    """
    for key in (_names.quarantine_key(asset_key), asset_key):
        if key in quarantines:
            return quarantines[key]
    known = sorted(quarantine.name for quarantine in quarantines.values())
    raise UnknownQuarantineError(asset_key.to_user_string(), known)


def read_quarantine(
    definitions: dg.Definitions,
    asset: CoercibleToAssetKey | dg.AssetsDefinition,
    *,
    partition_keys: Sequence[str] | None = None,
    instance: dg.DagsterInstance | None = None,
) -> pl.LazyFrame:
    """Read a table's error rows, one row for each rule that one of them fails, outside a run.

    They are read through the IO manager that stores them, lazily where it can, and with the values of
    redacted columns. An asset that takes the quarantine as an input gets the same rows from
    `dd.unpivot_quarantine`.

    Args:
        definitions: The code location, with the resources that the assets are bound to.
        asset: The table or its quarantine: a key or a definition.
        partition_keys: The partitions to read. `None` means all that have error rows.
        instance: Where dynamic partitions are. `None` means that of `DAGSTER_HOME`, else an empty one.

    Returns:
        As `dd.unpivot_quarantine`: the columns of the table, `dy_partition` of a partitioned one,
        `dy_rule`, `dy_run_id` and `dy_written_at`.

    Raises:
        UnknownQuarantineError: The asset sets no error rows aside, or is not in the code location.
        AssetReadError: The IO manager gives something other than a Polars frame.

    Example:
        ```python
        import tempfile

        import dagster as dg

        import dagster_dataframely as dd
        from dagster_dataframely.data import OrdersSchema, invalid_orders


        @dd.asset(OrdersSchema, quarantine=True)
        def orders():
            return invalid_orders()


        with tempfile.TemporaryDirectory() as directory:
            resources = {"io_manager": dg.FilesystemIOManager(base_dir=directory)}
            dg.materialize([orders], resources=resources)
            failed = dd.read_quarantine(dg.Definitions([orders], resources=resources), "orders")
            print(failed.select("order_id", "dy_rule").head(2).collect().rows())
            #> [(3, 'customer|nullability'), (4, 'customer|min_length')]
        ```
    """
    key = asset.key if isinstance(asset, dg.AssetsDefinition) else asset
    with ExitStack() as stack:
        loader = QuarantineLoader(instance or stack.enter_context(find_instance()))
        stack.callback(loader.close)
        quarantines = find_quarantines(definitions.get_repository_def(), loader)
        quarantine = choose_quarantine(quarantines, dg.AssetKey.from_coercible(key))
        return unpivot(quarantine.rows(partition_keys))
