"""Shell commands in hints, quoted so that a user can paste them whatever characters the file names contain."""

import shlex
from collections.abc import Iterable
from pathlib import Path


def quote(text: str | Path) -> str:
    """Return `text` quoted as one word of a shell command. A path that begins with "-" gets the prefix "./", so that it
    is not taken for an option."""
    path = str(text)
    return shlex.quote(f"./{path}" if path.startswith("-") and isinstance(text, Path) else path)


def quote_all(texts: Iterable[str | Path]) -> str:
    """Return all texts, each quoted as one word of a shell command, separated by spaces."""
    return " ".join(map(quote, texts))


def quote_for_comment(text: str | Path) -> str:
    """Return `text` quoted for a comment of a shell script: on one line, and without control characters."""
    shown = quote(text)
    if shown.isprintable():
        return shown
    return "$'" + "".join(c if c.isprintable() else _escape(c) for c in _escape_backslashes(str(text))) + "'"


def _escape_backslashes(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _escape(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))
