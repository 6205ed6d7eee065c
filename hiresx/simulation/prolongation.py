"""The state of one set of tiles carried to another one: as it is where tiles stay, interpolated where they are new.

A new tile takes what nodes of the level before have where its own nodes lie on them, and between these the value of
sixth order in the spacing, by polynomials of degree 5, or the linear one where density or pressure of the two differ by
a tenth and more, with a smooth passage between, as ghosts of tiles do (kernels/interpolated.h)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Domain
from hiresx.decomposition.held_arrays import Piece
from hiresx.decomposition.hierarchy import Hierarchy
from hiresx.decomposition.levels import Levels, Space, Tile, stencils
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patched_donors import linear
from hiresx.equations.gas import Gas
from hiresx.grid.blocks import Range, intersection, shift_range, slices
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
    """Return a reader of the state on the parts of `ground`. It is taken or interpolated from `pieces`, those of this
    rank on the tiles `before`. Collective."""
    whole, hierarchy, comm = ground.whole.levels, ground.hierarchy, ground.comm
    assert whole is not None and hierarchy is not None
    # Of the tiles of the lattices, whatever blocks they were and will be joined to.
    after = Levels(tuple(Tile(t.level, t.base, box) for t in whole.tiles for box in hierarchy.apart(t)), whole.spaces)
    numbers = {tile: n for n, tile in enumerate(after.tiles)}
    old = {Tile(t.level, t.base, box) for t in before.tiles for box in hierarchy.apart(t)}
    kept = [
        Piece(f"{name}.{numbers[tile]}", box, array)
        for name, tile, box, array in _apart(pieces, before, hierarchy)
        if tile in numbers
    ]
    of_parts = [
        [
            Part(numbers[tile], box, part.rank)
            for tile, box, _ in _tiles_of(part.box, whole.tiles[part.whole], hierarchy)
        ]
        for part in ground.cut.parts
    ]
    parts = [own for of_part in of_parts for own in of_part]
    reader = redistribute(kept, parts, comm)
    assert reader.pieces is not None  # they lie in memory
    found = list(reader.pieces)
    for level in range(1, after.finest + 1):
        new = {n for n, tile in enumerate(after.tiles) if tile.level == level and tile not in old}
        if new:
            found += _prolong(found, level, new, parts, comm, after, gas)
    return distributed_arrays.read_from_memory(_join_pieces(found, after, ground))


def _tiles_of(box: Range, block: Tile, hierarchy: Hierarchy) -> Iterator[tuple[Tile, Range, Range]]:
    """Of a box of nodes of a block of joined tiles: each of these that has nodes there, these nodes in its own indexes,
    and their place in the box."""
    own = shift_range(box, triple(lo for lo, _ in block.box))
    for tile in hierarchy.apart(block):
        shared = intersection(tile, own)
        if shared is not None:
            yield Tile(block.level, block.base, tile), within(tile, shared), within(own, shared)


def _apart(
    pieces: Iterable[Piece], levels: Levels, hierarchy: Hierarchy
) -> Iterator[tuple[str, Tile, Range, np.ndarray]]:
    """What pieces on blocks of joined tiles hold of each of these: name of the array, tile, box and content."""
    for piece in pieces:
        name, _, number = piece.name.rpartition(".")
        array = np.asarray(piece.array)
        for tile, box, at in _tiles_of(piece.box, levels.tiles[int(number)], hierarchy):
            yield name, tile, box, array[(..., *slices(at))]


def _join_pieces(pieces: Sequence[Piece], after: Levels, ground: Domain) -> Iterator[Piece]:
    """The pieces of the parts of this rank, from those of the tiles `after` that they hold: of the arrays that all of
    these have."""
    whole, hierarchy = ground.whole.levels, ground.hierarchy
    assert whole is not None and hierarchy is not None
    numbers = {tile: n for n, tile in enumerate(after.tiles)}
    arrays = {(piece.name, piece.box): np.asarray(piece.array) for piece in pieces}
    names = list(dict.fromkeys(piece.name.rpartition(".")[0] for piece in pieces))
    for place in ground.mine:
        part = ground.cut.parts[place]
        tiles = list(_tiles_of(part.box, whole.tiles[part.whole], hierarchy))
        for name in names:
            own = [arrays.get((f"{name}.{numbers[tile]}", box)) for tile, box, _ in tiles]
            there = [array for array in own if array is not None]
            if len(there) < len(own):
                continue
            made = np.empty((*there[0].shape[:-3], *(hi - lo for lo, hi in reversed(part.box))), there[0].dtype)
            for array, (_, _, at) in zip(there, tiles, strict=True):
                made[(..., *slices(at))] = array
            yield Piece(f"{name}.{part.whole}", part.box, made)


def _prolong(
    held: Sequence[Piece],
    level: int,
    new: set[int],
    all_parts: Sequence[Part],
    comm: Communicator,
    levels: Levels,
    gas: Gas,
) -> Iterator[Piece]:
    """The state of the parts of this rank of the tiles `new` of a level, from that of the level before."""
    windows = [_Window(part, levels) for part in all_parts if part.whole in new]
    below = [n for n, tile in enumerate(levels.tiles) if tile.level == level - 1]
    needs: dict[tuple[int, int], Range] = {}  # by rank and tile: a box around all nodes that are needed
    for window in windows:
        for n in below:
            if levels.tiles[n].base != window.base:
                continue
            for _, box in window.within(levels.tiles[n].box):
                key = window.part.rank, n
                needs[key] = _around(needs[key], box) if key in needs else box
    parts = [Part(n, within(levels.tiles[n].box, box), rank) for (rank, n), box in sorted(needs.items())]
    coarse = [piece for piece in held if int(piece.name.rpartition(".")[2]) in set(below)]
    reader = redistribute(coarse, parts, comm)
    assert reader.pieces is not None
    arrays = {
        int(piece.name.rpartition(".")[2]): (piece.box, np.asarray(piece.array))
        for piece in reader.pieces
        if piece.name.startswith(f"{STATE}.")
    }
    for window in windows:
        if window.part.rank == comm.rank:
            values = window.filled(levels, arrays)
            made = interpolated(values, window.weights, gas)
            yield Piece(f"{STATE}.{window.part.whole}", window.part.box, made)


def _around(a: Range, b: Range) -> Range:
    return triple((min(lo, low), max(hi, high)) for (lo, hi), (low, high) in zip(a, b, strict=True))


class _Window:
    """The nodes of the level before from which those of a `part` of a new tile are interpolated. `box`: in the indexes
    of that level, beyond a block's ends where it goes on in itself. `weights`: per direction (2, nodes, nodes of the
    window), of sixth order and linear."""

    def __init__(self, part: Part, levels: Levels):
        tile = levels.tiles[part.whole]
        self.part, self.base = part, tile.base
        self._space: Space = levels.spaces[tile.level - 1, tile.base]
        own = shift_range(part.box, triple(lo for lo, _ in tile.box))
        box, weights = [], []
        for (lo, hi), n, wrap in zip(own, self._space.size, self._space.wrapped, strict=True):
            ends, made = _line(lo, hi, n, wrap is not None and wrap.step == n)
            box.append(ends)
            weights.append(made)
        self.box: Range = triple(box)
        self.weights = weights

    def within(self, tile: Range) -> Iterator[tuple[tuple[slice, slice, slice], Range]]:
        """Where in the window nodes of a tile of the level before lie, and which these are."""
        turns = (
            (0, n, -n) if lo < 0 or hi > n else (0,) for (lo, hi), n in zip(self.box, self._space.size, strict=True)
        )
        for turn in product(*turns):
            shared = intersection(shift_range(tile, triple(turn)), self.box)
            if shared is not None:
                back = shift_range(shared, triple(-t for t in turn))
                yield slices(within(self.box, shared)), back

    def filled(self, levels: Levels, arrays: Mapping[int, tuple[Range, np.ndarray]]) -> np.ndarray:
        """The values (variables, nk, nj, ni) of the window, from boxes of the tiles of the level before."""
        found: np.ndarray | None = None
        for n, (held, array) in arrays.items():
            tile = levels.tiles[n]
            if tile.base != self.base:
                continue
            box = shift_range(held, triple(lo for lo, _ in tile.box))
            for to, nodes in self.within(box):
                if found is None:
                    shape = [hi - lo for lo, hi in reversed(self.box)]
                    found = np.full((len(array), *shape), np.nan, array.dtype)
                found[(slice(None), *to)] = array[(slice(None), *slices(within(box, nodes)))]
        assert found is not None and not np.isnan(found).any()  # the level before lies around every tile
        return found


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


def interpolated(values: np.ndarray, weights: Sequence[np.ndarray], gas: Gas) -> np.ndarray:
    """Conservative variables (n, nk, nj, ni), interpolated from `values` in a window by `weights` along i, j and k."""
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
