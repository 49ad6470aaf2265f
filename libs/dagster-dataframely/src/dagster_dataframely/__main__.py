"""`python -m dagster_dataframely`: `infer` a schema from a file, look at a `quarantine`."""

import argparse
import codecs
import keyword
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg

from dagster_dataframely._infer.arguments import find_files
from dagster_dataframely._infer.facts import infer
from dagster_dataframely._infer.files import Options, open_files, reading
from dagster_dataframely._infer.source import write_module
from dagster_dataframely._triage.command import (
    Selection,
    export_rows,
    list_quarantines,
    show_rows,
)
from dagster_dataframely._triage.quarantines import choose_quarantine, find_quarantines
from dagster_dataframely._upstream.locations import (
    NOT_LOADABLE,
    QuarantineLoader,
    find_instance,
    load_code_location,
)
from dagster_dataframely.errors import CodeLocationError, DagsterDataframelyError

_SECONDS_BETWEEN_LINES = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 where it cannot be done, 2 for wrong arguments."""
    parsed = _build_parser().parse_args(arguments)
    try:
        text: str = parsed.run(parsed)
    except DagsterDataframelyError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    # Python source is UTF-8, whatever the terminal's encoding is.
    sys.stdout.buffer.write(text.encode())
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dagster_dataframely")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    about = "print a Dataframely schema for the table that a file holds"
    command = commands.add_parser("infer", help=about, description=f"{about.capitalize()}.")
    add = command.add_argument
    about_files = (
        "Parquet, CSV, or a DuckDB database; of CSV several, a folder, or a quoted pattern"
    )
    add("files", metavar="FILE", nargs="+", help=about_files)
    add("--table", help="the table of a DuckDB database: `orders` or `schema.orders`")
    add("--name", type=_class_name, help="the class's name (default: made from the file's)")
    add("--rows", type=_count, help="look at the first rows only (default: all)")
    add("--no-ranges", dest="ranges", action="store_false", help="leave out minima and maxima")
    add("--separator", type=_separator, help="of a CSV file (default: that of its first line)")
    add("--null", action="append", default=[], help="text that is null in a CSV file; repeatable")
    add("--schema-only", action="store_true", help="print no asset that parses CSV files")
    add("--encoding", type=_encoding, help="of a CSV file (default: UTF-8)")
    add("--max-columns", type=_count, default=1000, help="refuse tables with more (default: 1000)")
    command.set_defaults(run=_infer)
    _add_quarantine(commands)
    return parser


def _add_quarantine(commands: Any) -> None:
    about = "look at the error rows of a code location"
    group = commands.add_parser("quarantine", help=about, description=f"{about.capitalize()}.")
    actions = group.add_subparsers(required=True, metavar="ACTION")

    def action(name: str, about: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = actions.add_parser(
            name, help=about, description=f"{about.capitalize()}."
        )
        parser.set_defaults(run=_look_at_quarantines, action=name)
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("-m", "--module-name", metavar="MODULE", help="has the definitions")
        where.add_argument("-f", "--python-file", metavar="FILE", help="has the definitions")
        return parser

    action("list", "count error rows by quarantine and rule, the worst first")
    show = action("show", "print error rows with the rules they fail")
    export = action("export", "write error rows to a file")
    for parser in (show, export):
        parser.add_argument("name", metavar="NAME", help="the key of the table or its quarantine")
        parser.add_argument("--partition", help="only this partition (default: all)")
        parser.add_argument("--rule", help="only rows that fail this rule: `amount|min`")
        parser.add_argument(
            "--show-redacted", action="store_true", help="do not leave out redacted values"
        )
    show.add_argument("--limit", type=_count, default=20, help="rows to print (default: 20)")
    export.add_argument("--to", type=Path, required=True, help="a new .csv or .parquet file")


def _look_at_quarantines(parsed: argparse.Namespace) -> str:
    progress = _progress()
    with ExitStack() as stack:
        loader = QuarantineLoader(stack.enter_context(find_instance()))
        stack.callback(loader.close)
        try:
            location = load_code_location(module=parsed.module_name, file=parsed.python_file)
        except NOT_LOADABLE as error:
            named = parsed.module_name or parsed.python_file
            raise CodeLocationError(named, error) from error
        quarantines = find_quarantines(location, loader)
        if parsed.action == "list":
            return _lines(list_quarantines(quarantines.values(), progress))
        quarantine = choose_quarantine(quarantines, dg.AssetKey.from_user_string(parsed.name))
        selection = Selection(quarantine, parsed.partition, parsed.rule, parsed.show_redacted)
        if parsed.action == "export":
            return _lines([export_rows(selection, parsed.to, progress)])
        width = shutil.get_terminal_size().columns
        return _lines(show_rows(selection, parsed.limit, width, progress))


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _infer(parsed: argparse.Namespace) -> str:
    options = Options(
        parsed.table,
        parsed.rows,
        parsed.separator,
        parsed.null,
        parsed.encoding,
        parsed.max_columns,
    )
    with reading(Path(parsed.files[0])):
        files = find_files(parsed.files)
        table = open_files(files, options)
        inference = infer(table, _progress())
    return write_module(
        inference,
        table,
        class_name=parsed.name or _derive_class_name(files.name or table.name),
        ranges=parsed.ranges,
        schema_only=parsed.schema_only,
    )


def _class_name(text: str) -> str:
    if (
        not text.isidentifier()
        or keyword.iskeyword(text)
        or text in ("dd", "dy", "pl", "pathlib", "__debug__")
    ):
        message = f"{text!r} cannot be the name of a class"
        raise argparse.ArgumentTypeError(message)
    return text


def _derive_class_name(name: str) -> str:
    """`raw-orders_2024` gives `RawOrders2024`."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    joined = "".join(word[0].upper() + word[1:] for word in words)
    can_be_name = joined[:1].isalpha() and not keyword.iskeyword(joined)
    return joined if can_be_name else f"Table{joined}"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        message = f"{text!r} is not a whole number, 0 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _separator(text: str) -> str:
    if len(text.encode()) != 1:
        message = f"{text!r} is not a single ASCII character"
        raise argparse.ArgumentTypeError(message)
    return text


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError as error:
        message = f"Python knows no encoding {text!r}"
        raise argparse.ArgumentTypeError(message) from error


def _progress() -> Callable[[str], None]:
    """What prints a line now and then, and none where all is done at once."""
    last = time.monotonic()

    def show(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(line, file=sys.stderr)

    return show


if __name__ == "__main__":
    sys.exit(main())
