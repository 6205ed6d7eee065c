"""Pieces of a page in Markdown."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.saved import files


def write_page(results: Path, out: Path, page: Callable[[Any], str], held: str, mend: str) -> None:
    """Write the text that `page` makes of the document in the JSON file `results`. Raises HiresxError, with `mend`, for
    a file that does not hold what it asks for, which is called `held`."""
    try:
        text = page(json.loads(results.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HiresxError(f"{results} holds no {held}: {type(error).__name__}: {error}", mend) from None
    with files.replacing(out) as temporary:
        temporary.write_text(text, encoding="utf-8")


def from_results(
    module: str,
    document: str | None,
    out: str,
    make: Callable[[list[Path], Path], None],
    arguments: Sequence[str] | None,
) -> int:
    """The command line of `module`, which makes something of stored results; returns its exit status. `document`: what
    the module says of itself; `out`: what --out names."""
    says = (document or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=says)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files of results")
    parser.add_argument("--out", type=Path, required=True, help=out)
    asked = parser.parse_args(arguments)
    try:
        make(asked.results, asked.out)
    except HiresxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


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


def section(heading: str, text: str, *parts: str) -> str:
    return "\n".join([f"{heading}\n", f"{text}\n", *parts])


def counted(names: Iterable[str]) -> list[str]:
    """Each name once, with how often it was there if more than once: "8 NVIDIA H200"."""
    return [name if count == 1 else f"{count} {name}" for name, count in Counter(names).items()]
