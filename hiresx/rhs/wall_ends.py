"""Edges behind which a no-slip wall continues. Differences along the wall are central there, and one-sided at other
edges. Where a slip wall continues as a no-slip wall on the same face, the mass flux along the face is corrected
(kernels/wall_edges.h)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hiresx.base.arrays import runs, triple
from hiresx.decomposition import Decomposition, Patch
from hiresx.decomposition.wall_seams import same_face
from hiresx.device.interface import Backend
from hiresx.device.state import BlockState
from hiresx.grid.blocks import FACES, Range, direction, intersection, side

# Kernels of no-slip and of slip walls.
_NO_SLIP, _SLIP = "no_slip", "reflect"
# Conditions of faces behind which the flow continues, as behind a connection.
_GO_ON = ("patched", "pole")


def wall_arguments(backend: Backend, state: BlockState, patch: Patch, cut: Decomposition) -> dict[str, Any]:
    """Return the parameters that every kernel along the no-slip wall `patch` needs besides its nodes, by name. `cut`:
    the blocks after their division among ranks. `n1`, `n2`: the numbers of nodes of the patch along the two index
    directions of the face. `m1`, `m2`: the area vectors of these directions. `near` (2, 2, n2, n1): 1 where the wall
    continues to the neighbouring node, else 0; the first axis is the direction along the face, the second the side
    (lower index, then higher)."""
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


def takers(state: BlockState, patch: Patch, cut: Decomposition) -> int:
    """Return how many nodes along the normal of the no-slip wall `patch` take part in the correction of the right-hand
    side that conserves mass: 3 (the nodes 0, 1 and 3 from the wall), or 1 (the node on the wall) if the block has fewer
    than eight nodes in this direction and another no-slip wall on the opposite face (`closing_wall` of
    kernels/boundary/no_slip.h). `cut`: the blocks after their division among ranks."""
    d = direction(patch.face)
    opposite = [p for p in cut.patches if p.block == patch.block and direction(p.face) == d and p.face != patch.face]
    crowded = state.size[d] < 8 and any(p.condition.kernel == _NO_SLIP for p in opposite)
    return 1 if crowded else 3


class SlipEdge(NamedTuple):
    """Nodes of a no-slip wall at an edge at which a slip wall continues it. `across`: the grid direction across the
    edge. `upper`: whether the edge is at the upper end of this direction. `along`: the grid direction along the edge.
    `first` (i, j, k): the first node. `nodes`: the number of nodes. `tangent`: which of the two directions of the face
    `across` is, 0 or 1."""

    tangent: int
    across: int
    upper: bool
    along: int
    first: tuple[int, int, int]
    nodes: int


def slip_edges(state: BlockState, patch: Patch, cut: Decomposition) -> Iterator[SlipEdge]:
    """Yield the edges at which a slip wall on the same face of the block continues the no-slip wall `patch`. `cut`: the
    blocks after their division among ranks."""
    tangents = [e for e in range(3) if e != direction(patch.face)]
    for tangent, (e, other) in enumerate(zip(tangents, tangents[::-1], strict=True)):
        for upper in (False, True) if e in state.active else ():
            found = _goes_on(state, patch, cut, e, other, upper, _SLIP)
            for first, last in runs(found):
                place = [lo for lo, _ in patch.range]
                place[e] = patch.range[e][upper] - upper
                place[other] += first
                yield SlipEdge(tangent, e, upper, other, triple(place), last - first)


def _goes_on(
    state: BlockState, patch: Patch, cut: Decomposition, e: int, other: int, upper: bool, kernel: str = _NO_SLIP
) -> np.ndarray:
    """Return whether a wall of `kernel` continues behind each node of an edge along `other`. The edge is the lower or
    upper one in direction `e`."""
    last = patch.range[e][upper] - upper
    within = last != (state.size[e] - 1 if upper else 0)
    # The nodes behind the edge: the next nodes of the same face, or the face that bounds the block there.
    at = last + (1 if upper else -1) if within else last
    face = patch.face if within else FACES[2 * e + upper]
    behind = triple((at, at + 1) if a == e else patch.range[a] for a in range(3))
    start, end = patch.range[other]
    found = np.zeros(end - start, dtype=bool) if within else _over_connections(patch, cut, face, behind, other, kernel)
    goes_on = (kernel,) if within else _GO_ON if kernel == _NO_SLIP else ()
    for next_ in cut.patches:
        if next_ is patch or next_.block != patch.block or next_.face != face:
            continue
        shared = intersection(next_.range, behind)
        if shared is not None and next_.condition.kernel in goes_on:
            found[shared[other][0] - start : shared[other][1] - start] = True
    return found


def _over_connections(patch: Patch, cut: Decomposition, face: str, edge: Range, other: int, kernel: str) -> np.ndarray:
    """Return those of the nodes of `edge`, along the direction `other`, behind which a wall of `kernel` continues
    across a connection of `face`."""
    lo, hi = edge[other]
    found = np.zeros(hi - lo, dtype=bool)
    for c in cut.connections:
        if c.block != patch.block or c.face != face or (shared := intersection(c.range, edge)) is None:
            continue
        nodes = np.array([[at[0]] * (shared[other][1] - shared[other][0]) for at in shared])
        nodes[other] = np.arange(*shared[other])
        nodes[direction(face)] += side(face)
        there = c.donors(nodes)
        continued = same_face(patch.face, c, nodes)
        for wall in cut.patches:
            # Nodes of a line where two walls meet belong to both walls; only the wall on the same face continues.
            if wall.block == c.donor and wall.condition.kernel == kernel and wall.face == continued:
                low, high = np.array(wall.range).T[:, :, None]
                found[shared[other][0] - lo : shared[other][1] - lo] |= ((there >= low) & (there < high)).all(axis=0)
    return found
