"""How differences along a no-slip wall are taken at its edges."""

from typing import Any

import numpy as np

from hiresx.arrays import triple
from hiresx.decomposition import Decomposition, Patch
from hiresx.device.interface import Backend
from hiresx.device.state import BlockState
from hiresx.grid.blocks import FACES, Range, direction, intersection, side

# Conditions behind whose faces there are nodes of the flow, as behind a connection, and those nothing flows through.
_GO_ON = ("patched", "pole")
_CLOSED = ("no_slip", "reflect", "axis")
# What the factors of the central difference get at the lower edge, that of the node behind it to begin with: at an open
# face it is one-sided; at a closed one, where cells are halves, and within the face nothing leaves along the wall.
_OPEN, _CORNER, _END = (0.5, -1.0, 0.5), (0.5, 1.0, 0.5), (0.5, 0.5, 0.0)


def wall_arguments(backend: Backend, state: BlockState, patch: Patch, cut: Decomposition) -> dict[str, Any]:
    """What kernels along the wall `patch` take besides its nodes; `cut`: all parts. `near` (2, 3, n2, n1), for
    the two directions of the face: factors of the nodes before, at and behind each node."""
    tangents = [e for e in range(3) if e != direction(patch.face)]
    n1, n2 = (patch.range[e][1] - patch.range[e][0] for e in tangents)
    ends = np.zeros((2, 3, n2, n1))
    for factors, e, other in zip(ends, tangents, tangents[::-1], strict=True):
        if e not in state.active:
            continue
        factors[0], factors[2] = -0.5, 0.5
        for upper in (False, True):
            edge = factors[:, :, -upper] if e < other else factors[:, -upper]
            _close(edge, state, patch, cut, e, other, upper)
    m1, m2 = (state.areas[e] for e in tangents)
    return {"n1": n1, "n2": n2, "near": backend.to_device(ends.astype(state.real)), "m1": m1, "m2": m2}


def _close(
    factors: np.ndarray, state: BlockState, patch: Patch, cut: Decomposition, e: int, other: int, upper: bool
) -> None:
    """Set the factors (3, n) of an edge, the lower or upper one in direction `e`, along the direction `other` of the
    face, where the wall does not go on behind it."""
    last = patch.range[e][upper] - upper
    within = last != (state.size[e] - 1 if upper else 0)
    # What is behind the edge: the next nodes of the same face, or the face that bounds the block there.
    at = last + (1 if upper else -1) if within else last
    face = patch.face if within else FACES[2 * e + upper]
    behind = triple((at, at + 1) if a == e else patch.range[a] for a in range(3))
    start = patch.range[other][0]

    def close(nodes: slice, change: tuple[float, float, float]) -> None:
        factors[:, nodes] += np.reshape(np.negative(change[::-1]) if upper else change, (3, 1))

    goes_on = np.zeros(factors.shape[1], dtype=bool) if within else _over_connections(patch, cut, face, behind, other)
    for found in cut.patches:
        kernel = found.condition.kernel
        if found is patch or found.block != patch.block or found.face != face:
            continue
        if (shared := intersection(found.range, behind)) is None:
            continue
        nodes = slice(shared[other][0] - start, shared[other][1] - start)
        if within:
            goes_on[nodes] |= kernel == "no_slip"
        else:
            goes_on[nodes] = True  # as far as the face says
            if kernel not in _GO_ON:
                close(nodes, _CORNER if kernel in _CLOSED else _OPEN)
    for n in np.flatnonzero(~goes_on):
        close(slice(n, n + 1), _END)


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
