"""The input: `lineitem`, generated once for each scale."""

import os
import subprocess
import sys
from pathlib import Path


def generate(scale: float, folder: Path) -> Path:
    """TPC-H's `lineitem` as one Parquet file: 6 million rows and 230 MB for each unit of scale."""
    target = folder / f"scale-{scale:g}"
    file = target / "lineitem.parquet"
    if not file.exists():
        command = [str(Path(sys.executable).with_name("tpchgen-cli")), "parquet", "--no-progress"]
        options = [f"--scale-factor={scale:g}", "--tables=lineitem", "--overwrite"]
        subprocess.run([*command, *options, f"--output-dir={target}.part"], check=True)
        # Only a whole file gets the name that is looked for.
        Path(f"{target}.part").rename(target)
    return file


def forget(file: Path) -> None:
    """Take a file out of the system's cache, so that a control group pays for the pages it reads."""
    with file.open("rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_through(file: Path) -> None:
    """Bring a file into the system's cache, so that no side has to wait for the disk."""
    with file.open("rb", buffering=0) as stream:
        while stream.read(2**24):
            pass
