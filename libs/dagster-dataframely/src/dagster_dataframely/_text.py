"""Put names and numbers into words for people to read."""

from collections.abc import Sequence


def count(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(part: int, whole: int) -> str:
    """A share in percent: only none is 0 %, and only all are 100 %."""
    if not part:
        return "0%"
    portion = part / whole
    if portion < 0.001:
        return "< 0.1%"
    return "> 99.9%" if 0.9995 <= portion < 1 else f"{portion:.1%}"


def cut(text: str, length: int) -> str:
    """The beginning of a text, in at most `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def cut_start(text: str, length: int) -> str:
    """The end of a text, in at most `length` characters."""
    return text if len(text) <= length else f"…{text[1 - length :]}"


def list_within(
    length: int, head: str, parts: Sequence[str], tail: str = "", separator: str = ", "
) -> str:
    """A text with a list of at most five parts, fewer where it would get longer than `length`.

    No part is cut, and the first one is always shown.
    """

    def text(shown: int) -> str:
        hidden = len(parts) - shown
        more = f" and {hidden:,} more" if hidden else ""
        return f"{head}{separator.join(parts[:shown])}{more}{tail}"

    shown = min(len(parts), 5)
    while shown > 1 and len(text(shown)) > length:
        shown -= 1
    return text(shown)


def type_name(value: object) -> str:
    """The type of a value as a user imports it: `pandas.DataFrame`, `list`."""
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    return kind.__qualname__ if root == "builtins" else f"{root}.{kind.__qualname__}"


def printable(text: str) -> str:
    """A text on one line: control characters, line breaks and marks that reorder are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quote_identifier(name: str) -> str:
    """A name as SQL takes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'
