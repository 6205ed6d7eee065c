"""Transfer of the state to a new set of tiles: copied where a tile remains, interpolated where it is new.

A node of a new tile takes the value of the coarser level if it coincides with a node of that level. Between these nodes
values are interpolated to sixth order in the spacing, by polynomials of degree 5. Where density or pressure of the
polynomials and of linear interpolation differ by a tenth or more, the linear values are used. The transition is smooth,
as for ghosts of tiles (kernels/interpolated.h).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Domain
from hiresx.decomposition.held_arrays import Piece, sizes
from hiresx.decomposition.levels import Levels, Space, Tile, part_on_level, stencils
from hiresx.decomposition.nodes_behind import Ends, divided_by_stencils, usable
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patched_donors import linear
from hiresx.decomposition.refinement import joined_boxes
from hiresx.equations.gas import Gas
from hiresx.exchange.device_lists import lists_on_device
from hiresx.grid.blocks import Range, common_boxes, intersection, slices
from hiresx.grid.cutting import within
from hiresx.grid.motions import IntMatrix
from hiresx.grid.patched import WIDTH
from hiresx.simulation.redistribution import fill
from hiresx.solver import Solver
from hiresx.solver.held_blocks import HeldBlock

# Difference of the two values, as a fraction of the linear one, around which the linear value takes over.
APART = 0.1
# Ratio of a sixth-order density or pressure to the linear one above which it is not used.
LEAST = 0.1
STATE = "q"


def carry_over(held: Sequence[HeldBlock], before: Levels, ground: Domain, solver: Solver) -> None:
    """Set the state of the new `solver` after a change of the tiles (boxes of nodes of finer levels). `held`: the
    arrays of this rank on the previous tiles. `before`: the previous levels. `ground`: the grid of the new solver, its
    levels and its division among the ranks. A block of the new solver that uses an array `q` of `held` already has its
    state and is not changed. At nodes that the previous tiles had the state is copied on the device. At the other nodes
    it is interpolated there from the next coarser level. Collective."""
    whole, hierarchy, comm, halo = ground.whole.levels, ground.hierarchy, ground.comm, ground.halo
    assert whole is not None and hierarchy is not None
    # On each level every block of the grid is one array, however its tiles were and will be joined to blocks.
    numbers = {key: n for n, key in enumerate(sorted(whole.spaces))}

    def piece(tile: Tile, nodes: Any) -> Piece:
        return Piece(f"{STATE}.{numbers[tile.level, tile.base]}", tile.box, nodes)

    tiles = [part_on_level(whole, part) for part in ground.cut.parts]
    parts = [
        Part(numbers[tile.level, tile.base], tile.box, part.rank)
        for tile, part in zip(tiles, ground.cut.parts, strict=True)
    ]
    own = {state.index: state.interior(state.q) for state in solver.states}
    stayed = {one.tile: one.q for one in held}
    fresh = {s.index: own[s.index] for s in solver.states if stayed.get(tiles[s.index]) is not s.q}
    for nodes in fresh.values():
        nodes[...] = np.nan  # nodes that are not filled are detected
    fill([piece(one.tile, one.at(one.q, one.tile.box)) for one in held], parts, fresh, comm, solver.backend)
    old, now = hierarchy.of(before.tiles), hierarchy.of(whole.tiles)
    of_array: dict[int, list[int]] = {}
    for place, part in enumerate(parts):
        of_array.setdefault(part.whole, []).append(place)
    for level in range(1, hierarchy.finest + 1):
        windows = []
        for b, lattice in enumerate(hierarchy.lattices[level]):
            new, places = [*joined_boxes(lattice, now[level][b] & ~old[level][b])], of_array.get(numbers[level, b], [])
            space, behind = whole.spaces[level - 1, b], whole.behind(level - 1, b)
            windows += [
                _CoarseNodes(places[m], nodes, level - 1, b, space, ends, halo)
                for _, m, shared in common_boxes(new, [parts[place].box for place in places])
                for nodes, ends in divided_by_stencils(shared, space.size, behind, halo)
            ]
        if windows:
            coarser = [piece(tiles[n], nodes) for n, nodes in own.items() if tiles[n].level == level - 1]
            _prolong(windows, numbers, coarser, parts, solver)


def _prolong(
    windows: Sequence["_CoarseNodes"], numbers: Mapping[tuple[int, int], int], coarser: Sequence[Piece],
    parts: Sequence[Part], solver: Solver,
) -> None:  # fmt: skip
    """Interpolate the nodes `windows` of all ranks, and set those of this rank on the device. `numbers`: the number of
    the array of each level and block. `coarser`: the state of this rank on the coarser level. Collective."""
    comm, backend, states = solver.comm, solver.backend, {state.index: state for state in solver.states}
    mine = [window for window in windows if parts[window.place].rank == comm.rank]
    variables, kind = solver.layout.equations.variables, np.dtype(solver.layout.storage.stored)
    ends = np.cumsum([0, *(variables * prod(sizes(window.box)) for window in mine)]).tolist()
    given = backend.empty((ends[-1],), kind.name)
    arrays = [
        given[a:b].reshape(variables, *sizes(window.box)) for window, (a, b) in zip(mine, pairwise(ends), strict=True)
    ]
    wanted, targets, turn = list[Part](), dict[int, Any](), iter(arrays)
    for window in windows:
        rank = parts[window.place].rank
        array = next(turn) if rank == comm.rank else None
        for nodes in window.space.nodes(window.base):
            shared = intersection(nodes.box, window.box)
            if shared is None:
                continue
            if array is not None:
                targets[len(wanted)] = _turned(array[(..., *slices(within(window.box, shared)))], nodes.matrix)
            wanted.append(Part(numbers[window.level, nodes.block], nodes.there(shared), rank))
    fill(coarser, wanted, targets, comm, backend)
    if not mine:
        return
    lists = lists_on_device(backend, [[np.concatenate([start for start, _ in window.lines])] for window in mine])
    weights = [np.concatenate([own for _, own in window.lines], axis=-1) for window in mine]
    real = np.dtype(states[mine[0].place].real)
    whole, first = backend.to_device(np.concatenate([own.ravel() for own in weights]).astype(real)), 0
    for window, coarse, [start], own in zip(mine, arrays, lists, weights, strict=True):
        state, box = states[window.place], within(parts[window.place].box, window.nodes)
        size, wide = sizes(window.nodes)[::-1], coarse.shape[:0:-1]
        at = state.place | {"o": state.origin + sum(lo * by for (lo, _), by in zip(box, state.strides, strict=True))}
        solver.program.launch(
            "new_tile_nodes", size, **at, sv=state.variable_stride, nodes_i=size[0], nodes_j=size[1],
            columns=len(start), **dict(zip(("wi", "wj", "wk"), wide, strict=True)), start=start,
            weights=whole[first : first + own.size], coarse=coarse, q=state.q,
        )  # fmt: skip
        first += own.size


class _CoarseNodes:
    """The nodes of the coarser level `level` from which the new nodes in the index ranges `nodes` are interpolated.
    `place`: the number of the box with the new nodes, computed by one rank. `base`: the number of the block of the
    unrefined grid. `space`: the index space of the block on the coarser level. `ends`: the ends of the block beyond
    which stencils extend, over `halo` nodes at most. `box`: the index ranges of the nodes that are read. `lines`: for
    each direction the result of `_line`."""

    def __init__(self, place: int, nodes: Range, level: int, base: int, space: Space, ends: Ends, halo: int):
        self.place, self.nodes, self.level, self.base, self.space = place, nodes, level, base, space
        made = [_line(lo, hi, n, usable(n, of, halo)) for (lo, hi), n, of in zip(nodes, space.size, ends, strict=True)]
        self.box: Range = triple(box for box, *_ in made)
        self.lines = [(start, weights) for _, start, weights in made]


def _turned(array: Any, matrix: IntMatrix) -> Any:
    """Return a view of `array` (variables, nk, nj, ni) whose indexes run in the directions of another block. `matrix`:
    the signed permutation that takes the indexes i, j, k to those of the other block."""
    along = [next(d for d in range(3) if row[d]) for row in matrix]
    senses = [slice(None, None, row[d]) for row, d in zip(matrix, along, strict=True)]
    return array.transpose(0, *(3 - d for d in reversed(along)))[(slice(None), *reversed(senses))]


@lru_cache(maxsize=1024)
def _line(lo: int, hi: int, n: int, use: tuple[int, int]) -> tuple[tuple[int, int], np.ndarray, np.ndarray]:
    """Return, for a direction of a level that has `n` nodes on the coarser level, the nodes of the coarser level from
    which the nodes lo ... hi - 1 are interpolated. Also returns the first of these for each node (hi - lo,), counted
    from their first one, and the weights (2, WIDTH, hi - lo), of sixth order and linear. `use`: the first and the last
    + 1 of the nodes that stencils may use."""
    if n == 1:
        return (0, 1), np.zeros(1, int), np.tile(np.eye(WIDTH)[:, :1], (2, 1, 1))
    xi = np.arange(lo, hi) / 2
    base, weights = stencils(xi, *use)
    first, last = int(base.min()), int(base.max()) + WIDTH
    return (first, last), base - first, np.stack([weights.T, linear(xi[:, None], base[:, None])[:, 0].T])


def line_weights(nodes: int, step: int) -> np.ndarray:
    """Return the weights (2, nodes, coarser nodes) of interpolation from a coarser grid along one direction: first of
    sixth order, then linear. `nodes`: the number of nodes of the block along this direction. `step`: 2 if the coarser
    grid has every second node, 1 if it has the same nodes along this direction."""
    if step == 1:
        return np.stack([np.eye(nodes)] * 2)
    (first, last), start, weights = _line(0, nodes, (nodes + 1) // 2, (0, (nodes + 1) // 2))
    made = np.zeros((2, nodes, last - first))
    made[:, np.arange(nodes), start + np.arange(WIDTH)[:, None]] = weights
    return made


def interpolate(values: np.ndarray, weights: Sequence[np.ndarray], gas: Gas) -> np.ndarray:
    """Return conservative variables (n, nk, nj, ni) that are interpolated from a coarser grid. `values`: the variables
    (n, coarser nk, nj, ni) at its nodes. `weights`: for i, j and k the result of `line_weights`. The result is of sixth
    order in smooth flow. Where densities or pressures that result from sixth-order and from linear interpolation differ
    by a tenth or more, the linear result is returned, with a smooth transition. `gas`: the gas of the case."""
    high, low = (values.astype(np.float64) for _ in range(2))
    for d, (fine, coarse) in enumerate(weights):
        high, low = _along(high, fine, d), _along(low, coarse, d)
    sixth, second = gas.primitive(high), gas.primitive(low)
    with np.errstate(invalid="ignore", divide="ignore"):
        differences = [np.abs(sixth[name] - second[name]) / second[name] for name in ("rho", "p")]
        admissible = np.all([sixth[name] > LEAST * second[name] for name in ("rho", "p")], axis=0)
        share = np.where(admissible, _share(np.maximum(*differences)), 0.0)
        made = low + share * (high - low)
        for row, name in enumerate(gas.scalars, len(high) - len(gas.scalars)):
            own = np.minimum(share, _share(sixth[name] - second[name]))
            made[row] = low[row] + own * (high[row] - low[row])
    return made.astype(values.dtype)


def _share(apart: np.ndarray) -> np.ndarray:
    found: np.ndarray = 1 / (1 + (apart / APART) ** 4)
    return found


def _along(values: np.ndarray, weights: np.ndarray, d: int) -> np.ndarray:
    """Return values in which the nodes of a direction are replaced by their weighted sums."""
    axes = (3 - d, *(axis for axis in range(4) if axis != 3 - d))
    lines = values.transpose(axes)
    sums: np.ndarray = np.dot(weights, lines.reshape(len(lines), -1)).reshape(-1, *lines.shape[1:])
    back = [0] * 4
    for n, axis in enumerate(axes):
        back[axis] = n
    return sums.transpose(back)
