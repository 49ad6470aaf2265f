"""Start what `compose.yaml` starts, without Docker, and bring a backfill to its end.

PostgreSQL is Debian's, and moto's server takes the place of the bucket. Everything is in a temporary
directory, on free ports, and stopped at the end. `nox -s deployment` runs this.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import yaml  # type: ignore[import-untyped]
from upath import UPath

from warehouse.partitions import MONTHS
from warehouse.storage import PROJECT, create_dagster_home

COMPOSE = yaml.safe_load((PROJECT / "deployment" / "compose.yaml").read_text())
ORIGIN = "EWR"
CELLS = [f"{month}|{ORIGIN}" for month in MONTHS.get_partition_keys()]
SKIPPED = [cell for cell in CELLS if cell.startswith("2014")]
TABLES = "s3://warehouse/tables"
PATIENCE = 600
"""Seconds to wait for anything."""
RUNNING: dict[str, subprocess.Popen[bytes]] = {}

LAUNCH = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
STATUS = """
query Status($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill { status error { message } runs(limit: 100) { status } }
  }
}
"""
MATERIALIZED = """
query Materialized($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) {
    ... on AssetNode { assetMaterializations { partition } }
  }
}
"""


def main() -> int:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warehouse-")))
        ports = {name: free_port() for name in ("postgres", "bucket", "code", "webserver")}
        os.environ |= environment(directory, ports)
        create_dagster_home()
        stack.enter_context(postgres(directory / "postgres", ports["postgres"]))
        bucket = [sys.executable, "-m", "moto.server", "-p", str(ports["bucket"])]
        stack.enter_context(process("bucket", bucket, directory))
        wait_for("the bucket", lambda: is_open(ports["bucket"]))
        UPath(TABLES).fs.mkdir("warehouse")
        for service in ("code", "webserver", "daemon"):
            stack.enter_context(process(service, command(service, ports), directory))
            if service in ports:
                wait_for(f"`{service}`", partial(is_open, ports[service]))
        graphql = Graphql(ports["webserver"])
        wait_for("the code location", lambda: is_loaded(graphql))
        backfill(graphql, "flights", CELLS)
        backfill(graphql, "carrier_months", ["2013-01"])
        check(graphql, directory / "warehouse")
    print("The deployment ran the backfill to its end, and everything is stopped.")
    return 0


def environment(directory: Path, ports: Mapping[str, int]) -> dict[str, str]:
    """All that makes a deployment of the warehouse, and what `compose.yaml` sets by the same names."""
    url = f"postgresql+psycopg2://warehouse@127.0.0.1:{ports['postgres']}/postgres"
    values = {
        "WAREHOUSE_POSTGRES_URL": url,
        "WAREHOUSE_TABLES": TABLES,
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
    folder = directory / "warehouse"
    return {
        **values,
        "WAREHOUSE_DIR": str(folder),
        "DAGSTER_HOME": str(folder / "dagster_home"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


def command(service: str, ports: Mapping[str, int]) -> list[str]:
    """The command of `compose.yaml`, on this machine's address and the port chosen here."""
    words = shlex.split(COMPOSE["services"][service]["command"])
    values = {"--host": "127.0.0.1", "--port": str(ports.get(service, ""))}
    return [values.get(before, word) for before, word in zip(["", *words], words, strict=False)]


@contextmanager
def postgres(data: Path, port: int) -> Iterator[None]:
    """Debian's PostgreSQL on a new data directory, as its own user where this one is root."""
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    binaries = postgres_binaries()
    data.mkdir()
    if user:
        data.parent.chmod(0o755)
        shutil.chown(data, "postgres")
    trust = ["-U", "warehouse", "-A", "trust"]
    quiet = subprocess.DEVNULL
    subprocess.run(
        [*user, binaries / "initdb", "-D", data, *trust], check=True, stdout=quiet, cwd=data
    )
    server = [*user, str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-k", str(data)]
    with process("postgres", server, data.parent):
        wait_for("PostgreSQL", lambda: is_open(port))
        yield


def postgres_binaries() -> Path:
    """The newest installed; Debian keeps them off `PATH`."""
    if not (found := sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))):
        install = ["apt-get", "install", "-y", "--no-install-recommends", "postgresql"]
        subprocess.run(["apt-get", "update"], check=True)
        subprocess.run(install, check=True)
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent


@contextmanager
def process(name: str, words: list[str], directory: Path) -> Iterator[None]:
    """A process whose output goes to a file; it and its children are gone afterwards."""
    log = directory / f"{name}.log"
    print(f"{name}: {shlex.join(words)}", flush=True)
    with log.open("wb") as output:
        started = subprocess.Popen(
            words, cwd=PROJECT, stdout=output, stderr=output, start_new_session=True
        )
    RUNNING[name] = started
    try:
        yield
    except BaseException:
        print(f"--- the end of {name}'s output", log.read_text()[-2000:], sep="\n")
        raise
    finally:
        del RUNNING[name]
        stop(started)


def stop(started: subprocess.Popen[bytes]) -> None:
    """PostgreSQL takes SIGINT as a fast shutdown, the others as any interrupt."""
    for number, seconds in ((signal.SIGINT, 15), (signal.SIGTERM, 15), (signal.SIGKILL, 15)):
        try:
            os.killpg(started.pid, number)
            started.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


class Graphql:
    """The webserver's API."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/graphql"

    def __call__(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
        if "errors" in answer:
            raise RuntimeError(answer["errors"])
        (data,) = answer["data"].values()
        return dict(data)


def is_loaded(graphql: Graphql) -> bool:
    query = (
        "query Loaded($asset: AssetKeyInput!) { assetNodeOrError(assetKey: $asset) { __typename } }"
    )
    return bool(graphql(query, asset={"path": ["flights"]})["__typename"] == "AssetNode")


def backfill(graphql: Graphql, asset: str, partitions: list[str]) -> None:
    """Launch a backfill and wait until the daemon has brought it to its end."""
    start = time.monotonic()
    params = {"assetSelection": [{"path": [asset]}], "partitionNames": partitions}
    launched = graphql(LAUNCH, params=params)
    if launched["__typename"] != "LaunchBackfillSuccess":
        raise RuntimeError(launched)
    last: dict[str, Any] = {"status": ""}

    def ended() -> bool:
        status = graphql(STATUS, id=launched["backfillId"])
        if status["status"] != last["status"]:
            print(f"backfill of `{asset}`, {len(partitions)}: {status['status']}", flush=True)
        last.update(status)
        return status["status"] not in {"REQUESTED", "COMPLETING", "CANCELING", "FAILING"}

    wait_for(f"the backfill of `{asset}`", ended)
    # Dagster 1.13 calls a backfill failed where a run skipped, so what counts is each run's status.
    runs = [run["status"] for run in last["runs"]]
    expect(f"runs of `{asset}`", runs, ["SUCCESS"] * len(partitions))
    print(f"  in {time.monotonic() - start:.0f} s", flush=True)


def check(graphql: Graphql, directory: Path) -> None:
    """What came of it: events in PostgreSQL, tables and quarantine in the bucket, gold in DuckDB."""
    answer = graphql(MATERIALIZED, asset={"path": ["flights"]})
    cells = sorted(each["partition"] for each in answer["assetMaterializations"])
    expect("materialized cells", cells, [cell for cell in CELLS if cell not in SKIPPED])
    rows = {name: count_rows(name) for name in ("flights", "flights_quarantine")}
    expect("rows in the bucket", rows, {"flights": 120_809, "flights_quarantine": 26})
    with duckdb.connect(str(directory / "warehouse.duckdb"), read_only=True) as connection:
        months = connection.execute("select distinct month::varchar from gold.carrier_months")
        expect("months in DuckDB", months.fetchall(), [("2013-01-01",)])
    if sqlite := list(directory.rglob("*.db")):
        sys.exit(f"SQLite files, with PostgreSQL as the storage: {sqlite}")


def count_rows(table: str) -> int:
    files = sorted(UPath(TABLES, table).glob(f"*/{ORIGIN}.parquet"))
    print(f"{table}: {len(files)} objects, {files[0]} ...")
    frames = [pl.scan_parquet(str(file)) for file in files]
    return int(pl.concat(frames).select(pl.len()).collect().item())


def expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        sys.exit(f"{what}: {found}, expected {expected}")
    print(f"{what}: as expected")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: str, is_there: Callable[[], bool]) -> None:
    """Ask twice a second; a refused connection counts as not yet."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if ended := [name for name, started in RUNNING.items() if started.poll() is not None]:
            sys.exit(f"{', '.join(ended)} ended while waiting for {what}.")
        try:
            if is_there():
                return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit(f"Waited {PATIENCE} s for {what}.")


if __name__ == "__main__":
    sys.exit(main())
