"""Where a no-slip wall goes on behind its edges: differences along it are central there, else one-sided."""

from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Decomposition, Patch
from hiresx.device.interface import Backend
from hiresx.device.state import BlockState
from hiresx.grid.blocks import FACES, Range, direction, intersection, side

# Conditions behind whose faces there are nodes of the flow, as behind a connection.
_GO_ON = ("patched", "pole")


def wall_arguments(backend: Backend, state: BlockState, patch: Patch, cut: Decomposition) -> dict[str, Any]:
    """What kernels along the wall `patch` take besides its nodes; `cut`: all parts. `near` (2, 2, n2, n1), for
    the two directions of the face: 1 where the wall has a node before each node and behind it, else 0."""
    tangents = [e for e in range(3) if e != direction(patch.face)]
    n1, n2 = (patch.range[e][1] - patch.range[e][0] for e in tangents)
    near = np.zeros((2, 2, n2, n1))
    for sides, e, other in zip(near, tangents, tangents[::-1], strict=True):
        if e not in state.active:
            continue
        sides[...] = 1.0
        for upper, there in enumerate(sides):
            edge = there[:, -upper] if e < other else there[-upper]
            edge[...] = _goes_on(state, patch, cut, e, other, bool(upper))
    m1, m2 = (state.areas[e] for e in tangents)
    return {"n1": n1, "n2": n2, "near": backend.to_device(near.astype(state.real)), "m1": m1, "m2": m2}


def _goes_on(state: BlockState, patch: Patch, cut: Decomposition, e: int, other: int, upper: bool) -> np.ndarray:
    """Whether the wall goes on behind each node of an edge, the lower or upper one in direction `e`, along `other`."""
    last = patch.range[e][upper] - upper
    within = last != (state.size[e] - 1 if upper else 0)
    # What is behind the edge: the next nodes of the same face, or the face that bounds the block there.
    at = last + (1 if upper else -1) if within else last
    face = patch.face if within else FACES[2 * e + upper]
    behind = triple((at, at + 1) if a == e else patch.range[a] for a in range(3))
    start, end = patch.range[other]
    found = np.zeros(end - start, dtype=bool) if within else _over_connections(patch, cut, face, behind, other)
    goes_on = ("no_slip",) if within else _GO_ON
    for next_ in cut.patches:
        if next_ is patch or next_.block != patch.block or next_.face != face:
            continue
        shared = intersection(next_.range, behind)
        if shared is not None and next_.condition.kernel in goes_on:
            found[shared[other][0] - start : shared[other][1] - start] = True
    return found


def _over_connections(patch: Patch, cut: Decomposition, face: str, edge: Range, other: int) -> np.ndarray:
    """Of the nodes of `edge`, along the direction `other`, those behind which, over a connection of `face`, a wall goes
    on."""
    lo, hi = edge[other]
    found = np.zeros(hi - lo, dtype=bool)
    for c in cut.connections:
        if c.block != patch.block or c.face != face or (shared := intersection(c.range, edge)) is None:
            continue
        nodes = np.array([[at[0]] * (shared[other][1] - shared[other][0]) for at in shared])
        nodes[other] = np.arange(*shared[other])
        nodes[direction(face)] += side(face)
        there = c.donors(nodes)
        for wall in cut.patches:
            if wall.block == c.donor and wall.condition.kernel == "no_slip":
                low, high = np.array(wall.range).T[:, :, None]
                found[shared[other][0] - lo : shared[other][1] - lo] |= ((there >= low) & (there < high)).all(axis=0)
    return found
