"""Environments of their own, for the sides that cannot share this one."""

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.processes import ROOT

SHARED = ["dagster", "dagster-polars", "dataframely", "polars"]
"""Packages that every side has, in the same version."""
OWN: dict[str, list[str]] = {
    "library": ["--editable", str(ROOT / "libs/dagster-dataframely")],
    "published": ["dagster-dataframely==0.12.0"],
    "pandera": ["dagster-pandera", "pandera[polars]"],
}


def pinned(replaced: Iterable[str]) -> list[str]:
    """The shared packages as they are installed here, but for those that are asked for otherwise."""
    others = {re.split(r"[^\w.-]", requirement)[0]: requirement for requirement in replaced}
    here = {name: f"{name}=={importlib.metadata.version(name)}" for name in SHARED}
    return sorted({**here, **others}.values())


def build(name: str, replaced: list[str], folder: Path) -> str:
    """Make an environment and give its Python; the library's is this one, unless versions differ."""
    if name == "library" and not replaced:
        return sys.executable
    venv = folder / name
    python = str(venv / "bin/python")
    uv = ["uv", "--quiet"]
    subprocess.run([*uv, "venv", "--clear", f"--python={sys.executable}", str(venv)], check=True)
    install = [*uv, "pip", "install", f"--python={python}", *pinned(replaced), *OWN[name]]
    subprocess.run(install, check=True)
    return python
