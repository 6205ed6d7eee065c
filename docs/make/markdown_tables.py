"""Pieces of a page in Markdown."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.saved import files


def write_page(results: Path, out: Path, page: Callable[[Any], str], held: str, hint: str) -> None:
    """Write the text that `page` makes of the document in the JSON file `results`. Raises HiresxError, with `hint`, for
    a file that does not hold what it asks for, which is called `held`."""
    try:
        text = page(json.loads(results.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HiresxError(f"{results} holds no {held}: {type(error).__name__}: {error}", hint) from None
    files.write_text(out, text)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; columns whose cells are all numbers, or empty, are set to the right."""
    rows = [[cell(value) for value in row] for row in rows]
    numeric = [all(row[n].replace(".", "").isdigit() or not row[n] for row in rows) for n in range(len(columns))]
    rule = ["---:" if right and rows else "---" for right in numeric]
    return "".join(f"| {' | '.join(row)} |\n" for row in [list(columns), rule, *rows])


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return str(value).replace("|", "\\|")
