"""Look at the beginning of a CSV file: its encoding, its lines and its separator."""

import codecs
import gzip
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, cast

from dagster_dataframely._text import count
from dagster_dataframely.errors import UnreadableFileError

_HEAD = 1_000_000
"""Bytes that tell how a file is written; a first line that is longer is none."""


_QUOTED = re.compile(r'"[^"]*"')


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_source(path: Path, encoding: str | None) -> Path | bytes:
    """What Polars scans: the file, or its bytes as UTF-8 where an encoding is named."""
    if encoding is None:
        return path
    with _open(path) as file:
        try:
            return file.read().decode(encoding).encode()
        except UnicodeDecodeError as error:
            reason = f"it is not {encoding}, at byte {error.start:,}"
            raise UnreadableFileError(str(path), reason) from error


def guess_separator(path: Path, source: Path | bytes) -> str:
    """The separator that the first line has most often; a file that is no lines of UTF-8 raises."""
    if isinstance(source, bytes):
        head = source[:_HEAD]
    else:
        with _open(source) as file:
            head = file.read(_HEAD)
    line = _first_line(path, head)
    bare = _QUOTED.sub("", line)
    return max(",;\t|", key=bare.count)


def _first_line(path: Path, head: bytes) -> str:
    if head.startswith(_UTF_16) or b"\0" in head[:100]:
        raise UnreadableFileError(str(path), "it looks like UTF-16: name `--encoding utf-16`")
    try:
        # The last character may be cut.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        reason = (
            f"it is not UTF-8, at byte {error.start:,}: name its encoding, as `--encoding latin-1`"
        )
        raise UnreadableFileError(str(path), reason) from error
    line, end, _ = text.partition("\n")
    if not end and "\r" in line:
        raise UnreadableFileError(str(path), "its lines end with CR alone: write LF in its place")
    if not end and len(head) == _HEAD:
        raise UnreadableFileError(
            str(path), f"its first line is longer than {count(_HEAD, 'byte')}: it has no line ends"
        )
    return line


def _open(path: Path) -> AbstractContextManager[BinaryIO]:
    if path.suffix.lower() == ".gz":
        return cast("AbstractContextManager[BinaryIO]", gzip.GzipFile(path))
    return path.open("rb")
