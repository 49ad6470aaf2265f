"""Write literals as ruff does."""


def string_literal(text: str) -> str:
    """A string literal with the quotes that ruff prefers."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = "".join(c if c in "'\"" else repr(c)[1:-1] for c in text)
    return f"{quote}{escaped.replace(quote, f'\\{quote}')}{quote}"
