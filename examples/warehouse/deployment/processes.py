"""Start processes, wait until they answer, and stop them."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.storage import PROJECT

PATIENCE = 120
"""Seconds to wait for a process."""
RUNNING: dict[str, subprocess.Popen[bytes]] = {}


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


def create_database(name: str, port: int) -> None:
    address = ["-h", "127.0.0.1", "-p", str(port), "-U", "warehouse"]
    subprocess.run([postgres_binaries() / "createdb", *address, name], check=True)


def postgres_binaries() -> Path:
    """The newest installed; Debian keeps them off `PATH`."""
    if not (found := sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))):
        install = ["apt-get", "install", "-y", "--no-install-recommends", "postgresql"]
        subprocess.run(["apt-get", "update"], check=True)
        subprocess.run(install, check=True)
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: str, is_there: Callable[[], bool], patience: int = PATIENCE) -> None:
    """Ask twice a second; a refused connection counts as not yet."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if ended := [name for name, started in RUNNING.items() if started.poll() is not None]:
            sys.exit(f"{', '.join(ended)} ended while waiting for {what}.")
        try:
            if is_there():
                return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit(f"Waited {patience} s for {what}.")
