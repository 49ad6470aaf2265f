"""A memory limit on a process, by a control group of Linux, version 1 or 2."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
_NAME = f"dagster-dataframely-bench-{os.getpid()}"
_V1 = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
_V2 = ("memory.max", "memory.swap.max")


class LimitError(Exception):
    """This process may not limit memory."""


@contextmanager
def memory_group(
    gigabytes: float | None, *, root: Path = ROOT, membership: Path = MEMBERSHIP
) -> Iterator[Path | None]:
    """A group for one process, which puts its own id into `cgroup.procs`; none without a limit.

    The kernel kills what needs more. It lies below a group that this process is in, whose limits
    hold as well.
    """
    if gigabytes is None:
        yield None
        return
    group = _parent(root, membership) / _NAME
    try:
        group.mkdir(exist_ok=True)
        _set_limit(group, int(gigabytes * 1e9))
    except OSError as error:
        raise LimitError(f"A memory limit needs the right to make {group}: {error}.") from error
    try:
        yield group
    finally:
        group.rmdir()


def _parent(root: Path, membership: Path) -> Path:
    """Where a group with a limit can be made: for version 2 one that gives memory to its groups."""
    own = dict(line.split(":", 2)[1:] for line in membership.read_text().splitlines())
    if (root / "memory").is_dir():
        return root / "memory" / own["memory"].strip("/")
    group = root / own[""].strip("/")
    for candidate in [group, *group.parents]:
        controllers = candidate / "cgroup.subtree_control"
        if controllers.is_file() and "memory" in controllers.read_text().split():
            return candidate
    raise LimitError(f"No control group above {group} gives its groups a memory limit.")


def _set_limit(group: Path, limit: int) -> None:
    first, swap = _V1 if (group / _V1[0]).exists() else _V2
    (group / first).write_text(str(limit))
    if (group / swap).exists():
        # Version 1 counts memory and swap together, version 2 swap alone.
        (group / swap).write_text(str(limit) if swap == _V1[1] else "0")
