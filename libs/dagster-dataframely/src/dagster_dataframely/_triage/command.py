"""List, show and export the quarantines of a code location, for the command."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from dagster_dataframely import _names
from dagster_dataframely._cells import REDACTED
from dagster_dataframely._quarantine.read import concat, unpivot
from dagster_dataframely._text import count, printable
from dagster_dataframely._triage.quarantines import Quarantine
from dagster_dataframely._triage.tables import text_cells, write_rows, write_table
from dagster_dataframely.errors import ExportError, UnknownRuleError

Progress = Callable[[str], None]

_ROWS = "rows"


@dataclass
class _Counts:
    """What a quarantine holds."""

    rows: int = 0
    partitions: int = 0
    by_rule: Counter[str] = field(default_factory=Counter)


def list_quarantines(quarantines: Iterable[Quarantine], progress: Progress) -> list[str]:
    """A table of quarantines: partitions that have error rows, rows, and rows by rule, worst first."""
    counted = [(quarantine, _count(quarantine, progress)) for quarantine in quarantines]
    counted.sort(key=lambda pair: (-pair[1].rows, pair[0].name))
    lines = []
    for quarantine, found in counted:
        of_all = "-"
        if quarantine.spec.partitions_def is not None:
            of_all = f"{found.partitions:,} of {len(quarantine.partition_keys):,}"
        head = [printable(quarantine.name), of_all, f"{found.rows:,}"]
        for rule, rows in found.by_rule.most_common() or [("", 0)]:
            lines.append([*head, printable(rule), f"{rows:,}" if rule else ""])
            head = [""] * len(head)
    if not lines:
        return ["No asset of the code location has a quarantine."]
    header = ["quarantine", "partitions", "rows", "rule", "fail it"]
    return write_table(header, lines, ["partitions", "rows", "fail it"])


def _count(quarantine: Quarantine, progress: Progress) -> _Counts:
    found = _Counts()
    for _, frame in quarantine.frames(progress=progress):
        by_rule = unpivot(frame).group_by(_names.RULE).agg(pl.len().alias(_ROWS))
        rules = by_rule.collect(engine="streaming")
        rows = _height(frame)
        found.rows += rows
        found.partitions += rows > 0
        found.by_rule.update(dict(rules.sort(_names.RULE).iter_rows()))
    return found


def _height(rows: pl.LazyFrame) -> int:
    """Count rows; without a column, Polars counts none of a PyArrow dataset (1.44)."""
    height: int = rows.select(pl.col(_names.FAILED_RULES).len()).collect(engine="streaming").item()
    return height


@dataclass(frozen=True)
class Selection:
    """Which error rows are wanted, and of which columns the values."""

    quarantine: Quarantine
    partition: str | None = None
    rule: str | None = None
    show_redacted: bool = False

    @property
    def redacted(self) -> frozenset[str]:
        """The columns whose values are left out."""
        return frozenset() if self.show_redacted else self.quarantine.redacted

    def frames(self, progress: Progress) -> Iterator[pl.LazyFrame]:
        """Rows with a list of the rules that they fail, partition by partition.

        Raises:
            UnknownRuleError: The table has no such rule.
        """
        known = self.quarantine.rules.values()
        if self.rule is not None and known and self.rule not in known:
            raise UnknownRuleError(self.quarantine.name, self.rule, [*known])
        keys: Sequence[str] | None = None if self.partition is None else [self.partition]
        for _, frame in self.quarantine.frames(keys, progress):
            wanted = pl.col(_names.FAILED_RULES).list.contains(pl.lit(self.rule, pl.String))
            yield frame if self.rule is None else frame.filter(wanted)


def show_rows(selection: Selection, limit: int, width: int, progress: Progress) -> list[str]:
    """Rows, the rules that they fail first, and a line that says how many there are in all."""
    shown: list[pl.LazyFrame] = []
    room, rows = limit, 0
    for frame in selection.frames(progress):
        height = _height(frame)
        if height and room:
            shown.append(frame.head(room))
            room -= min(room, height)
        rows += height
    if not shown:
        return [f"{count(rows, 'row')}."]
    found = _put_rules_first(concat(shown)).collect(engine="streaming")
    lines = write_rows(found.columns, text_cells(found, selection.redacted), width)
    of_all = "" if found.height == rows else f" of {count(rows, 'row')}"
    return [*lines, "", f"{found.height:,}{of_all}." if of_all else f"{count(rows, 'row')}."]


def _put_rules_first(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Without what tells where a row is from, but for its partition; rules as text."""
    own = (_names.PARTITION, _names.FAILED_RULES)
    found = rows.collect_schema()
    hidden = {_names.PARTITION, _names.FAILED_RULES, _names.RUN_ID, _names.WRITTEN_AT}
    columns = [name for name in found if name not in hidden]
    rules = pl.col(_names.FAILED_RULES).list.join(", ")
    return rows.select(*[name for name in own[:1] if name in found], rules, *columns)


def export_rows(selection: Selection, to: Path, progress: Progress) -> str:
    """Write rows to a CSV or Parquet file that must not be there; redacted values are left out.

    Raises:
        ExportError: The file is there, has another ending, or cannot hold a column.
    """
    suffix = to.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ExportError(str(to), "it ends in neither `.csv` nor `.parquet`")
    if to.exists():
        raise ExportError(str(to), "it is already there, and may have corrections in it")
    frames = list(selection.frames(progress))
    rows = concat(frames) if frames else selection.quarantine.rows([])
    rows = rows.with_columns(
        pl.when(pl.col(name).is_not_null()).then(pl.lit(REDACTED)).alias(name)
        for name in rows.collect_schema()
        if name in selection.redacted
    )
    if suffix == ".csv":
        rows = rows.with_columns(pl.col(_names.FAILED_RULES).list.join(", "))
        nested = [name for name, dtype in rows.collect_schema().items() if dtype.is_nested()]
        if nested:
            raise ExportError(str(to), f"CSV cannot hold `{printable(nested[0])}`; use `.parquet`")
    unfinished = to.with_name(f".{secrets.token_hex(8)}.unfinished")
    try:
        if suffix == ".csv":
            rows.sink_csv(unfinished)
        else:
            rows.sink_parquet(unfinished)
        unfinished.rename(to)
    except OSError as error:
        raise ExportError(str(to), f"it cannot be written ({error.strerror or error})") from error
    finally:
        unfinished.unlink(missing_ok=True)
    written = pl.scan_csv(to) if suffix == ".csv" else pl.scan_parquet(to)
    height = written.select(pl.len()).collect().item()
    return f"{count(height, 'row')} written to {printable(str(to))}."
