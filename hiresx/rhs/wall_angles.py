"""Edges in which two slip walls, or planes of symmetry, meet at an angle that is not right."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from hiresx.decomposition import Decomposition, Patch
from hiresx.decomposition.oblique_walls import inward_rows, is_broad, local_normals
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.grid.blocks import Range, direction, intersection
from hiresx.rhs.face_condition import FaceCondition

# Cosine of the angle between the normals of two walls below which it is a right one.
RIGHT = 1e-6
_SLIP = "reflect"
# Of each two directions one, so that edges of one direction alone share it.
_ORDER = {(0, 1): 0, (1, 2): 1, (0, 2): 2}


class EdgeOfWalls(FaceCondition):
    """The nodes that two slip walls of a part share: their momentum is along both, whichever wall comes last. One wall
    after the other would leave momentum through the first one, which every further step takes away again."""

    rank = 1.5  # behind both walls, ahead of no-slip walls
    continued = False

    def __init__(self, backend: Backend, program: Program, state: BlockState, walls: Sequence[Patch], edge: Range):
        first, second = sorted(walls, key=lambda p: direction(p.face))
        pair = direction(first.face), direction(second.face)
        super().__init__(backend, program, state, first if _ORDER[pair] == pair[0] else second)
        along = 3 - sum(pair)
        self._nodes_of_edge = edge[along][1] - edge[along][0]
        start = state.origin + sum(edge[e][0] * state.strides[e] for e in range(3))
        self._edge: dict[str, Any] = {"o": start, "s1": state.strides[along], "sv": state.variable_stride}
        self._edge |= {"m": state.areas[pair[0]], "b": state.areas[pair[1]]}

    def node(self) -> None:
        self._launch("reflect_edge", (self._nodes_of_edge, 1, 1), **self._edge, q=self.state.q)

    def viscous_flux(self, fluxes: Any) -> None:
        pass


def oblique_pairs(whole: Decomposition) -> set[tuple[int, int]]:
    """Return the patches of the whole blocks, by number, that share such an edge."""
    found = set()
    slip = [n for n, patch in enumerate(whole.patches) if patch.condition.kernel == _SLIP]
    for a, b in combinations(slip, 2):
        one, other = whole.patches[a], whole.patches[b]
        edge = _shared(one, other)
        block = whole.blocks[one.block]
        if edge is not None and is_broad(block, one) and is_broad(block, other):
            normals = [_normals(whole, patch, edge) for patch in (one, other)]
            if np.abs((normals[0] * normals[1]).sum(axis=0)).max() > RIGHT:
                found.add((a, b))
    return found


def edges(
    backend: Backend, program: Program, states: Sequence[tuple[BlockState, Patch]], whole: Decomposition
) -> Iterator[EdgeOfWalls]:
    """Make the conditions at such edges of the parts. `states`: the patches of the parts here with their states."""
    pairs = oblique_pairs(whole)
    for (state, one), (_, other) in combinations(states, 2):
        edge = _shared(one, other) if tuple(sorted((one.place, other.place))) in pairs else None
        if edge is not None:
            yield EdgeOfWalls(backend, program, state, (one, other), edge)


def _shared(one: Patch, other: Patch) -> Range | None:
    """The nodes that patches of two directions of a block share."""
    if one.block != other.block or direction(one.face) == direction(other.face):
        return None
    return intersection(one.range, other.range)


def _normals(whole: Decomposition, patch: Patch, edge: Range) -> np.ndarray:
    """Unit normals (dimensions, nodes) of a patch at the nodes of its edge."""
    block, d = whole.blocks[patch.block], direction(patch.face)
    face = inward_rows(block, patch.face, patch.range, 1)[0, : len(block.active)]
    normals = local_normals(face, d, [e for e in block.active if e != d])
    places = [slice(lo - patch.range[e][0], hi - patch.range[e][0]) for e, (lo, hi) in enumerate(edge)]
    return np.asarray(normals[(slice(None), *reversed(places))].reshape(len(normals), -1))
