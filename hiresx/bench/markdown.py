"""Pieces of a page in Markdown."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any


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
