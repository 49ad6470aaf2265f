"""Find the files that the command's arguments name."""

import glob
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster_dataframely.errors import UnreadableFileError

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv")


@dataclass(frozen=True)
class Files:
    """The files of one table."""

    paths: Sequence[Path]
    name: str
    """What the table is called: after the folder or the pattern, not after one of its files."""
    pattern: tuple[str, str] | None = None
    """A folder and what its files are called, where they were named so."""


def find_files(arguments: Sequence[str]) -> Files:
    """One file, several, those of a folder, or those that a pattern names."""
    first = Path(arguments[0])
    if len(arguments) > 1:
        paths = [Path(argument) for argument in arguments]
        letters = zip(*(_stem(path) for path in paths), strict=False)
        common = itertools.takewhile(lambda letter: len({*letter}) == 1, letters)
        return Files(paths, _undated("".join(c[0] for c in common)) or _folder_name(first))
    if first.is_dir():
        for suffix in CSV_SUFFIXES:
            if paths := sorted(first.glob(f"*{suffix}")):
                return Files(paths, _folder_name(paths[0]), (str(first), f"*{suffix}"))
        raise UnreadableFileError(str(first), "it is a folder without CSV files")
    if glob.has_magic(arguments[0]) and not first.exists():
        parts = first.parts
        fixed = next(place for place, part in enumerate(parts) if glob.has_magic(part))
        folder, pattern = Path(*parts[:fixed]), str(Path(*parts[fixed:]))
        if not (paths := sorted(folder.glob(pattern))):
            raise UnreadableFileError(arguments[0], "there is no such file")
        name = _undated(re.sub(r"\[.*?\]|[*?]+", "", _stem(first)))
        return Files(paths, name or _folder_name(paths[0]), (str(folder), pattern))
    return Files([first], "")


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def _undated(text: str) -> str:
    return re.sub(r"[\W\d_]+$", "", text)


def _folder_name(path: Path) -> str:
    return path.resolve().parent.name
