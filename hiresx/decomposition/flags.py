"""Where the flow wants a finer level: the criteria of `[refine]`, node by node, and the tiles that they mean."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.refine import Refine
from hiresx.decomposition.hierarchy import Hierarchy
from hiresx.decomposition.refinement import Taken
from hiresx.grid.blocks import Range


def criterion(table: Refine, flow: Sequence[np.ndarray], nodes: Sequence[np.ndarray], beyond: np.ndarray) -> np.ndarray:
    """The criterion of `table` at the nodes of a box, (nk, nj, ni), from `flow`: rho, u, v, w, and coordinates `nodes`:
    x, y, z, all with one node more on both sides of every direction that has more than one node. `beyond` (3, 2): along
    i, j, k and on which side these have no meaning: a line is then not looked at at its last node.

    "density-curvature" is half the second difference of density over the floor times density and the smaller of the
    first differences to the two next nodes (after Sun and Takayama, Journal of Computational
    Physics 150, 1999), the largest over the grid lines. Nothing in it knows the spacing: it tells how well the spacing
    resolves the flow.
    """
    if table.criterion == "vorticity":
        return _vorticity(flow[1:], nodes, beyond)
    rho = flow[0]
    found = np.zeros([n - 2 if n > 1 else 1 for n in rho.shape])
    for d in _active(rho):
        below, own, above = _beside(rho, d)
        left, right = own - below, above - own
        if table.criterion == "density-gradient":
            value = np.maximum(np.abs(left), np.abs(right)) / own
        else:
            least = np.minimum(np.abs(left), np.abs(right))
            value = 0.5 * np.abs(right - left) / (table.floor * own + least)
        np.maximum(found, _only_within(value, d, beyond), out=found)
    return found


def _active(values: np.ndarray) -> list[int]:
    return [d for d in range(3) if values.shape[2 - d] > 1]


def _beside(values: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values at the nodes before, at and after those of the box along a direction."""
    inner = [slice(1, -1) if n > 1 else slice(None) for n in values.shape]
    found = []
    for first in range(3):
        n = values.shape[2 - d]
        inner[2 - d] = slice(first, n - 2 + first)
        found.append(values[tuple(inner)])
    return triple(found)


def _only_within(value: np.ndarray, d: int, beyond: np.ndarray) -> np.ndarray:
    """`value` with 0 at the nodes beside which there is nothing."""
    value = value.copy()
    rows = np.moveaxis(value, 2 - d, 0)
    for end, nothing in zip((0, -1), beyond[d], strict=True):
        if nothing:
            rows[end] = 0
    return value


def _vorticity(velocity: Sequence[np.ndarray], nodes: Sequence[np.ndarray], beyond: np.ndarray) -> np.ndarray:
    """Magnitude of vorticity by second-order differences along grid lines."""
    active = _active(velocity[0])
    shape = [n - 2 if n > 1 else 1 for n in velocity[0].shape]
    along = np.zeros((*shape, 3, 3))  # dx/dxi, one row for each direction
    slopes = np.zeros((*shape, 3, 3))  # du/dxi
    for d in range(3):
        if d not in active:
            along[..., d, d] = 1.0  # a plane of nodes is that of x and y
            continue
        for c in range(3):
            for target, values in ((along, nodes[c]), (slopes, velocity[c])):
                below, _, above = _beside(values, d)
                target[..., d, c] = 0.5 * (above - below)
    gradient = np.linalg.solve(along, slopes)  # [..., x, u]
    curl = [gradient[..., a, b] - gradient[..., b, a] for a, b in ((1, 2), (2, 0), (0, 1))]
    found: np.ndarray = np.sqrt(sum(c * c for c in curl))
    for d in active:
        found = _only_within(found, d, beyond)
    return found


class Flags:
    """Tiles of all levels that the criterion selects, collected from boxes of nodes of the levels before them. `above`:
    by level and block, tiles around a node where the criterion exceeds `refine`; `held`: tiles over a node where it
    exceeds `coarsen`."""

    def __init__(self, hierarchy: Hierarchy):
        self._hierarchy, self._table = hierarchy, hierarchy.table
        self.above, self.held = hierarchy.choice.none(), hierarchy.choice.none()

    def add(self, level: int, base: int, box: Range, value: np.ndarray) -> None:
        """Evaluate the `value` (nk, nj, ni) of the criterion at the nodes `box` of a block on `level`, and record the
        tiles that it selects."""
        margin = self._table.nodes_around
        for taken, threshold, around in (
            (self.above, self._table.refine_above, margin),
            (self.held, self._table.coarsen_above, 0),
        ):
            index = np.argwhere(value > threshold)[:, ::-1] + [lo for lo, _ in box]
            if len(index):
                self._take(taken[level + 1][base], level + 1, base, index, around)

    def _take(self, taken: np.ndarray, level: int, base: int, index: np.ndarray, around: int) -> None:
        """Take the tiles of a level that hold nodes around nodes `index` (n, 3) of the level before."""
        space, ends = self._hierarchy.spaces[level, base], self._hierarchy.lattices[level][base]
        size = space.size
        found = []
        for d in range(3):
            if size[d] == 1:
                found.append([np.zeros(len(index), int)])
                continue
            # The node itself, and what lies halfway to the next ones.
            places = [2 * index[:, d] + step for step in _steps(around, self._table.tile)]
            wrap = space.wrapped[d]
            if wrap is not None and wrap.step == size[d]:
                places = [place % size[d] for place in places]
            found.append([np.searchsorted(ends[d], np.clip(p, 0, size[d] - 1), "right") - 1 for p in places])
        for i, j, k in product(*found):
            taken[k, j, i] = True

    def wanted(self, there: Sequence[Taken]) -> list[Taken]:
        """The tiles that the criterion asks for where those of `there` exist."""
        return [
            [above | (held & exists) for above, held, exists in zip(*of_level, strict=True)]
            for of_level in zip(self.above, self.held, there, strict=True)
        ]

    def together(self) -> None:
        """Put together what the ranks have found. Collective."""
        comm = self._hierarchy.comm
        for taken in (self.above, self.held):
            flat = [some.ravel() for level in taken for some in level]
            found = comm.max(np.concatenate(flat).astype(np.int8)).astype(bool)
            first = 0
            for level in taken:
                for some in level:
                    some[...] = found[first : first + some.size].reshape(some.shape)
                    first += some.size


def _steps(around: int, tile: int) -> list[int]:
    """Steps from a node to nodes around it, of which none misses a tile between."""
    reach = around + 1
    return sorted({-reach, 0, reach, *range(-reach, reach, tile)})
