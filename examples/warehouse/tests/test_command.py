"""What `python -m warehouse` starts, it stops."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import warehouse
from warehouse import report


def running_in(directory: Path) -> list[int]:
    """The processes that were started with this warehouse directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"WAREHOUSE_DIR={directory}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def wait_until(holds: Callable[[], bool], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGKILL])
def test_serve_says_where_and_leaves_no_process(ends: signal.Signals, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = shlex.join([sys.executable, "-m", "warehouse", "serve", "--port", str(port)])
    output = tmp_path / "output"
    with output.open("w") as file:
        # A shell, as nox is, between the terminal and the server.
        shell = subprocess.Popen(
            ["sh", "-c", f"{serve} & echo $! > {tmp_path}/pid; wait"],
            env=os.environ | {"WAREHOUSE_DIR": str(tmp_path)},
            stdout=file,
            stderr=file,
        )
    try:
        wait_until(lambda: f"UI is at http://127.0.0.1:{port} " in output.read_text())
        assert len(running_in(tmp_path)) > 3
        killed = int((tmp_path / "pid").read_text()) if ends == signal.SIGTERM else shell.pid
        os.kill(killed, ends)
        wait_until(lambda: running_in(tmp_path) == [])
    finally:
        for process in running_in(tmp_path):
            os.kill(process, signal.SIGKILL)
        shell.wait()


def test_the_first_line_comes_before_the_imports() -> None:
    source = str(Path(warehouse.__file__).with_name("__main__.py"))
    script = f"sys.modules['dagster'] = None; runpy.run_path({source!r}, run_name='__main__')"
    words = [sys.executable, "-c", f"import runpy, sys; {script}"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.stdout.startswith("Loading Dagster")
    assert "dagster" in found.stderr


def test_the_query_line_prints_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars as pl

    monkeypatch.setenv("WAREHOUSE_DIR", str(tmp_path))
    cell = tmp_path / "tables/flights/2013-01/EWR.parquet"
    cell.parent.mkdir(parents=True)
    pl.DataFrame({"flight": [1545]}).write_parquet(cell)
    assert "1545" in subprocess.check_output(report.query_line(), shell=True, text=True)
