"""The case file from which a grid of one's own starts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hiresx.case import toml
from hiresx.errors import HiresxError
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
    for row, others in _by_face(found.get("meets", ())):
        lines += [
            f"# MEETS {others}, without being joined to it: nothing flows through this",
            "[[boundary]]",
            f"block = {_quoted(row['block'])}",
            f'faces = ["{row["face"]}"]',
            *_range(row),
            'type = "slip-wall"',
            "",
        ]
    met = {(row["block"], row["face"]) for row in found.get("meets", ())}
    for row in found.get("left", ()):
        if (row["block"], row["face"]) not in met:
            lines.append(f"# {row['block']} {row['face']}: around {row['centre']}, outward normal {row['normal']}")
    if found.get("left"):
        lines += ["[[boundary]]", 'faces = "all"', 'type = "far-field"', STATE, ""]
    return "\n".join(lines)


def _by_face(meets: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """(one row per face that meets others, its nodes those around all of them; what it meets in words)."""
    faces: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in meets:
        faces.setdefault((row["block"], row["face"]), []).append(row)
    for rows in faces.values():
        ranges = [[tuple(map(int, part.split(":"))) for part in row["nodes"].split()] for row in rows]
        around = [(min(lo for lo, _ in ends), max(hi for _, hi in ends)) for ends in zip(*ranges, strict=True)]
        others = dict.fromkeys(f"{row['other']}, face {row['face of it']}" for row in rows)
        yield {**rows[0], "nodes": " ".join(f"{lo}:{hi}" for lo, hi in around)}, "; ".join(others)


def _quoted(text: str) -> str:
    return toml.dumps({"t": text}).split("=", 1)[1].strip()


def _range(row: dict[str, Any]) -> list[str]:
    """The line `range` of a part of a face."""
    normal = "ijk".index(row["face"][0])
    pairs = [part.split(":") for part in row["nodes"].split()]
    parts = [f"{axis} = [{lo}, {hi}]" for axis, (lo, hi) in zip("ijk", pairs, strict=True)]
    return [f"range = {{ {', '.join(p for d, p in enumerate(parts) if d != normal)} }}"]
