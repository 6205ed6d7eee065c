"""The case file from which a grid of one's own starts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hiresx.case import toml
from hiresx.errors import HiresxError
from hiresx.grid.patched import PATCHED
from hiresx.shell import word

HEAD = """\
# A case for the grid {file}.
# What flows past it is for you to say: every boundary is a far field of gas at rest, so that the case runs as it is.
# `hiresx check`, then `hiresx run` with the folder of this file.

title = {title}
"""
STATE = "state = { rho = 1.0, p = 0.7142857142857143 }"


def case_text(path: Path, found: dict[str, Any], connectivity: Path | None = None) -> str:
    """The text of a case.toml for the grid file `path`, of which `hiresx.grid.survey.survey` says `found`.

    Raises HiresxError for a file of which no grid can be made.
    """
    if "refused" in found:
        raise HiresxError(found["refused"], f"hiresx info {word(path)} says what the file holds")
    lines = [HEAD.format(file=path.name, title=_quoted(f"Flow on the grid {path.name}"))]
    lines += ["[grid]", f"file = {_quoted(str(path.resolve()))}"]
    if connectivity is not None:
        lines.append(f"connectivity = {_quoted(str(connectivity.resolve()))}")
    lines += [f"# {line}" for line in found.get("done", ())]
    lines += ["", "[time]", "steps = 100", "", "[initial]", STATE, ""]
    for name in dict.fromkeys(row["region"] for row in found.get("regions", ())):
        homes = [f"{row['block']} {row['face']}" for row in found["regions"] if row["region"] == name]
        lines += [f"# {', '.join(homes[:6])}{' ...' if len(homes) > 6 else ''}"]
        lines += ["[[boundary]]", 'faces = "all"', f"range = {_quoted(name)}", 'type = "far-field"', STATE, ""]
    for row, others in _apart(found.get("meets", ())):
        inside = row["face of it"] == "inside"
        what = (
            "nothing flows through this" if inside else 'the flow goes on by interpolation; a wall would be "slip-wall"'
        )
        lines += [
            f"# MEETS {others}, without being joined to it: {what}",
            "[[boundary]]",
            f"block = {_quoted(row['block'])}",
            f'faces = ["{row["face"]}"]',
            *_range(row),
            f'type = "{"slip-wall" if inside else PATCHED}"',
            "",
        ]
    met = {(row["block"], row["face"]) for row in found.get("meets", ())}
    for row in found.get("left", ()):
        if (row["block"], row["face"]) not in met:
            way = f"outward normal {row['normal']}" if any(row["normal"]) else "closed"
            lines.append(f"# {row['block']} {row['face']}: around {row['centre']}, {way}")
    if found.get("left"):
        lines += ["[[boundary]]", 'faces = "all"', 'type = "far-field"', STATE, ""]
    return "\n".join(lines)


def _apart(meets: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """(row, what it meets in words); the rows of one face that share nodes as one: a node has one condition."""
    left: list[tuple[dict[str, Any], str]] = []
    for row in meets:
        words = f"{row['other']}, face {row['face of it']}"
        for found, others in list(left):
            own, its = _ends(row), _ends(found)
            together = all(a[0] < b[1] and b[0] < a[1] for a, b in zip(own, its, strict=True))
            if together and (found["block"], found["face"]) == (row["block"], row["face"]):
                left.remove((found, others))
                nodes = " ".join(f"{min(a[0], b[0])}:{max(a[1], b[1])}" for a, b in zip(own, its, strict=True))
                row, words = {**found, "nodes": nodes}, f"{others}; {words}"
        left.append((row, words))
    return left


def _ends(row: dict[str, Any]) -> list[tuple[int, int]]:
    first, second, third = (part.split(":") for part in row["nodes"].split())
    return [(int(lo), int(hi)) for lo, hi in (first, second, third)]


def _quoted(text: str) -> str:
    return toml.dumps({"t": text}).split("=", 1)[1].strip()


def _range(row: dict[str, Any]) -> list[str]:
    """The line `range` of a part of a face."""
    normal = "ijk".index(row["face"][0])
    pairs = [part.split(":") for part in row["nodes"].split()]
    parts = [f"{axis} = [{lo}, {hi}]" for axis, (lo, hi) in zip("ijk", pairs, strict=True)]
    return [f"range = {{ {', '.join(p for d, p in enumerate(parts) if d != normal)} }}"]
