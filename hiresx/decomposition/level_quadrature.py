"""Integrals over the levels of a refined grid. Every region counts once, with the values of its finest level.

Such an integral is that over the unrefined grid plus corrections. For every box of cells that a level covers, the
correction is the integral over the box on this level minus that on the next coarser level. The faces of a box pass
through nodes of both levels. The sums have Gregory's corrections at the ends (`quadrature`), as far as a box has nodes
for them. As a result, nodes of the level inside a box have weight 1, and the nodes under them have weight 0.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Decomposition
from hiresx.decomposition.levels import Levels
from hiresx.decomposition.quadrature import (
    BESIDE,
    PHYSICAL,
    block_weights,
    changes,
    ends,
    face_weights,
)
from hiresx.grid.blocks import FACES, Range, direction, directions_along, intersection, shift_range, slices
from hiresx.grid.cutting import within


class LevelWeights:
    """Quadrature weights of the nodes of all blocks of a refined grid, with which every place counts once, with its
    finest level. `nodes`: the weights (nk, nj, ni) of each block (see `quadrature.block_weights`). `faces`: for each
    (block, face) the weights, for integrals over boundaries of the unrefined grid, of the nodes on the face, [k, j, i]
    without the direction of the face. `decomposition`: the blocks, not divided among ranks. `kept`: whether to use the
    weights with which the scheme conserves mass at no-slip walls."""

    def __init__(self, decomposition: Decomposition, kept: bool = False):
        levels = decomposition.levels
        assert levels is not None
        self._levels = levels
        self.nodes: list[np.ndarray] = []
        self.faces: dict[tuple[int, str], np.ndarray] = {}
        for n, tile in enumerate(levels.tiles):
            block = decomposition.blocks[n]
            grid = tile.level == 0
            self.nodes.append(block_weights(decomposition, n, kept=kept) if grid else np.zeros(block.x.shape))
            for face in block.faces:
                made = face_weights(decomposition, n, face, kept=kept) if grid else None
                self.faces[n, face] = np.zeros(_across(block.size, face)) if made is None else made
        for base in range(levels.of_grid):
            kinds = {face: ends(decomposition, base, face, kept) for face in decomposition.blocks[base].faces}
            for level in range(1, levels.finest + 1):
                finer = {face: _on_finer(of, face, levels.spaces[level, base].size) for face, of in kinds.items()}
                for boxes, share in covered_cells(levels, level, base):
                    for cells in boxes:
                        self._add(level, base, cells, finer, share)
                        self._add(level - 1, base, cells, kinds, -share)
                kinds = finer

    def _add(self, level: int, base: int, cells: Range, kinds: dict[str, np.ndarray], share: float) -> None:
        """Add a `share` of the weights of the box `cells`, in cells of the coarser of two levels. If `share` is
        positive they are added on the finer level, otherwise on the coarser one."""
        space, per = self._levels.spaces[level, base], 2 if share > 0 else 1
        box: list[tuple[int, int]] = []
        open_ends = []
        for n, wrap, (lo, hi) in zip(space.size, space.wrapped, cells, strict=True):
            turns = wrap is not None and wrap.step == n
            period = turns and (per * lo, per * hi) == (0, n)
            open_ends.append(n > 1 and not period)
            box.append((0, 1) if n == 1 else (per * lo, per * hi + (not period)))
        whole: Range = triple(box)
        self._spread(level, base, whole, share * _box_weights(space.size, whole, kinds, open_ends), None)
        for face in kinds:
            d = direction(face)
            at = whole[d][0] if FACES.index(face) % 2 == 0 else whole[d][1] - 1
            if at != (0 if FACES.index(face) % 2 == 0 else space.size[d] - 1):
                continue
            layer: Range = triple((at, at + 1) if e == d else whole[e] for e in range(3))
            along = [open_ and e != d for e, open_ in enumerate(open_ends)]
            self._spread(level, base, layer, share * _box_weights(space.size, layer, kinds, along), face)

    def _spread(self, level: int, base: int, box: Range, values: np.ndarray, face: str | None) -> None:
        """Add `values` at the nodes `box` of a level to the blocks that have these nodes."""
        space = self._levels.spaces[level, base]
        turns = [
            (0, -n) if wrap is not None and hi > n else (0,)
            for n, wrap, (_, hi) in zip(space.size, space.wrapped, box, strict=True)
        ]
        for turn in product(*turns):
            there = shift_range(box, triple(turn))
            for n in self._levels.of(level, base):
                tile = self._levels.tiles[n]
                shared = intersection(there, tile.box)
                if shared is None:
                    continue
                own = values[slices(within(there, shared))]
                if face is None:
                    self.nodes[n][slices(within(tile.box, shared))] += own
                else:
                    d = direction(face)
                    at = tuple(slice(*within(tile.box, shared)[e]) for e in directions_along(face))
                    self.faces[n, face][at] += own.squeeze(2 - d)


def _across(size: tuple[int, int, int], face: str) -> list[int]:
    return [size[e] for e in directions_along(face)]


def _on_finer(kinds: np.ndarray, face: str, size: tuple[int, int, int]) -> np.ndarray:
    """Return the kinds of ends of lines at the nodes of a face of the next finer level, on which a block has `size`
    nodes."""
    return kinds[np.ix_(*(np.arange(n) // 2 for n in _across(size, face)))]


def _box_weights(
    size: tuple[int, int, int], box: Range, kinds: dict[str, np.ndarray], closed: Sequence[bool]
) -> np.ndarray:
    """Return the weights (nk, nj, ni) of the nodes `box` in an integral over the box. `kinds`: the kinds of ends of
    lines at the faces of the block of `size` nodes. `closed`: whether lines along a direction end at the faces of the
    box."""
    weights = np.ones([hi - lo for lo, hi in reversed(box)])
    for d in np.flatnonzero(closed):
        lo, hi = box[d]
        along = np.moveaxis(np.ones(weights.shape), 2 - d, 0)
        for upper, face in enumerate(FACES[2 * d : 2 * d + 2]):
            found = np.full(along.shape[1:], PHYSICAL)
            if (hi == size[d]) if upper else (lo == 0):
                # A box may extend across the end of a period.
                own = kinds[face][np.ix_(*(np.arange(*box[e]) % size[e] for e in directions_along(face)))]
                found = np.where(own == BESIDE, PHYSICAL, own)
            for m, change in changes(hi - lo):
                added = np.select([found == kind for kind in change], list(change.values()), 0.0)
                along[hi - lo - 1 - m if upper else m] += added
        weights *= np.moveaxis(along, 0, 2 - d)
    return weights


def covered_cells(levels: Levels, level: int, base: int) -> list[tuple[tuple[Range, ...], float]]:
    """Return the cells of the next coarser level that `level` covers completely in block number `base` of the unrefined
    grid, as boxes. `level`: 1 or more. `levels`: all levels of the grid. A cell is the box between a node and the next
    node along each direction, and has the indexes of the former. It is covered if the finer level has all nodes on its
    edges and inside it. In a block that is connected with itself, one spacing from its last node, there is also a cell
    behind the last node.

    The set of cells is divided into boxes in several ways, one for each order of the directions along which boxes are
    extended. Each entry of the result is one division, as a tuple of half-open ranges of cells (i, j, k), and its
    weight. An integral over the cells is the weighted mean over the divisions, and thus symmetric if the set of cells
    is."""
    space, tiles = levels.spaces[level, base], [levels.tiles[n] for n in levels.of(level, base)]
    if not tiles:
        return []
    lattice = [sorted({0, n, *(end for tile in tiles for end in tile.box[d])}) for d, n in enumerate(space.size)]
    there = np.zeros([len(ends_) - 1 for ends_ in reversed(lattice)], bool)
    for tile in tiles:
        at = [slice(along.index(lo), along.index(hi)) for along, (lo, hi) in zip(lattice, tile.box, strict=True)]
        there[tuple(reversed(at))] = True
    cells, places = [], []
    for along, n, wrap in zip(lattice, space.size, space.wrapped, strict=True):
        turns = wrap is not None and wrap.step == n
        last = 1 if n == 1 else n // 2 if turns else (n - 1) // 2
        marks = {min(mark, last) for end in along for mark in ((end + 1) // 2, max(end - 1, 0) // 2)}
        cells.append(sorted({0, last, *marks}))
        # A cell has the nodes 2c, 2c + 1 and 2c + 2. All cells between two neighbouring marks have them in the same
        # tiles.
        nodes = 2 * np.array(cells[-1][:-1])[:, None] + np.arange(3)
        places.append(np.searchsorted(along, nodes % n if turns or n == 1 else nodes, "right") - 1)
    inside = np.ones([len(marks) - 1 for marks in reversed(cells)], bool)
    for i, j, k in product(range(3), repeat=3):
        inside &= there[np.ix_(places[2][:, k], places[1][:, j], places[0][:, i])]
    orders = [*permutations(np.flatnonzero(np.array(space.size) > 1).tolist())]
    counted = Counter(tuple(sorted(_boxes_along(order, cells, inside))) for order in orders)
    return [(boxes, times / len(orders)) for boxes, times in counted.items()]


def _boxes_along(order: Sequence[int], lattice: Sequence[Sequence[int]], inside: np.ndarray) -> Iterator[Range]:
    """Yield boxes that cover the entries of the mask `inside` [k, j, i] between marks of `lattice`, each once. They
    extend along the first direction of `order` as far as entries are true, and along the next ones as far as the rows
    are equal. The boxes of a mirrored mask are the mirrored boxes."""
    axes = [*order, *(d for d in range(3) if d not in order)]
    for box in _runs(inside.transpose([2 - d for d in reversed(axes)])):
        ends_ = {d: (lattice[d][lo], lattice[d][hi]) for d, (lo, hi) in zip(axes, box, strict=True)}
        yield ends_[0], ends_[1], ends_[2]


def _runs(inside: np.ndarray) -> list[tuple[tuple[int, int], ...]]:
    """Yield the boxes of `_boxes_along` as indexes of the mask, the last axis first."""
    if inside.ndim == 1:
        marks = np.flatnonzero(np.diff(inside, prepend=False, append=False)).tolist()
        return [(run,) for run in zip(marks[::2], marks[1::2], strict=True)]
    found, begun = [], dict[tuple[tuple[int, int], ...], int]()
    for n in range(len(inside) + 1):
        now = _runs(inside[n]) if n < len(inside) else []
        found += [(*box, (begun.pop(box), n)) for box in [*begun] if box not in now]
        begun |= {box: n for box in now if box not in begun}
    return found
