"""Homogeneous index directions of a block: periodic, with the same step between all neighbouring nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hiresx.errors import HiresxError

# Index directions in the order of the axes of an array.
LETTERS = "kji"
# Share of a step by which steps of a uniform direction may differ.
SAME_STEP = 1e-6
# Names of blocks that a message lists.
SHOWN = 4


def only_block(tree: Any, what: str, case: Mapping[str, Any]) -> tuple[str, Any]:
    """Name and node of the one block of `tree`, of a run of the resolved `case`. Raises HiresxError where there are
    more."""
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
    """The boundary condition that the resolved `case` gives to each face of the only block."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in case.get("boundary") or ():
        faces = entry.get("faces")
        for face in [f"{d}{end}" for d in "ijk" for end in ("min", "max")] if faces == "all" else faces or ():
            found.setdefault(face, entry)
    return found


def faces_of(case: Mapping[str, Any], kinds: Sequence[str]) -> set[str]:
    """Faces of the only block to which the resolved `case` gives a boundary condition of these types."""
    return {face for face, entry in conditions(case).items() if entry["type"] in kinds}


def step(coordinates: Sequence[np.ndarray], axis: int) -> np.ndarray | None:
    """Vector from each node to the next along `axis` of the coordinates x, y, z (nk, nj, ni); None if it differs
    between nodes."""
    steps = np.stack([np.diff(c, axis=axis) for c in coordinates])
    mean = steps.mean(axis=(1, 2, 3))
    apart = np.abs(steps - mean[:, None, None, None]).max()
    return mean if apart <= SAME_STEP * np.linalg.norm(mean) else None


def axes(case: Mapping[str, Any], coordinates: Sequence[np.ndarray], over: str | None = None) -> dict[int, np.ndarray]:
    """Return the homogeneous axes of arrays (nk, nj, ni), and the step (3,) along each: those that are periodic and
    uniform. `over`: the index directions to average over, "i,k"; default: all homogeneous ones. Raises HiresxError for
    a direction that is not homogeneous, and for a grid without one."""
    periodic = faces_of(case, ["periodic"])
    found = {}
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
    if not wanted:
        raise HiresxError("no index direction is periodic and uniform", "take a grid that has one, e.g. a channel")
    return dict(sorted(found[letter] for letter in wanted))


def distinct(case: Mapping[str, Any], steps: Mapping[int, np.ndarray], shape: Sequence[int]) -> dict[str, slice]:
    """The different nodes along each homogeneous axis, as a slice by index direction. In a grid whose last node is the
    periodic image of the first, one of the two is left out."""
    periods = (case.get("grid") or {}).get("period") or {}
    found = {}
    for axis, vector in steps.items():
        period = periods.get(LETTERS[axis])
        given = np.linalg.norm(period) if isinstance(period, list | tuple) else 0.0
        n = shape[axis]
        found[LETTERS[axis]] = slice(n - 1 if abs(given / np.linalg.norm(vector) - (n - 1)) < 0.5 else n)
    return found
