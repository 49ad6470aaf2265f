"""The options of the random tests, and what real runs and direct invocations share."""

import gc
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from hypothesis import settings
from support.execution import Execute, Execution, Materialize, invoked, plain
from support.storage import FileIOManager, Store, left_by_run
from support.strategies import TALLY

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

    def execute(asset: dg.AssetsDefinition, /, *, partition_key: str | None = None) -> Execution:
        result = dg.materialize(
            [asset],
            instance=instance,
            resources={"io_manager": files},
            partition_key=partition_key,
            raise_on_error=False,
        )
        return left_by_run(result, asset.key, files, partition_key)

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

    def execute(asset: dg.AssetsDefinition, /, *, partition_key: str | None = None) -> Execution:
        directory = tmp_path / f"direct_{next(calls)}"
        monkeypatch.setenv("DAGSTER_DATAFRAMELY_QUARANTINE_DIR", str(directory))
        outcome = Execution()
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
