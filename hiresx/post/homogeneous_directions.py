"""Homogeneous index directions of the grid of a run with one block, from its case and coordinates."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from hiresx.decomposition.homogeneous import LETTERS, step
from hiresx.errors import HiresxError

# Generators whose period is the length of the box. Along an axis that `grid.periodic` does not name they have nodes at
# both ends.
_BOXES = ("box", "wavy")
# Largest number of names of blocks in a message.
SHOWN = 4


def only_block(tree: Any, what: str, case: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the name and the xarray node of the only block in `tree`, the fields of a run. `what`: the name of the
    analysis, for error messages. `case`: the case of the run, with defaults filled in. Raises HiresxError for several
    blocks, and for a case with levels of refinement."""
    blocks = list(tree.children.items())
    if case.get("refine"):
        raise HiresxError(
            f"{what} are those of one block, and do not go with [refine]", "leave refine out and run again"
        )
    if len(blocks) != 1:
        names = ", ".join(f"'{name}'" for name, _ in blocks[:SHOWN])
        more = f" and {len(blocks) - SHOWN} more" if len(blocks) > SHOWN else ""
        raise HiresxError(
            f"{what} are those of one block, and this grid has {len(blocks)}: {names}{more}", "take a grid of one block"
        )
    return blocks[0]


def conditions(case: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the boundary condition of each face of a grid with one block: the table [[boundary]] of `case` that
    applies, by the name of the face, such as "imin"."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in case.get("boundary") or ():
        faces = entry.get("faces")
        for face in [f"{d}{end}" for d in "ijk" for end in ("min", "max")] if faces == "all" else faces or ():
            found.setdefault(face, entry)
    return found


def faces_of(case: Mapping[str, Any], kinds: Sequence[str]) -> set[str]:
    """Return the names of the faces of a grid with one block, such as "imin", whose boundary condition in `case` has
    one of the types `kinds`."""
    return {face for face, entry in conditions(case).items() if entry["type"] in kinds}


def axes(
    case: Mapping[str, Any],
    coordinates: Sequence[np.ndarray],
    over: str | None = None,
    averaged: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> dict[int, np.ndarray]:
    """Return the homogeneous axes of arrays (nk, nj, ni), 0 for k to 2 for i, with the vector (3,) from node to node
    along each axis. A direction is homogeneous if it is periodic and uniform. `case`: the case with defaults filled in.
    `coordinates`: x, y and z, each (nk, nj, ni). `over`: the index directions to average over, such as "i,k"; by
    default all homogeneous ones. `averaged`: directions over which the run has already averaged (key `average.over`):
    for each letter a dictionary whose entry "step" is the vector from node to node. Raises HiresxError for a direction
    that is not homogeneous, for a direction of `averaged` that `over` leaves out, and for a grid without a homogeneous
    direction."""
    periodic = faces_of(case, ["periodic"])
    found = {letter: (LETTERS.index(letter), np.array(known["step"])) for letter, known in averaged.items()}
    for axis, letter in enumerate(LETTERS):
        if coordinates[0].shape[axis] > 1 and {f"{letter}min", f"{letter}max"} <= periodic:
            mean = step(coordinates, axis)
            if mean is not None:
                found[letter] = axis, mean
    there = ", ".join(found) or "none"
    wanted = [letter.strip() for letter in over.split(",")] if over else list(found)
    for letter in wanted:
        if letter not in found:
            raise HiresxError(f'index direction "{letter}" is not periodic and uniform', f"such directions: {there}")
    if left_out := [letter for letter in averaged if letter not in wanted]:
        raise HiresxError(f"the averages are over {left_out[0]} already (average.over)", f"name it: {there}")
    if not wanted:
        raise HiresxError("no index direction is periodic and uniform", "take a grid that has one, e.g. a channel")
    return dict(sorted(found[letter] for letter in wanted))


def distinct(case: Mapping[str, Any], steps: Mapping[int, np.ndarray], shape: Sequence[int]) -> dict[str, slice]:
    """Return the range of distinct nodes along each homogeneous direction, as a slice by index direction ("i", "j" or
    "k"). If the last node is the periodic image of the first, it is left out. `case`: the case with defaults filled in.
    `steps`: for each homogeneous axis (0: k, 1: j, 2: i) the vector (3,) from node to node. `shape`: (nk, nj, ni)."""
    grid = case.get("grid") or {}
    periods = grid.get("period") or {}
    found = {}
    for axis, vector in steps.items():
        period = periods.get(LETTERS[axis])
        given = np.linalg.norm(period) if isinstance(period, list | tuple) else 0.0
        if grid.get("generator") in _BOXES:
            given = grid["upper"][2 - axis] - grid["lower"][2 - axis]
        n = shape[axis]
        twice = n > 1 and abs(given / np.linalg.norm(vector) - (n - 1)) < 0.5
        found[LETTERS[axis]] = slice(n - twice)
    return found
