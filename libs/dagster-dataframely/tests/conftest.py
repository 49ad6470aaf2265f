"""What real runs and direct invocations share: a small IO manager, and one way to look at either."""

import asyncio
import gc
import itertools
import typing
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import dagster as dg
import polars as pl
import pytest
from hypothesis import settings
from polars.testing import assert_frame_equal
from strategies import TALLY

# The random tests: how many examples each of them tries, and what came up in them.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--examples",
        type=int,
        metavar="N",
        default=200,
        help="try the same N examples each time in each random test (200)",
    )
    parser.addoption(
        "--fuzz-examples",
        type=int,
        metavar="N",
        help="try N examples, other ones each time, in each random test",
    )


def pytest_configure(config: pytest.Config) -> None:
    other: int | None = config.getoption("--fuzz-examples")
    # The same ones each time where nobody asked for others: what fails is then what was changed.
    same = config.getoption("--examples")
    settings.register_profile("suite", max_examples=same, derandomize=True, deadline=None)
    settings.register_profile("fuzz", max_examples=other or 1, deadline=None)
    settings.load_profile("fuzz" if other else "suite")


# Dagster leaves the connections of its instances in memory to the garbage collector, which may come in
# the middle of a transaction of another one, and then SQLite cannot commit (1.12, seen once): it runs
# between tests only.


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # What is imported stays.
    gc.disable()


def pytest_runtest_logfinish() -> None:
    if next(FINISHED) % 20 == 0:
        gc.collect()


FINISHED = itertools.count()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # In a worker of pytest-xdist.
        session.config.workeroutput["tally"] = dict(TALLY)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    TALLY.update(getattr(node, "workeroutput", {}).get("tally", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY:
        terminalreporter.section("random examples")
        for what, count in TALLY.items():
            terminalreporter.line(f"{count:>9,} {what}")


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


@dataclass
class Outcome:
    """What one execution of one asset left behind, in a run or in a direct invocation."""

    success: bool = True
    error: str | None = None
    """The class name of what was raised."""
    message: str = ""
    checks: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """Whether each reported check passed, and its severity."""
    check_metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None
    """The values of the materialization's metadata; `None` where nothing was materialized."""
    table: pl.DataFrame | None = None
    quarantine: pl.DataFrame | None = None
    events: list[dg.DagsterEvent] = field(default_factory=list)
    """Everything the run logged; empty for a direct invocation."""

    @property
    def failed(self) -> dict[str, str]:
        return {name: severity for name, (passed, severity) in self.checks.items() if not passed}

    def assert_stored(self, *, table: pl.DataFrame | None, quarantine: pl.DataFrame | None) -> None:
        for found, expected in ((self.table, table), (self.quarantine, quarantine)):
            if found is None or expected is None:
                assert found is expected
            else:
                assert_frame_equal(found, expected)


class Execute(Protocol):
    """Executes one asset without inputs."""

    def __call__(
        self, asset: dg.AssetsDefinition, /, *, partition_key: str | None = None
    ) -> Outcome: ...


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


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The values of metadata, whether Dagster has wrapped them or not."""
    wrapped = dg.AssetMaterialization("any", metadata=metadata).metadata
    return {name: value.value for name, value in wrapped.items()}


@pytest.fixture
def files(tmp_path: Path) -> FileIOManager:
    return FileIOManager(tmp_path / "storage")


@pytest.fixture(scope="session")
def one_instance() -> Iterator[dg.DagsterInstance]:
    """An instance that nobody wipes; for direct invocations, which leave nothing in it."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def instance(one_instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """An empty instance; there is one for all tests, since to wipe it takes less than to build it."""
    yield one_instance
    one_instance.wipe()


@pytest.fixture
def store(instance: dg.DagsterInstance, files: FileIOManager) -> Store:
    return Store(instance, files)


@pytest.fixture
def run(files: FileIOManager, instance: dg.DagsterInstance) -> Execute:
    """Execute an asset in a real run, on one storage and one instance for the whole test."""

    def execute(asset: dg.AssetsDefinition, /, *, partition_key: str | None = None) -> Outcome:
        result = dg.materialize(
            [asset],
            instance=instance,
            resources={"io_manager": files},
            partition_key=partition_key,
            raise_on_error=False,
        )
        outcome = Outcome(success=result.success, events=list(result.all_events))
        for event in outcome.events:
            if event.is_step_failure and (error := event.step_failure_data.error) is not None:
                raised = error.cause or error
                outcome.error, outcome.message = raised.cls_name, raised.message
        for evaluation in result.get_asset_check_evaluations():
            outcome.checks[evaluation.check_name] = (evaluation.passed, evaluation.severity.name)
            outcome.check_metadata[evaluation.check_name] = plain(evaluation.metadata)
        for materialization in result.asset_materializations_for_node(asset.node_def.name):
            outcome.metadata = plain(materialization.metadata)
        outcome.table = files.read(asset.key, partition_key)
        quarantine_key = [*asset.key.path[:-1], f"{asset.key.path[-1]}_quarantine"]
        outcome.quarantine = files.read(quarantine_key, partition_key)
        return outcome

    return execute


@pytest.fixture
def generator(files: FileIOManager) -> dg.IOManager:
    """Yields what it did, and logs an event of its own for every key it writes."""

    class GeneratorIOManager(type(files)):  # type: ignore[misc]
        def handle_output(self, context: dg.OutputContext, obj: Any) -> Iterator[dict[str, Any]]:
            super().handle_output(context, obj)
            context.log_event(dg.AssetObservation(context.asset_key))
            yield {"size": dg.MetadataValue.int(obj.height)}

    manager: dg.IOManager = GeneratorIOManager(files.root)
    return manager


@pytest.fixture
def parquet(tmp_path: Path) -> object:
    from dagster_polars import PolarsParquetIOManager

    return PolarsParquetIOManager(base_dir=str(tmp_path / "storage"))


@pytest.fixture
def duckdb_file(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


@pytest.fixture
def duckdb(duckdb_file: Path) -> object:
    from dagster_duckdb_polars import DuckDBPolarsIOManager

    return DuckDBPolarsIOManager(database=str(duckdb_file))


@pytest.fixture(
    params=[
        "files",
        "generator",
        pytest.param("parquet", marks=pytest.mark.io_managers),
        pytest.param("duckdb", marks=pytest.mark.io_managers),
    ]
)
def manager(request: pytest.FixtureRequest) -> object:
    """Each IO manager in turn."""
    found: object = request.getfixturevalue(request.param)
    return found


Materialize = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def materialize(instance: dg.DagsterInstance) -> Materialize:
    """Run one asset with a manager under its default key."""

    def materialize(
        asset: dg.AssetsDefinition, manager: object, partition_key: str | None = None
    ) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [asset],
            instance=instance,
            resources={"io_manager": manager},
            partition_key=partition_key,
        )

    return materialize


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> Execute:
    """Execute an asset by a direct invocation, with an empty quarantine directory for each."""
    calls = iter(range(100))

    def execute(asset: dg.AssetsDefinition, /, *, partition_key: str | None = None) -> Outcome:
        directory = tmp_path / f"direct_{next(calls)}"
        monkeypatch.setenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR", str(directory))
        outcome = Outcome()
        try:
            # Without an instance the context would build one, which takes longer than the call.
            context = dg.build_asset_context(partition_key=partition_key, instance=instance)
            for event in invoked(asset(context)):
                if isinstance(event, dg.MaterializeResult):
                    outcome.metadata = plain(event.metadata or {})
                    outcome.table = event.value
                else:
                    name = event.check_name
                    outcome.checks[name] = (event.passed, event.severity.name)
                    outcome.check_metadata[name] = plain(event.metadata)
        except Exception as error:
            outcome.success, outcome.error = False, type(error).__name__
            outcome.message = str(error)
        for path in directory.rglob("*.parquet"):
            assert outcome.quarantine is None
            outcome.quarantine = pl.read_parquet(path)
        return outcome

    return execute


@pytest.fixture(params=["run", "call"])
def execute(request: pytest.FixtureRequest) -> Execute:
    """Each of the two ways to execute an asset."""
    execute: Execute = request.getfixturevalue(request.param)
    return execute


def invoked(yielded: Any) -> Iterator[Any]:
    """The events of a direct invocation, awaited where the function is asynchronous."""
    if not isinstance(yielded, AsyncIterator):
        yield from yielded
        return

    async def collect() -> list[Any]:
        return [event async for event in yielded]

    yield from asyncio.run(collect())
