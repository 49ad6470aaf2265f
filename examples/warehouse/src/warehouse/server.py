"""`dagster dev` on the history that the main job left, gone with the command that started it."""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from urllib.error import URLError
from urllib.request import urlopen

from warehouse.storage import PROJECT, create_dagster_home

SECONDS_TO_STOP = 20


def serve(options: Sequence[str]) -> int:
    """Serve until Ctrl-C, a signal, or the end of the process that started this one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    parent = os.getppid()
    home = str(create_dagster_home())
    words = ["-m", "dagster", "dev", "-w", str(PROJECT / "workspace.yaml"), *options]
    dagster = subprocess.Popen(
        [sys.executable, *words], env=os.environ | {"DAGSTER_HOME": home}, start_new_session=True
    )
    try:
        address = _address(options)
        announced = False
        while dagster.poll() is None and os.getppid() == parent:
            if not announced and _answers(address):
                announced = True
                print(f"\nDagster's UI is at {address} - Ctrl-C stops it.\n", flush=True)
            time.sleep(0.5)
        return dagster.returncode or 0
    except KeyboardInterrupt:
        return 0
    finally:
        _end(dagster)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _address(options: Sequence[str]) -> str:
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("-h", "--host", default="127.0.0.1")
    parser.add_argument("-p", "--port", default="3000")
    parsed, _ = parser.parse_known_args(options)
    return f"http://{parsed.host}:{parsed.port}"


def _answers(address: str) -> bool:
    try:
        with urlopen(f"{address}/server_info", timeout=2):
            return True
    except (URLError, TimeoutError):
        return False


def _end(dagster: subprocess.Popen[bytes]) -> None:
    """Stop Dagster's processes, the webserver, the daemon and the code servers among them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(dagster.pid, number)
            dagster.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
