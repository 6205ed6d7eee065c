"""The criteria for grid refinement (the table [refine] of a case) at each node, and the boxes of finer grid (tiles)
that they select."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.refine import Refine
from hiresx.decomposition.hierarchy import Hierarchy
from hiresx.decomposition.refinement import Taken, along_lines
from hiresx.grid.blocks import Range

# The number of each criterion in the kernel refinement_marks.
CRITERIA = ("density-curvature", "density-gradient", "vorticity")


def marks(table: Refine, value: np.ndarray) -> np.ndarray:
    """Return an integer array that says what the refinement criterion demands at each node: 2 (refine) where `value`
    exceeds the threshold `refine`, 1 (keep refined) where it exceeds only `coarsen`, otherwise 0. `value`: the
    criterion at the nodes, an array of any shape. `table`: the table [refine] of the case file."""
    return (value > table.coarsen_above).astype(np.int8) + (value > table.refine_above)


def looked_at(table: Refine) -> int:
    """Return how many of the flow variables rho, u, v, w the refinement criterion reads, counted from rho: 1 or 4.
    `table`: the table [refine] of the case file."""
    return 4 if table.criterion == "vorticity" else 1


def criterion(table: Refine, flow: Sequence[np.ndarray], nodes: Sequence[np.ndarray], beyond: np.ndarray) -> np.ndarray:
    """Evaluate the criterion for grid refinement at the nodes of a box, and return it as an array (nk, nj, ni).
    `table`: the table [refine] of the case file. `flow`: rho or, if the criterion needs them, rho, u, v, w
    (`looked_at`). `nodes`: the coordinates x, y, z. All arrays in `flow` and `nodes` are [k, j, i] and have, along
    every direction with more than one node, one node more than the box on each side. `beyond` (3, 2): whether these
    further nodes are outside of the grid, along i, j, k and on each side; if so, no differences along the grid line are
    computed at its last node.

    "density-curvature" is the largest over the grid lines of half the second difference of density, divided by the sum
    of `floor` times density and the smaller of the first differences to the two next nodes (after Sun and Takayama,
    Journal of Computational Physics 150, 1999). It does not contain the spacing: it measures how well the spacing
    resolves the flow."""
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
    """Return the values at the nodes before, at and after those of the box along a direction."""
    inner = [slice(1, -1) if n > 1 else slice(None) for n in values.shape]
    found = []
    for first in range(3):
        n = values.shape[2 - d]
        inner[2 - d] = slice(first, n - 2 + first)
        found.append(values[tuple(inner)])
    return triple(found)


def _only_within(value: np.ndarray, d: int, beyond: np.ndarray) -> np.ndarray:
    """Return `value` with 0 at the nodes that have no neighbour on one side."""
    value = value.copy()
    rows = np.moveaxis(value, 2 - d, 0)
    for end, nothing in zip((0, -1), beyond[d], strict=True):
        if nothing:
            rows[end] = 0
    return value


def _vorticity(velocity: Sequence[np.ndarray], nodes: Sequence[np.ndarray], beyond: np.ndarray) -> np.ndarray:
    """Return the magnitude of the vorticity, by second-order differences along grid lines."""
    active = _active(velocity[0])
    shape = [n - 2 if n > 1 else 1 for n in velocity[0].shape]
    along = np.zeros((*shape, 3, 3))  # dx/dxi, one row for each direction
    slopes = np.zeros((*shape, 3, 3))  # du/dxi
    for d in range(3):
        if d not in active:
            along[..., d, d] = 1.0  # in the plane, nodes are given by x and y
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
    """The boxes of finer grid (tiles) of all levels that the refinement criterion selects, collected from its values on
    the next coarser levels. `above`: for each level and block, the mask of the tiles that contain or are near a node at
    which the criterion exceeds the threshold `refine`. `held`: the mask of the tiles that contain a node at which it
    exceeds `coarsen`. `hierarchy`: the levels of the grid."""

    def __init__(self, hierarchy: Hierarchy):
        self._hierarchy, self._table = hierarchy, hierarchy.table
        self.above, self.held = hierarchy.choice.none(), hierarchy.choice.none()
        self._known: dict[tuple[int, int], tuple[list[np.ndarray], ...]] = {}

    def _lines(self, level: int, base: int) -> tuple[list[np.ndarray], ...]:
        """Return three lists with an array for each of i, j and k: the results of `_first_alike`, and those of
        `_tiles_over` for both thresholds."""
        if (level, base) not in self._known:
            space, sizes = self._hierarchy.spaces[level + 1, base], self._hierarchy.spaces[level, base].size
            wrapped = [wrap is not None and wrap.step == n for wrap, n in zip(space.wrapped, space.size, strict=True)]
            lines = [*zip(sizes, map(tuple, self._hierarchy.lattices[level + 1][base]), wrapped, strict=True)]
            around, tile = self._table.nodes_around, self._table.tile
            self._known[level, base] = (
                [_first_alike(*line, around, tile) for line in lines],
                [_tiles_over(*line, around, tile) for line in lines],
                [_tiles_over(*line, 0, tile) for line in lines],
            )
        return self._known[level, base]

    def alike(self, level: int, base: int, box: Range) -> list[np.ndarray]:
        """Divide a box of nodes into groups that lead to the same choice of boxes of finer grid (tiles), so that only
        the largest criterion of each group is needed. `box`: half-open index ranges (i, j, k) of nodes of block number
        `base` of the unrefined grid, on level number `level`. Groups are products of ranges along i, j and k. Returns
        three integer arrays, along i, j and k, with the first node of each range, counted from the first node of
        `box`."""
        found = []
        for first, (lo, hi) in zip(self._lines(level, base)[0], box, strict=True):
            begin, end = np.searchsorted(first, (lo + 1, hi)).tolist()
            own = first[begin - 1 : end] - lo
            own[0] = 0
            found.append(own)
        return found

    def add(
        self, level: int, base: int, box: Range, marked: np.ndarray, alike: Sequence[np.ndarray] | None = None
    ) -> None:
        """Record which boxes of finer grid (tiles) the refinement criterion selects at some nodes. `level`: the level
        of these nodes. `base`: the number of their block in the unrefined grid. `box`: their half-open index ranges i,
        j, k on this level. `marked` (nk, nj, ni): the result of `marks` (0, 1 or 2) at each node; if `alike` is given,
        the largest result in each box of ranges of nodes. `alike`: three arrays, along i, j and k, with the first node
        of each of these ranges, counted from the first node of `box` (the result of the method `alike`)."""
        finer, (_, *lines) = level + 1, self._lines(level, base)
        nodes = [np.arange(hi - lo) for lo, hi in box] if alike is None else alike
        for taken, least, over in zip((self.above, self.held), (2, 1), lines, strict=True):
            chosen = marked >= least
            if chosen.any():
                tiles = [line[lo + own] for line, (lo, _), own in zip(over, box, nodes, strict=True)]
                taken[finer][base] |= along_lines(chosen, tiles)

    def tiles_wanted(self, there: Sequence[Taken]) -> list[Taken]:
        """Return the boxes of finer grid (tiles) that the refinement criterion selects: for each level and block a
        boolean mask [k, j, i] over all possible tiles. `there`: such masks of the tiles that exist now; an existing
        tile is kept as long as the criterion exceeds the threshold `coarsen` in it."""
        return [
            [above | (held & exists) for above, held, exists in zip(*of_level, strict=True)]
            for of_level in zip(self.above, self.held, there, strict=True)
        ]

    def together(self) -> None:
        """Combine the selections of all ranks: afterwards every rank has each box of finer grid (tile) that the
        refinement criterion selects on any rank. Collective."""
        comm = self._hierarchy.comm
        for taken in (self.above, self.held):
            flat = [some.ravel() for level in taken for some in level]
            found = comm.max(np.concatenate(flat).astype(np.int8)).astype(bool)
            first = 0
            for level in taken:
                for some in level:
                    some[...] = found[first : first + some.size].reshape(some.shape)
                    first += some.size


@lru_cache(maxsize=1024)
def _tiles_over(nodes: int, ends: tuple[int, ...], wrapped: bool, around: int, tile: int) -> np.ndarray:
    """Return, for one direction of a level with so many `nodes`, an array (nodes, tiles of the next level). It is 1 if
    the tile contains one of the nodes on the node of the level, halfway beside it, or up to `around` nodes from these,
    and 0 elsewhere. Tiles begin and end at `ends`. `wrapped`: whether the last tile continues in the first."""
    found = np.zeros((nodes, len(ends) - 1), np.float32)
    if ends[-1] == 1:
        return found + 1
    # The tile contains the node itself, and the nodes halfway to its neighbours.
    places = 2 * np.arange(nodes)[:, None] + _steps(around, tile)
    places = places % ends[-1] if wrapped else np.clip(places, 0, ends[-1] - 1)
    found[np.arange(nodes)[:, None], np.searchsorted(ends, places, "right") - 1] = 1
    return found


@lru_cache(maxsize=1024)
def _first_alike(nodes: int, ends: tuple[int, ...], wrapped: bool, around: int, tile: int) -> np.ndarray:
    """Return the nodes that do not select the same tiles as the node before them, and node 0. `ends`: the nodes at
    which tiles begin and end. The other arguments: `_tiles_over`."""
    tiles = np.concatenate([_tiles_over(nodes, ends, wrapped, n, tile) for n in (around, 0)], axis=1)
    return np.flatnonzero(np.append(True, (tiles[1:] != tiles[:-1]).any(axis=1)))


def _steps(around: int, tile: int) -> list[int]:
    """Return steps from a node to nodes around it that are so close that no tile between them is missed."""
    reach = around + 1
    return sorted({-reach, 0, reach, *range(-reach, reach, tile)})
