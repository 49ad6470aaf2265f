"""One measured process: started, watched, and what the operating system says it took."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parents[1]
_PAUSE = 0.05
_LAST_LINES = 5


Outcome = Literal["completed", "failed", "killed", "timed out"]


@dataclass(frozen=True)
class Measurement:
    """What one process took; zeros where it did not get that far."""

    outcome: Outcome
    startup_seconds: float = 0.0
    """Until the clock starts: imports, and for some sides a frame that is read."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_gb: float = 0.0
    """Of resident memory, over the life of the process."""
    temporary_gb: float = 0.0
    """The most that lay in its temporary directory."""
    facts: Mapping[str, float] = field(default_factory=dict)
    anonymous_gb: float = 0.0
    """The most resident memory that is not of files, looked at 20 times a second; on Linux only."""
    versions: Mapping[str, str] = field(default_factory=dict)
    message: str = ""


def start(
    order: Mapping[str, Any],
    folder: Path,
    *,
    python: str = sys.executable,
    cgroup: Path | None = None,
    timeout: float | None = None,
) -> Measurement:
    """Carry out an order (program, arguments, laps, source) in a new process, in an empty folder."""
    report, log, temporary = folder / "report.json", folder / "log.txt", folder / "tmp"
    temporary.mkdir()
    (folder / "out").mkdir()
    full = {
        **order,
        "folder": str(folder / "out"),
        "report": str(report),
        "cgroup": str(cgroup or ""),
    }
    command = [python, "-W", "ignore", "-m", "benchmarks.child", json.dumps(full)]
    environment = {**os.environ, "TMPDIR": str(temporary), "POLARS_TEMP_DIR": str(temporary)}
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        status, usage, most, late = _watch(process, temporary, began, timeout)
    disk, anonymous = most
    # The system counts in kibibytes, and from the size of the process that started this one.
    figures = {
        "peak_gb": usage.ru_maxrss * 1024 / 1e9,
        "temporary_gb": disk / 1e9,
        "anonymous_gb": anonymous * 1024 / 1e9,
    }
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        found = json.loads(report.read_text())
        startup = found.pop("began") - began
        return Measurement("completed", startup, **figures, **found)
    lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
    outcome: Outcome = "timed out" if late else "killed" if os.WIFSIGNALED(status) else "failed"
    return Measurement(outcome, **figures, message="\n".join(lines))


def _watch(
    process: subprocess.Popen[bytes], temporary: Path, began: float, timeout: float | None
) -> tuple[int, Any, tuple[int, int], bool]:
    """Wait for the end: status, usage, the most it took, and whether it was too late.

    The most are bytes on disk and kibibytes of anonymous memory.
    """
    disk, anonymous, late = 0, 0, False
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return status, usage, (disk, anonymous), late
        disk = max(disk, _size(temporary))
        anonymous = max(anonymous, _anonymous(process.pid))
        if timeout is not None and time.monotonic() - began > timeout:
            late = True
            process.send_signal(signal.SIGKILL)
        time.sleep(_PAUSE)


def _anonymous(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) if found else 0


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total
