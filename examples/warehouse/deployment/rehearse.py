"""Start what `compose.yaml` starts, without Docker, and fill the grid of flights, on two executors.

PostgreSQL is Debian's, and moto's server takes the place of the bucket. Everything is in a temporary
directory, on free ports, and stopped at the end. `nox -s distributed` runs this.
"""

import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import dagster as dg
import duckdb
import polars as pl
import sqlalchemy
import yaml  # type: ignore[import-untyped]
from launch import Webserver
from processes import create_database, free_port, is_open, postgres, process, wait_for
from upath import UPath

from warehouse.job import EXPECTED, PlannedRun, add_up, differences, read_run
from warehouse.partitions import MONTH_AND_ORIGIN
from warehouse.storage import PROJECT, create_dagster_home

COMPOSE = yaml.safe_load((PROJECT / "deployment" / "compose.yaml").read_text())
EXECUTORS = ("multiprocess", "dask")
BUCKET = "s3://warehouse"
CELLS = MONTH_AND_ORIGIN.get_partition_keys()
MONTH = "2013-01"
SILVER = ["airlines", "airports", "planes", "weather", "departures"]
"""One run of several steps; the last reads every cell from the bucket, and is staged."""
EVALUATED = """
select check_name, partition, count(*) from asset_check_executions
where asset_key = '["flights"]' and check_name like 'dy_schema__%' and execution_status <> 'PLANNED'
group by check_name, partition
"""
RUNS = "select run_id from runs where pipeline_name = 'flights_cell'"
OF_ONE_RUN = ["dy_run_id", "dy_written_at"]
"""Columns of a quarantine that no two runs write alike."""


def main() -> int:
    # Python would end at once, and leave running what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Terminated."))
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warehouse-")))
        ports = {name: free_port() for name in ("postgres", "bucket", "code", "webserver")}
        stack.enter_context(postgres(directory / "postgres", ports["postgres"]))
        bucket = [sys.executable, "-m", "moto.server", "-p", str(ports["bucket"])]
        stack.enter_context(process("bucket", bucket, directory))
        wait_for("the bucket", lambda: is_open(ports["bucket"]))
        for executor in EXECUTORS:
            rehearse(executor, directory, ports)
        first, *others = [read_tables(executor) for executor in EXECUTORS]
        for name, table in first.items():
            rows = table.drop(OF_ONE_RUN, strict=False)
            same = [rows.equals(other[name].drop(OF_ONE_RUN, strict=False)) for other in others]
            expect(f"`{name}` is the same under every executor", all(same), True)
    print("Every backfill ran to its end, and everything is stopped.")
    return 0


def rehearse(executor: str, directory: Path, ports: Mapping[str, int]) -> None:
    """One deployment, with a database, a folder of the bucket and a disk of its own."""
    print(f"--- executor: {executor}", flush=True)
    here = directory / executor
    staging = here / "staging"
    staging.mkdir(parents=True)
    os.environ |= environment(executor, here, ports)
    os.environ["DAGSTER_DATAFRAMELY_TEMP_DIR"] = str(staging)
    create_database(executor, ports["postgres"])
    create_dagster_home()
    UPath(BUCKET).fs.makedirs("warehouse", exist_ok=True)
    with ExitStack() as stack:
        for service in ("code", "webserver", "daemon"):
            stack.enter_context(process(service, command(service, ports), here))
            if service in ports:
                wait_for(f"`{service}`", partial(is_open, ports[service]))
        webserver = Webserver(ports["webserver"])
        wait_for("the code location", webserver.is_loaded)
        fill(webserver)
        # dagster-dask fails to submit a step that is in a pool (0.29.27).
        if executor != "dask":
            fill_duckdb(webserver, here / "warehouse.duckdb")
    check_history()
    check_bucket(executor)
    expect("left in the staging folder", list(staging.iterdir()), [])


def fill(webserver: Webserver) -> None:
    """The grid, a run for each cell; a run of several steps; what cells refer to."""
    print(f"flights, {len(CELLS)} cells: ", end="", flush=True)
    ended = webserver.backfill_job("flights_cell", CELLS)
    expect("backfill and runs", ended, ("COMPLETED_SUCCESS", ["SUCCESS"] * len(CELLS)))
    for job, assets in (("__ASSET_JOB", SILVER), ("flight_references", [])):
        print(f"{job} {', '.join(assets)}: ", end="", flush=True)
        expect("run", webserver.run(job, assets), "SUCCESS")


def fill_duckdb(webserver: Webserver, database: Path) -> None:
    """A month that reads its cells from the bucket; its pool lets one run at a time write."""
    print(f"carrier_months, {MONTH}: ", end="", flush=True)
    ended = webserver.backfill_asset("carrier_months", [MONTH])
    expect("backfill and run", ended, ("COMPLETED_SUCCESS", ["SUCCESS"]))
    with duckdb.connect(str(database), read_only=True) as connection:
        months = connection.execute("select distinct month::varchar from gold.carrier_months")
        expect("months in DuckDB", months.fetchall(), [(f"{MONTH}-01",)])


def environment(executor: str, here: Path, ports: Mapping[str, int]) -> dict[str, str]:
    """All that makes a deployment of the warehouse, and what `compose.yaml` sets by the same names."""
    url = f"postgresql+psycopg2://warehouse@127.0.0.1:{ports['postgres']}/{executor}"
    values = {
        "WAREHOUSE_POSTGRES_URL": url,
        "WAREHOUSE_TABLES": f"{BUCKET}/{executor}",
        "WAREHOUSE_EXECUTOR": executor,
        "WAREHOUSE_CODE_HOST": "127.0.0.1",
        "WAREHOUSE_CODE_PORT": str(ports["code"]),
        "AWS_ACCESS_KEY_ID": "rehearsal",
        "AWS_SECRET_ACCESS_KEY": "rehearsal",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['bucket']}",
        "AWS_ALLOW_HTTP": "true",
    }
    declared = set(COMPOSE["x-warehouse"]["environment"])
    if declared != set(values):
        sys.exit(f"compose.yaml sets {declared ^ set(values)} and this does not, or the reverse.")
    # The image has these.
    return {
        **values,
        "WAREHOUSE_DIR": str(here),
        "DAGSTER_HOME": str(here / "dagster_home"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


def command(service: str, ports: Mapping[str, int]) -> list[str]:
    """The command of `compose.yaml`, on this machine's address and the port chosen here."""
    words = shlex.split(COMPOSE["services"][service]["command"])
    values = {"--host": "127.0.0.1", "--port": str(ports.get(service, ""))}
    return [values.get(before, word) for before, word in zip(["", *words], words, strict=False)]


def check_history() -> None:
    """What PostgreSQL has: the pinned totals, and each check's evaluation with its cell."""
    home = Path(os.environ["DAGSTER_HOME"])
    expect("SQLite files", list(home.parent.rglob("*.db")), [])
    with dg.DagsterInstance.from_config(str(home)) as instance:
        runs = instance.get_runs()
        recorded = [
            read_run(instance, run.run_id, planned, 0.0)
            for run in runs
            for planned in planned_runs(run)
        ]
        (silver,) = [run for run in runs if run.asset_selection == set(map(dg.AssetKey, SILVER))]
        messages = [entry.user_message for entry in instance.all_logs(silver.run_id)]
    totals = {asset: EXPECTED[asset] for asset in ["flights", *SILVER]}
    found = {asset: total for asset, total in add_up(recorded).items() if asset in totals}
    expect("totals that are off", differences(found, totals), [])
    staged = [text.partition(" rows")[0] for text in messages if text.startswith("Staged ")]
    expect("staged", staged, [f"Staged {EXPECTED['departures'].rows_written:,}"])
    evaluated = sorted(query(EVALUATED))
    checks = ("dy_schema__columns", "dy_schema__rules")
    expect("evaluations", evaluated, sorted((check, cell, 1) for check in checks for cell in CELLS))


def planned_runs(run: dg.DagsterRun) -> list[PlannedRun]:
    partition = run.tags.get("dagster/partition")
    if run.job_name.startswith("flight"):
        return [PlannedRun("flights", partition, job=run.job_name)]
    return [PlannedRun(key.to_user_string(), partition) for key in run.asset_selection or ()]


def query(statement: str) -> list[tuple[object, ...]]:
    with sqlalchemy.create_engine(os.environ["WAREHOUSE_POSTGRES_URL"]).connect() as connection:
        return [tuple(row) for row in connection.execute(sqlalchemy.text(statement))]


def check_bucket(executor: str) -> None:
    """Every table and quarantine has the pinned number of rows, and a quarantine knows its runs."""
    tables = read_tables(executor)
    rows = {name: table.height for name, table in tables.items()}
    pinned = {name: EXPECTED[name].rows_written for name in ["flights", *SILVER]}
    quarantined = {
        f"{name}_quarantine": EXPECTED[name].rows_quarantined for name in ("flights", "weather")
    }
    expect("rows in the bucket", rows, pinned | quarantined)
    named = set(tables["flights_quarantine"].select("dy_run_id").rows())
    expect("runs that only the quarantine knows", named - set(query(RUNS)), set())


def read_tables(executor: str) -> dict[str, pl.DataFrame]:
    """Each table and quarantine in the bucket, by name."""
    folder = UPath(f"{BUCKET}/{executor}")
    return {
        path.name.partition(".")[0]: pl.concat(
            [
                pl.read_parquet(str(file))
                for file in (sorted(path.glob("*/*.parquet")) if path.is_dir() else [path])
            ]
        )
        for path in sorted(folder.iterdir())
    }


def expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        sys.exit(f"{what}: {found}, expected {expected}")
    print(f"{what}: as expected", flush=True)


if __name__ == "__main__":
    sys.exit(main())
