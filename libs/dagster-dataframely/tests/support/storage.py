"""A small IO manager, and an instance with it to run assets and checks on."""

import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
from support.execution import Execution, plain


class FileIOManager(dg.IOManager):
    """One Parquet file for each asset key and partition.

    Like the managers of dagster-polars it reports a column schema of its own, without constraints, and
    loads what the input's type asks for.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, key: dg.AssetKey, partition_key: str | None = None) -> Path:
        parts = [*key.path, *([] if partition_key is None else partition_key.split("|"))]
        return self.root.joinpath(*parts[:-1], f"{parts[-1]}.parquet")

    def read(
        self, key: dg.AssetKey | Sequence[str], partition_key: str | None = None
    ) -> pl.DataFrame | None:
        path = self.path(dg.AssetKey.from_coercible(key), partition_key)
        return pl.read_parquet(path) if path.exists() else None

    @property
    def files(self) -> list[str]:
        """Every stored file, relative to the root."""
        return sorted(
            path.relative_to(self.root).as_posix()
            for path in self.root.rglob("*")
            if path.is_file()
        )

    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame | pl.LazyFrame) -> None:
        partition_key = context.asset_partition_key if context.has_asset_partitions else None
        path = self.path(context.asset_key, partition_key)
        path.parent.mkdir(parents=True, exist_ok=True)
        frame = obj.lazy().collect()
        frame.write_parquet(path)
        columns = [dg.TableColumn(name, str(dtype)) for name, dtype in frame.schema.items()]
        context.add_output_metadata(
            {"path": dg.MetadataValue.path(path), "dagster/column_schema": dg.TableSchema(columns)}
        )

    def load_input(self, context: dg.InputContext) -> Any:
        wanted = context.dagster_type.typing_type
        if not context.has_asset_partitions:
            return self._load(self.path(context.asset_key), wanted)
        if typing.get_origin(wanted) is not dict:
            return self._load(self.path(context.asset_key, context.asset_partition_key), wanted)
        paths = {key: self.path(context.asset_key, key) for key in context.asset_partition_keys}
        frame_type = typing.get_args(wanted)[1]
        return {key: self._load(path, frame_type) for key, path in paths.items() if path.exists()}

    @staticmethod
    def _load(path: Path, wanted: object) -> pl.DataFrame | pl.LazyFrame:
        lazy = pl.scan_parquet(path)
        return lazy if wanted is pl.LazyFrame else lazy.collect()


class Store:
    """An instance and a storage, what is done with them, and what the checks say."""

    def __init__(self, instance: dg.DagsterInstance, files: FileIOManager) -> None:
        self.instance = instance
        self.files = files
        self.resources: dict[str, Any] = {"io_manager": files}

    def materialize(self, *assets: Any, **arguments: Any) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            assets,
            instance=self.instance,
            resources=self.resources,
            raise_on_error=False,
            **arguments,
        )

    def check(
        self, checks: dg.AssetChecksDefinition, *assets: Any, only: str | None = None, **tags: str
    ) -> dg.ExecuteInProcessResult:
        """Run checks, or those of one name, in a job without the assets."""
        keys = [key for key in checks.check_keys if only in (None, key.name)]
        defs = dg.Definitions(
            assets=assets,
            asset_checks=[checks],
            jobs=[dg.define_asset_job("checks", dg.AssetSelection.checks(*keys))],
            resources=self.resources,
        )
        return defs.resolve_job_def("checks").execute_in_process(
            instance=self.instance,
            raise_on_error=False,
            tags={f"dagster/{name}": value for name, value in tags.items()},
        )

    def load_eagerly(self) -> None:
        """Let the IO manager give frames in memory, whatever it is asked for."""
        load = self.files.load_input
        self.files.load_input = lambda context: load(context).collect()  # type: ignore[method-assign]

    def statuses(self, asset: str, check: str) -> dict[str | None, str]:
        """The latest status of a check by partition, one that was only planned included."""
        key = dg.AssetCheckKey(dg.AssetKey(asset), check)
        return {
            info.partition_key: info.latest_execution_status.value
            for info in self.instance.event_log_storage.get_asset_check_partition_info([key])
        }

    @staticmethod
    def found(
        result: dg.ExecuteInProcessResult, partition: str | None = None, asset: str | None = None
    ) -> dict[str, tuple[bool, str, dict[str, Any]]]:
        """What each check says of a partition: whether it passed, its severity and its metadata."""
        return {
            evaluation.check_name: (
                evaluation.passed,
                evaluation.severity.name,
                plain(evaluation.metadata),
            )
            for evaluation in result.get_asset_check_evaluations()
            if evaluation.partition == partition
            and asset in (None, evaluation.asset_key.to_user_string())
        }

    @staticmethod
    def failures(
        result: dg.ExecuteInProcessResult, partition: str | None = None, asset: str | None = None
    ) -> dict[str, int]:
        """How many rows fail each check that did not pass."""
        return {
            name: metadata["dy_failed_count"]
            for name, (passed, _, metadata) in Store.found(result, partition, asset).items()
            if not passed
        }

    @staticmethod
    def error_of(result: dg.ExecuteInProcessResult) -> tuple[str | None, str]:
        """The class and the message of what failed the run."""
        (event,) = result.get_step_failure_events()
        error = event.step_failure_data.error
        assert error is not None
        raised = error.cause or error
        return raised.cls_name, raised.message


def left_by_run(
    result: dg.ExecuteInProcessResult,
    key: dg.AssetKey,
    files: FileIOManager,
    partition_key: str | None = None,
) -> Execution:
    """What a run left of one of its assets."""
    left = Execution(success=result.success, events=list(result.all_events))
    if not result.success:
        left.error, left.message = Store.error_of(result)
    for evaluation in result.get_asset_check_evaluations():
        if evaluation.asset_key == key:
            left.checks[evaluation.check_name] = (evaluation.passed, evaluation.severity.name)
            left.check_metadata[evaluation.check_name] = plain(evaluation.metadata)
    for event in result.get_asset_materialization_events():
        if event.asset_key == key:
            left.metadata = plain(event.materialization.metadata)
    left.table = files.read(key, partition_key)
    aside = [*key.path[:-1], f"{key.path[-1]}_quarantine"]
    left.quarantine = files.read(aside, partition_key)
    return left
