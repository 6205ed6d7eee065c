"""Homogeneous index directions of blocks: periodic directions in which all neighbouring nodes have the same
displacement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.patches import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Range, direction

# Index directions in the order of the axes of an array.
LETTERS = "kji"
# Relative difference up to which the steps along a direction count as equal.
SAME_STEP = 1e-6


@dataclass(frozen=True)
class Homogeneous:
    """A homogeneous direction of a block. `step`: the vector (x, y, z) from each node to the next, in L. `nodes`: the
    number of different nodes; if the last node is the periodic image of the first, it does not count."""

    step: tuple[float, float, float]
    nodes: int


def step(coordinates: Sequence[Any], axis: int) -> np.ndarray | None:
    """Return the vector (3,) from each node to the next along `axis` if it is the same for all nodes, to 1e-6 of its
    length; otherwise, and if it is 0, None. `coordinates`: x, y, z, arrays (nk, nj, ni); the vector has their unit.
    `axis`: an axis of these arrays, 0 (k), 1 (j) or 2 (i)."""
    n, other = coordinates[0].shape[axis], 0 if axis else 1
    first, last = ([c[tuple(at if a == axis else 0 for a in range(3))] for c in coordinates] for at in (0, -1))
    mean = (np.array(last, dtype=float) - np.array(first, dtype=float)) / (n - 1)
    most = SAME_STEP * np.linalg.norm(mean)
    if most == 0.0:  # around a pole
        return None
    for at in range(coordinates[0].shape[other]):  # plane by plane: the coordinates may be larger than the memory
        plane = tuple(slice(at, at + 1) if a == other else slice(None) for a in range(3))
        if any(np.abs(np.diff(c[plane], axis=axis) - m).max() > most for c, m in zip(coordinates, mean, strict=True)):
            return None
    return mean


def homogeneous(decomposition: Decomposition, block: int, over: Sequence[str]) -> dict[str, Homogeneous]:
    """Return the step and the number of nodes for each of the index directions `over` ("i", "j", "k") of a block, which
    must be homogeneous: the grid is uniform along the direction, and no face with a boundary condition is normal to it.
    `decomposition`: the blocks, not divided among ranks. `block`: the number of the block. Raises HiresxError, naming
    block and direction, for a direction that is not homogeneous."""
    return {letter: _find(decomposition, block, letter) for letter in over}


def all_homogeneous(decomposition: Decomposition) -> list[str]:
    """Return the index directions "i", "j", "k" that are homogeneous in every block: the grid is uniform along the
    direction, and no face with a boundary condition is normal to it. `decomposition`: the blocks, not divided among
    ranks."""

    def suits(letter: str) -> bool:
        try:
            return all(_find(decomposition, n, letter) for n in range(len(decomposition.blocks)))
        except HiresxError:
            return False

    return [letter for letter in AXES if suits(letter)]


def _find(decomposition: Decomposition, number: int, letter: str) -> Homogeneous:
    block, d = decomposition.blocks[number], AXES.index(letter)

    def refusal(reason: str) -> HiresxError:
        return HiresxError(
            f"block '{block.name}' is not homogeneous along {letter}: {reason}",
            "name directions that are periodic with equal steps, or leave average.over out",
        )

    n = block.size[d]
    if n == 1:
        raise refusal("it has one node there")
    ends = [p for p in decomposition.patches if p.block == number and direction(p.face) == d]
    if ends:
        raise refusal(f'it ends at {ends[0].face} with a boundary condition "{ends[0].condition.type}"')
    found = step(block.coordinates, 2 - d)
    if found is None:
        raise refusal("the steps between its nodes differ, and with them the metrics")
    shared = any(
        c.block == c.donor == number and direction(c.face) == d and abs(c.offset[d]) == n - 1
        for c in decomposition.connections
    )
    return Homogeneous(triple(found.tolist()), n - shared)


def collapse_box(box: Range, over: Sequence[str]) -> Range:
    """Return the half-open index ranges (i, j, k) of the mean over the directions `over`, such as ("i", "k"), of values
    in `box`: (0, 1) along these directions, and the range of `box` along the others."""
    return triple((0, 1) if letter in over else ends for letter, ends in zip(AXES, box, strict=True))
