"""Find out what the texts of CSV files mean."""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from dagster_dataframely._infer.heads import guess_separator, read_source
from dagster_dataframely._schema.from_text import parse_text
from dagster_dataframely._schema.text_format import TextFormat

BATCH_ROWS = 100_000
"""How many rows are in memory together."""


_SAMPLE = 1_000
"""How many texts of a column tell what they may mean."""


_MOST = 0.99
"""The share of texts that have to mean something."""


_MAX_CATEGORIES, _REPEATED = 20, 5
"""How many distinct texts are categories, and how often each of them occurs on average."""


@dataclass(frozen=True)
class Meaning:
    """What the texts of a column mean."""

    dtype: pl.DataType
    formats: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `dd.text_format`, by name."""
    note: str = ""

    def parse(self, text: pl.Expr) -> pl.Expr:
        """The values of texts; null for others."""
        lists = {"formats", "true", "false"}
        found: dict[str, Any] = {n: tuple(v) if n in lists else v for n, v in self.formats.items()}
        return parse_text(text, self.dtype, TextFormat(**found), lambda expression: expression)


_TEXT = Meaning(pl.String())
_PADDED = r"^\s*[+-]?0\d"
_CENTS = pl.Decimal(18, 2)
_EITHER = "Day and month may be the other way round."


def _dates(*formats: str, note: str = "") -> Iterator[Meaning]:
    for format_ in formats:
        yield Meaning(pl.Date(), {"formats": [format_]}, note)
        for time in (" %H:%M:%S", " %H:%M"):
            yield Meaning(pl.Datetime("us"), {"formats": [format_ + time]}, note)


def _numbers(**formats: str) -> Iterator[Meaning]:
    for dtype in (pl.Int64(), _CENTS, pl.Float64()):
        yield Meaning(dtype, formats)


_MEANINGS = [
    Meaning(pl.Boolean()),
    *_numbers(),
    Meaning(pl.Date()),
    Meaning(pl.Datetime("us")),
    Meaning(pl.Datetime("us", "UTC")),
    Meaning(pl.Time()),
    *_dates("%d.%m.%Y", "%Y/%m/%d"),
    *_dates("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", note=_EITHER),
    *_numbers(thousands=","),
    *_numbers(decimal=","),
    *_numbers(decimal=",", thousands="."),
    Meaning(pl.Boolean(), {"true": ["yes"], "false": ["no"]}),
    Meaning(pl.Boolean(), {"true": ["Yes"], "false": ["No"]}),
    Meaning(pl.Boolean(), {"true": ["Y"], "false": ["N"]}),
]
"""What a column may mean; the first of those that most texts mean is taken."""


@dataclass
class Texts:
    """What has been seen of a column of texts."""

    meaning: Meaning
    texts: int = 0
    missing: bool = False
    lost: int = 0
    padded: bool = False
    example: str | None = None
    distinct: set[str] | None = field(default_factory=set)

    def see(self, texts: pl.Series, values: pl.Series) -> None:
        """Take more texts into account, and what they are taken for."""
        self.missing |= texts.has_nulls()
        self.texts += texts.len() - texts.null_count()
        lost = texts.filter(values.is_null() & texts.is_not_null())
        self.lost += lost.len()
        if self.meaning.dtype.is_numeric():
            self.padded |= bool(texts.str.contains(_PADDED).any())
        if self.example is None and lost.len():
            self.example = lost[0]
        if self.distinct is not None:
            self.distinct.update(texts.drop_nulls().unique().head(_MAX_CATEGORIES + 1))
            if len(self.distinct) > _MAX_CATEGORIES:
                self.distinct = None

    @property
    def mean_something_else(self) -> bool:
        """Whether too many are lost, or a code is taken for a number."""
        return self.padded or self.lost > self.texts * (1 - _MOST)


@dataclass(frozen=True)
class Drops:
    """One table of text, from one CSV file or several."""

    files: Sequence[Path]
    separator: str
    encoding: str | None
    nulls: Sequence[str]
    columns: Sequence[str]
    lacking: Mapping[str, Path]
    """For the columns that not every file has, one that has not."""
    scan: pl.LazyFrame
    """With numbers for names: Polars takes some names for patterns (1.35 to 2.1)."""


def open_drops(
    files: Sequence[Path],
    *,
    separator: str | None,
    encoding: str | None,
    nulls: Sequence[str],
    rows: int | None,
) -> Drops:
    """Look at the columns of CSV files, which are text."""
    sources = {path: read_source(path, encoding) for path in files}
    guessed = {path: guess_separator(path, source) for path, source in sources.items()}
    first = files[0]
    chosen = separator or ("\t" if first.suffix.lower() == ".tsv" else guessed[first])
    scan = functools.partial(
        pl.scan_csv,
        separator=chosen,
        null_values=list(nulls) or None,
        infer_schema=False,
        glob=False,
        n_rows=rows,
    )
    headers = {path: scan(source).collect_schema().names() for path, source in sources.items()}
    columns = list(dict.fromkeys(itertools.chain.from_iterable(headers.values())))
    places = {name: str(place) for place, name in enumerate(columns)}
    frames = [
        scan(source, new_columns=[places[name] for name in headers[path]])
        for path, source in sources.items()
    ]
    lacking = {
        name: path for path, header in headers.items() for name in columns if name not in header
    }
    table = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")
    table = table if rows is None else table.head(rows)
    return Drops(files, chosen, encoding, nulls, columns, lacking, table)


def find_meanings(drops: Drops) -> dict[str, Texts]:
    """What the texts of each column mean, by its place."""
    places = [str(place) for place in range(len(drops.columns))]
    meanings = {place: _guess(sample) for place, sample in _samples(drops, places).items()}
    while True:
        seen = {place: Texts(meaning[0]) for place, meaning in meanings.items()}
        expressions = [
            texts.meaning.parse(pl.col(place)).alias(place) for place, texts in seen.items()
        ]
        for batch in drops.scan.collect_batches(chunk_size=BATCH_ROWS, engine="streaming"):
            values = batch.lazy().select(expressions).collect(engine="in-memory")
            for place, texts in seen.items():
                texts.see(batch[place], values[place])
        wrong = [place for place, texts in seen.items() if texts.mean_something_else]
        if not wrong:
            return {place: _as_categories(texts) for place, texts in seen.items()}
        for place in wrong:
            meanings[place] = meanings[place][1:]


def _as_categories(texts: Texts) -> Texts:
    found = texts.distinct
    if texts.meaning == _TEXT and found and len(found) * _REPEATED <= texts.texts:
        texts.meaning = Meaning(pl.Enum(sorted(found)))
    return texts


def _samples(drops: Drops, places: Sequence[str]) -> dict[str, pl.Series]:
    """The first texts of each column."""
    found = dict.fromkeys(places, pl.Series(dtype=pl.String))
    for batch in drops.scan.collect_batches(chunk_size=BATCH_ROWS, engine="streaming"):
        for place, values in found.items():
            found[place] = pl.concat([values, batch[place].drop_nulls()]).head(_SAMPLE)
        if all(values.len() == _SAMPLE for values in found.values()):
            break
    return found


def _guess(sample: pl.Series) -> list[Meaning]:
    """What the texts may mean, the best first; text is the last."""
    if sample.is_empty():
        return [_TEXT]
    frame = sample.alias("text").to_frame()
    text = pl.col("text")
    plain = text.str.strip_chars()
    padded = frame.select(plain.str.contains(_PADDED).any()).item()
    cents = frame.select(plain.str.contains(r"[.,]\d\d$").all()).item()
    counts = {}
    for place, meaning in enumerate(_MEANINGS):
        if meaning.dtype.is_numeric() and padded:
            continue
        if meaning.dtype == _CENTS and not cents:
            continue
        counts[place] = frame.lazy().select(meaning.parse(text).count()).collect().item()
    best = sorted(counts, key=lambda place: -counts[place])
    enough = [place for place in best if counts[place] >= sample.len() * _MOST]
    found = [_MEANINGS[place] for place in enough]
    if found and found[0] not in [replace(other, formats=found[0].formats) for other in found[1:]]:
        found[0] = replace(found[0], note="")
    return [*found, _TEXT]
