"""A first case file for a grid file of the user."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hiresx.base.shell import quote
from hiresx.case import toml
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Range
from hiresx.grid.patched import PATCHED

HEAD = """\
# A case for the grid {file}.
# The grid does not say what flows there. Here the gas is at rest, and each face that the file does not call a wall is a
# far field of this gas: change both.{viscous}
# `hiresx check`, then `hiresx run` with the folder of this file.

title = {title}
"""
VISCOUS = """
# Without `reynolds` in a table [gas] it is inviscid, at walls without slip too."""
STATE = "state = { rho = 1.0, p = 0.7142857142857143 }"
FAR, SLIP, NO_SLIP = "far-field", "slip-wall", "no-slip-wall"
# Kinds of boundary conditions in CGNS and other programs, by the beginning or a part of their name, and the types of
# HiResX.
KINDS = (("bcwallinviscid", SLIP), ("bcwall", NO_SLIP), ("bcsymmetryplane", "symmetry"), ("bc", FAR))
NAMES = (("inviscid", SLIP), ("wall", NO_SLIP), ("solid", NO_SLIP), ("symmetry", "symmetry"))

# Ways in which a case treats a face that touches another block without being connected to it.
Way = Literal["patched", "closes", "one step", "over", "wall"]
WAYS: dict[Way, tuple[str, str]] = {
    "patched": (PATCHED, 'the flow goes on by interpolation; a wall would be "slip-wall"'),
    "closes": ("periodic", "one spacing apart, the last node of a ring left out: the flow goes on"),
    "one step": (
        SLIP,
        'one spacing apart: nothing flows through this; a [[connection]] with layout = "offset" of a connectivity file '
        "joins them",
    ),
    "over": (FAR, "blocks over each other are computed each by itself: nothing of one reaches the other"),
    "wall": (SLIP, "a gap, or a plate between, over which nothing can be interpolated: nothing flows through this"),
}


@dataclass(frozen=True)
class Contact:
    """Nodes of a face that coincide or nearly coincide with faces of other blocks without a connection. `block` and
    `face`: the names of the block and the face. `nodes`: their half-open index ranges (i, j, k). `others`: a
    description of the other blocks. `way`: how the new case treats the nodes (`WAYS`)."""

    block: str
    face: str
    nodes: Range
    others: str
    way: Way


def contacts(found: dict[str, Any]) -> list[Contact]:
    """Return the face nodes that lie on or near other blocks without a connection, and how a new case may treat them.
    `found`: the report on the grid by `hiresx.grid.grid_report`. Entries of one face that share nodes are combined,
    since a node has only one condition."""
    left: list[Contact] = []
    for row in found.get("meets", ()):
        itself = row["block"] == row["other"] and row["face"][0] == row["face of it"][0]
        step: Way = "closes" if itself else "one step"
        ways: dict[str, Way] = {"over it": "over", "on it": "patched"}
        way = ways.get(row["how"], step)
        words = f"{row['other']}, {'over it' if way == 'over' else 'face ' + row['face of it']}"
        made = Contact(row["block"], row["face"], _range_of(row["nodes"]), words, way)
        for other in list(left):
            together = all(a[0] < b[1] and b[0] < a[1] for a, b in zip(made.nodes, other.nodes, strict=True))
            if together and (other.block, other.face) == (made.block, made.face):
                left.remove(other)
                first, second, third = (
                    (min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(made.nodes, other.nodes, strict=True)
                )
                either: Way = PATCHED if PATCHED in (made.way, other.way) else other.way
                others = f"{other.others}; {made.others}"
                made = replace(made, nodes=(first, second, third), others=others, way=either)
        left.append(made)
    return left


def case_text(
    path: Path, found: dict[str, Any], connectivity: Path | None = None, met: Sequence[Contact] | None = None
) -> str:
    """Return the text of a first case.toml for the grid file `path` of a user, with boundary conditions guessed from
    the file. `found`: the report on the grid by `hiresx.grid.grid_report`. `connectivity`: the connectivity file of a
    Plot3D grid, or None. `met`: the contacts of faces without connections and how they are treated, by default
    `contacts(found)`. Raises HiresxError for a file that gives no valid grid."""
    if "refused" in found:
        raise HiresxError(found["refused"], f"hiresx info {quote(path)} says what the file holds")
    met = contacts(found) if met is None else met
    regions = [_region(name, found["regions"]) for name in dict.fromkeys(r["region"] for r in found.get("regions", ()))]
    viscous = VISCOUS if any(f'type = "{NO_SLIP}"' in lines for lines in regions) else ""
    lines = [HEAD.format(file=path.name, title=_quote(f"Flow on the grid {path.name}"), viscous=viscous)]
    lines += ["[grid]", f"file = {_quote(str(path.resolve()))}"]
    if connectivity is not None:
        lines.append(f"connectivity = {_quote(str(connectivity.resolve()))}")
    lines += [f"# {line}" for line in found.get("done", ())]
    lines += [f"# BROKEN and left out: {row['patch']}: {row['why']}" for row in found.get("broken", ())]
    if "broken" in found:
        lines.append(f"drop = [{', '.join(_quote(row['patch']) for row in found['broken'])}]")
    closed = dict.fromkeys(contact.face[0] for contact in met if contact.way == "closes")
    if closed:
        lines.append(f"period = {{ {', '.join(f'{axis} = [0.0, 0.0, 0.0]' for axis in closed)} }}")
    lines += ["", "[time]", "steps = 100", "", "[initial]", STATE, ""]
    lines += [line for region in regions for line in region]
    lines += [line for contact in met for line in _condition(contact)]
    held = {(contact.block, contact.face) for contact in met}
    free = [row for row in found.get("left", ()) if (row["block"], row["face"]) not in held]
    for row in free:
        way = f"outward normal {row['normal']}" if any(row["normal"]) else "closed"
        if "collapsed" in row:
            lines += [f"# COLLAPSED to a line: {row['block']} {row['face']}: around {row['centre']}", "[[boundary]]"]
            lines += [f"block = {_quote(row['block'])}", f'faces = ["{row["face"]}"]', 'type = "pole"', ""]
    for row in (row for row in free if "collapsed" not in row):
        way = f"outward normal {row['normal']}" if any(row["normal"]) else "closed"
        lines.append(f"# {row['block']} {row['face']}: around {row['centre']}, {way}")
    if found.get("left"):
        lines += ["[[boundary]]", 'faces = "all"', f'type = "{FAR}"', STATE, ""]
    return "\n".join(lines)


def type_of(name: str, kind: str) -> str:
    """Return the type of boundary condition to suggest for a region of a grid file. It follows from the `kind` in the
    file (a CGNS name such as "BCWall") or, if there is none, from the `name` of the region."""
    for words, among in ((kind.split(",")[0], KINDS), (name, NAMES)):
        for part, type_ in among:
            if words.lower().startswith(part) if among is KINDS else part in words.lower():
                return type_
    return FAR


def _region(name: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the condition of a region; patched regions need none."""
    own = [row for row in rows if row["region"] == name]
    homes = [f"{row['block']} {row['face']}" for row in own]
    kind = own[0].get("kind", "")
    lines = [f"# {', '.join(homes[:6])}{' ...' if len(homes) > 6 else ''}{f': {kind}' if kind else ''}"]
    if name == PATCHED:
        return [f"{lines[0]}: patched, which needs no condition", ""]
    type_ = type_of(name, kind)
    lines += ["[[boundary]]", 'faces = "all"', f"range = {_quote(name)}", f'type = "{type_}"']
    return [*lines, *([STATE] if type_ == FAR else []), ""]


def _condition(contact: Contact) -> Iterator[str]:
    type_, words = WAYS[contact.way]
    axis = contact.face[0]
    if contact.way == "closes" and contact.face.endswith("max"):
        return  # reported with the other end
    yield f"# MEETS {contact.others}, without being joined: {words}"
    yield from ("[[boundary]]", f"block = {_quote(contact.block)}")
    if contact.way == "closes":
        yield f'faces = ["{axis}min", "{axis}max"]'
    else:
        yield f'faces = ["{contact.face}"]'
        ends = [f"{a} = [{lo}, {hi}]" for a, (lo, hi) in zip(AXES, contact.nodes, strict=True) if a != axis]
        yield f"range = {{ {', '.join(ends)} }}"
    yield f'type = "{type_}"'
    if type_ == FAR:
        yield STATE
    yield ""


def _range_of(nodes: str) -> Range:
    first, second, third = (part.split(":") for part in nodes.split())
    return (int(first[0]), int(first[1])), (int(second[0]), int(second[1])), (int(third[0]), int(third[1]))


def _quote(text: str) -> str:
    return toml.dumps({"t": text}).split("=", 1)[1].strip()
