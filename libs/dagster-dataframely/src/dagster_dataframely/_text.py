"""Put names and numbers into words for people to read."""


def count(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def cut(text: str, length: int) -> str:
    """The beginning of a text, in at most `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def printable(text: str) -> str:
    """A text on one line: control characters, line breaks and marks that reorder are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
