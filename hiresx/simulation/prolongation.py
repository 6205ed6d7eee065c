"""The state of one set of tiles carried to another one: as it is where tiles stay, interpolated where they are new.

A new tile takes what nodes of the level before have where its own nodes lie on them, and between these the value of
sixth order in the spacing, by polynomials of degree 5, or the linear one where density or pressure of the two differ by
a tenth and more, with a smooth passage between, as ghosts of tiles do (kernels/interpolated.h)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Domain
from hiresx.decomposition.held_arrays import Piece, sizes
from hiresx.decomposition.levels import Levels, Space, Tile, stencils
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patched_donors import linear
from hiresx.decomposition.refinement import joined_boxes
from hiresx.equations.gas import Gas
from hiresx.grid.blocks import Range, intersection, shift_range, slices, whole_box
from hiresx.grid.cutting import within
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import distributed_arrays
from hiresx.output.saved.distributed_arrays import Reader
from hiresx.simulation.redistribution import redistribute

# Difference of the two values, in shares of the linear one, around which the linear one takes over.
APART = 0.1
# Of a sixth-order density or pressure over the linear one, from which on it is not taken.
LEAST = 0.1
STATE = "q"


def carry_over(pieces: Iterable[Piece], before: Levels, ground: Domain, gas: Gas) -> Reader:
    """Return a reader of the state on the parts of `ground`, for a run whose tiles change. `pieces`: the state of this
    rank on the previous tiles `before`. The state is copied or interpolated from them. Collective."""
    whole, hierarchy, comm = ground.whole.levels, ground.hierarchy, ground.comm
    assert whole is not None and hierarchy is not None
    # Every block of the grid is one array on each level, whatever blocks its tiles were and will be joined to.
    numbers = {key: n for n, key in enumerate(sorted(whole.spaces))}
    held = [piece for piece in pieces if piece.name.startswith(f"{STATE}.")]
    held = [_on_level(piece, before.tiles[int(piece.name.rpartition(".")[2])], numbers) for piece in held]
    parts = [
        Part(numbers[tile.level, tile.base], _own_box(part.box, tile), part.rank)
        for part in ground.cut.parts
        for tile in [whole.tiles[part.whole]]
    ]
    state = _State(parts, held, comm)
    old, now = hierarchy.of(before.tiles), hierarchy.of(whole.tiles)
    new = [
        [
            (b, box)
            for b, lattice in enumerate(hierarchy.lattices[level])
            for box in joined_boxes(lattice, now[level][b] & ~old[level][b])
        ]
        for level in range(hierarchy.finest + 1)
    ]
    for level, boxes in enumerate(new):
        state.forget([(numbers[level, b], box) for b, box in boxes])
    for level in range(1, hierarchy.finest + 1):
        windows = [
            _CoarseNodes(place, shared, numbers[level - 1, b], whole.spaces[level - 1, b])
            for b, box in new[level]
            for place, part in enumerate(parts)
            if part.whole == numbers[level, b] and (shared := intersection(part.box, box)) is not None
        ]
        if windows:
            state.prolong(windows, gas)
    arrays = ((part, state.arrays[n]) for n, part in enumerate(ground.cut.parts) if n in state.arrays)
    return distributed_arrays.read_from_memory(
        Piece(f"{STATE}.{part.whole}", part.box, array) for part, array in arrays
    )


def _own_box(box: Range, tile: Tile) -> Range:
    """Nodes of a tile in the indexes of its level."""
    return shift_range(box, triple(lo for lo, _ in tile.box))


def _on_level(piece: Piece, tile: Tile, numbers: Mapping[tuple[int, int], int]) -> Piece:
    """A piece of a tile as one of the array of its level."""
    return Piece(f"{STATE}.{numbers[tile.level, tile.base]}", _own_box(piece.box, tile), piece.array)


class _State:
    """The state on `parts`, whose `whole` is the number of a block of the grid on a level, those of all ranks, from the
    pieces `held` by this rank. `arrays`: of the parts of this rank, by their place in `parts`; nodes that nobody held
    are to be filled (`forget`, `prolong`). Collective."""

    def __init__(self, parts: Sequence[Part], held: Sequence[Piece], comm: Communicator):
        self._parts, self._comm = parts, comm
        known = comm.allgather([(piece.array.shape[:-3], np.dtype(piece.array.dtype).str) for piece in held[:1]])
        leading, dtype = next(description for theirs in known for description in theirs)
        arrays = self._move(held, parts)
        self.arrays = {
            n: arrays[part.whole, part.box]
            if (part.whole, part.box) in arrays
            else np.empty((*leading, *sizes(part.box)), dtype)
            for n, part in enumerate(parts)
            if part.rank == comm.rank
        }

    def _move(self, pieces: Sequence[Piece], parts: Sequence[Part]) -> dict[tuple[int, Range], np.ndarray]:
        """What pieces hold of `parts`, by number and box, of those of this rank."""
        found = redistribute(pieces, parts, self._comm).pieces
        assert found is not None  # they lie in memory
        return {(int(piece.name.rpartition(".")[2]), piece.box): np.asarray(piece.array) for piece in found}

    def forget(self, boxes: Iterable[tuple[int, Range]]) -> None:
        """Nothing is known at the nodes `boxes`, each with its number."""
        for number, box in boxes:
            for n, array in self.arrays.items():
                part = self._parts[n]
                shared = intersection(part.box, box) if part.whole == number else None
                if shared is not None:
                    array[(..., *slices(within(part.box, shared)))] = np.nan

    def prolong(self, windows: Sequence["_CoarseNodes"], gas: Gas) -> None:
        """Interpolate the nodes `windows` of all ranks from those of the level before."""
        below = {window.number for window in windows}
        held = [
            Piece(f"{STATE}.{self._parts[n].whole}", self._parts[n].box, array)
            for n, array in self.arrays.items()
            if self._parts[n].whole in below
        ]
        wanted = [
            Part(window.number, nodes, self._parts[window.place].rank)
            for window in windows
            for _, nodes in window.shares()
        ]
        arrays = self._move(held, wanted)
        for window in windows:
            part = self._parts[window.place]
            if part.rank == self._comm.rank:
                made = interpolate(window.assemble(arrays), window.weights, gas)
                self.arrays[window.place][(..., *slices(within(part.box, window.nodes)))] = made


class _CoarseNodes:
    """The nodes of the level before from which the new `nodes` of the part number `place` are interpolated. `number`:
    of their array, `space`: of all nodes there. `box`: in the indexes of that level, beyond a block's ends where it
    goes on in itself. `weights`: per direction (2, nodes, nodes of the window), of sixth order and linear."""

    def __init__(self, place: int, nodes: Range, number: int, space: Space):
        self.place, self.nodes, self.number, self._space = place, nodes, number, space
        box, weights = [], []
        for (lo, hi), n, wrap in zip(nodes, space.size, space.wrapped, strict=True):
            ends, made = _line(lo, hi, n, wrap is not None and wrap.step == n)
            box.append(ends)
            weights.append(made)
        self.box: Range = triple(box)
        self.weights = weights

    def shares(self) -> Iterator[tuple[Range, Range]]:
        """Boxes in the window, counted from its first node, and the nodes of the level before that these are."""
        turns = (
            (0, n, -n) if lo < 0 or hi > n else (0,) for (lo, hi), n in zip(self.box, self._space.size, strict=True)
        )
        for turn in product(*turns):
            shared = intersection(shift_range(whole_box(self._space.size), triple(turn)), self.box)
            if shared is not None:
                yield within(self.box, shared), shift_range(shared, triple(-t for t in turn))

    def assemble(self, arrays: Mapping[tuple[int, Range], np.ndarray]) -> np.ndarray:
        """The values (variables, nk, nj, ni) of the window, from those of its shares."""
        own = [(to, arrays[self.number, nodes]) for to, nodes in self.shares()]
        found = np.empty((len(own[0][1]), *sizes(self.box)), own[0][1].dtype)
        for to, array in own:
            found[(..., *slices(to))] = array
        assert not np.isnan(found).any()  # the level before lies around every tile
        return found


@lru_cache(maxsize=1024)
def _line(lo: int, hi: int, n: int, wrapped: bool) -> tuple[tuple[int, int], np.ndarray]:
    """Along a direction of a level that has `n` nodes on the level before: the nodes of that which the nodes lo ... hi
    - 1 come from, and the weights (2, hi - lo, nodes), of sixth order and linear."""
    if n == 1:
        return (0, 1), np.ones((2, 1, 1))
    xi = np.arange(lo, hi) / 2
    base, weights = stencils(xi, *((int(xi[0]) - n, int(xi[-1]) + n) if wrapped else (0, n)))
    first, last = int(base.min()), int(base.max()) + weights.shape[1]
    made = np.zeros((2, hi - lo, last - first))
    rows = np.arange(hi - lo)[:, None]
    columns = base[:, None] - first + np.arange(weights.shape[1])
    made[0, rows, columns] = weights
    made[1, rows, columns] = linear(xi[:, None], base[:, None])[:, 0]
    return (first, last), made


def line_weights(nodes: int, step: int) -> np.ndarray:
    """Return interpolation weights (2, nodes, coarser nodes) along one direction of a whole block with `nodes` nodes:
    of sixth order, and linear. With `step` 1 the coarser block has the same nodes along it, with `step` 2 every second
    one."""
    return np.stack([np.eye(nodes)] * 2) if step == 1 else _line(0, nodes, (nodes + 1) // 2, False)[1]


def interpolate(values: np.ndarray, weights: Sequence[np.ndarray], gas: Gas) -> np.ndarray:
    """Interpolate conservative variables. `values`: those in a window of nodes. `weights`: along i, j and k. Returns
    (n, nk, nj, ni)."""
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
    """Values with the nodes of a direction replaced by their weighted sums."""
    axis = 3 - d
    return np.moveaxis(np.tensordot(weights, values, axes=(1, axis)), 0, axis)
