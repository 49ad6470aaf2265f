"""Write the asset that reads the files of a schema and parses them."""

import glob
import keyword
import re

from dagster_dataframely._infer.arguments import Files
from dagster_dataframely._infer.files import Table
from dagster_dataframely._infer.literals import string_literal

_MANY = 60
"""Columns with so many checks that they take most of a run's time."""


def write_asset(table: Table, class_name: str) -> list[str]:
    """Lines of an asset; none for a table that is not text."""
    drops, files = table.drops, table.files
    if drops is None or files is None:
        return []
    options = ["infer_schema=False"]
    if drops.separator != ",":
        options.append(f"separator={string_literal(drops.separator)}")
    if glob.has_magic(str(files.paths[0])):
        options.append("glob=False")
    if drops.nulls:
        options.append(f"null_values=[{', '.join(map(string_literal, drops.nulls))}]")
    one = len(files.paths) == 1 and files.pattern is None
    path = f"pathlib.Path({string_literal(str(files.paths[0]))})" if one else "file"
    source = path
    if drops.encoding is not None:
        source = f"{path}.read_bytes().decode({string_literal(drops.encoding)}).encode()"
    elif one:
        source = string_literal(str(files.paths[0]))
    scan = [
        "pl.scan_csv(",
        *(f"    {argument}," for argument in (source, *options)),
        ")",
    ]
    if one:
        lines = [f"text = {scan[0]}", *scan[1:]]
    else:
        lines = [
            *_file_lines(files),
            "text = [",
            *(f"    {line}" for line in scan),
            "    for file in files",
            "]",
        ]
    text = "text" if one else 'pl.concat(text, how="diagonal")'
    lines.append(f"return dd.parse({class_name}, {text})")
    few = ', check_granularity="schema"' if len(drops.columns) > _MANY else ""
    head = [
        f"@dd.asset({class_name}, quarantine=True{few})",
        f"def {_asset_name(class_name)}() -> pl.LazyFrame:",
    ]
    return ["", "", *head, *(f"    {line}" for line in lines)]


def _file_lines(files: Files) -> list[str]:
    if files.pattern is not None:
        folder, pattern = map(string_literal, files.pattern)
        return [f"files = sorted(pathlib.Path({folder}).glob({pattern}))"]
    literals = (string_literal(str(path)) for path in files.paths)
    return ["files = [", *(f"    pathlib.Path({literal})," for literal in literals), "]"]


def _asset_name(class_name: str) -> str:
    """`RawOrders2024` gives `raw_orders2024`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()
    name = re.sub(r"[^a-z0-9_]", "_", words)
    taken = keyword.iskeyword(name) or name in ("dd", "dy", "pl", "pathlib", class_name)
    return f"{name}_table" if taken else name
