"""Data transfer between levels of refinement: donor nodes of the ghosts of tiles, and nodes of a coarser level that are
overwritten by values of the finer one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.base.kept import Kept
from hiresx.decomposition.halo_copies import flat_box
from hiresx.decomposition.levels import Tile, part_on_level, stencils
from hiresx.decomposition.patched_donors import layers_behind, linear, share
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.grid import Block
from hiresx.grid.blocks import Range, direction, rectangles, side
from hiresx.grid.patched import PATCHED, WIDTH


@dataclass(frozen=True, eq=False)
class TileGhosts:
    """The ghosts behind one face of a tile that are interpolated from the next coarser level. `place`: the number of
    the patch in the list of patches of the whole blocks. `index` (3, n): indexes i, j, k of these ghosts in the whole
    block, layer by layer."""

    place: int
    index: np.ndarray

    per = 1  # places for each ghost


def find_level_donors(whole: Decomposition) -> list[TileGhosts]:
    """Return the ghosts of all tiles that are interpolated from the next coarser level."""
    layers = range(1, whole.stencil.halo + 1)
    return [
        TileGhosts(place, layers_behind(patch, layers).reshape(3, -1))
        for place, patch in enumerate(whole.patches)
        if patch.condition.type == PATCHED
    ]


def level_rows(
    whole: Decomposition, cut: Decomposition, found: Sequence[TileGhosts], kept: Kept | None = None
) -> Iterator["LevelRows"]:
    """Yield the contributions of the nodes of all parts to the values of the ghosts of tiles, in the order of the
    parts. `whole`: the decomposition into whole blocks and tiles. `cut`: its division into parts for the ranks.
    `found`: the ghosts, as `find_level_donors` returns them; they are numbered consecutively. Each contribution has the
    weights of sixth-order and of linear interpolation. `kept`: a cache of contributions; those of the same part to the
    same ghosts are not computed again.

    The ghosts of a face form a box of nodes, and so do the nodes of a part. The weights are therefore products of
    weights along each direction.
    """
    levels, halo = whole.levels, whole.stencil.halo
    assert levels is not None
    kept = kept or Kept()
    faces: dict[tuple[int, int], list[_GhostFace]] = {}
    number = 0
    for entry in found:
        patch = whole.patches[entry.place]
        tile = levels.tiles[patch.block]
        faces.setdefault((tile.level - 1, tile.base), []).append(_GhostFace.of(patch, tile, halo, number))
        number += entry.index.shape[1]
    ends_of = {key: np.array([face.box for face in some]) for key, some in faces.items()}
    for p, part in enumerate(cut.parts):
        tile = part_on_level(levels, part)
        key = tile.level, tile.base
        if key not in faces:
            continue
        space, box = levels.spaces[key], tile.box
        for turn in product(*((0, -1, 1) if w else (0,) for w in space.wrapped)):
            lines = [
                _along(n, wrap.step if wrap else 0, halo, ends, t)
                for n, wrap, ends, t in zip(space.size, space.wrapped, box, turn, strict=True)
            ]
            reached = np.array([(line.first, line.first + len(line.start)) for line in lines])
            low, high = np.maximum(ends_of[key][..., 0], reached[:, 0]), np.minimum(ends_of[key][..., 1], reached[:, 1])
            near = (low < high).all(1)
            some = [faces[key][n] for n in np.flatnonzero(near)]
            if some:

                def make(
                    lines: Sequence[Line] = lines, some: Sequence[_GhostFace] = some
                ) -> list[tuple[np.ndarray, GhostBox]]:
                    return [face.share(lines) for face in some]

                shares = kept(("donors", tile, turn, *(face.key for face in some)), (), make)
                ghost = np.concatenate([face.number + own for face, (own, _) in zip(some, shares, strict=True)])
                widths = triple(WIDTH if n > 1 else 1 for n in space.size)
                yield LevelRows(p, ghost, widths, triple(lines), [box for _, box in shares])


@dataclass(frozen=True, eq=False)
class GhostBox:
    """A box of ghosts behind a face of a tile, layer by layer, within a layer along i first. `normal`: the direction
    (0, 1, 2) of the face. `columns`: the numbers of the ghosts along i, j and k in the lines of the contributions."""

    normal: int
    columns: tuple[np.ndarray, np.ndarray, np.ndarray]

    @property
    def shape(self) -> Size:
        """The numbers of ghosts: layers, and along both directions of the face, the last one first."""
        first, second = (d for d in range(3) if d != self.normal)
        return triple(len(self.columns[d]) for d in (self.normal, second, first))

    def boxes_of(self, chosen: np.ndarray) -> "Iterator[tuple[GhostBox, np.ndarray]]":
        """Yield disjoint boxes that consist of the ghosts number `chosen`, an ascending array, each with the places of
        its ghosts in this array. Each layer has the same chosen ghosts."""
        numbers = np.full(prod(self.shape), -1)
        numbers[chosen] = np.arange(len(chosen))
        numbers = numbers.reshape(self.shape)
        for (a, b), (c, d) in rectangles(numbers[0] >= 0):
            columns, (first, second) = [*self.columns], (d for d in range(3) if d != self.normal)
            columns[first], columns[second] = columns[first][c:d], columns[second][a:b]
            yield GhostBox(self.normal, triple(columns)), numbers[:, a:b, c:d].ravel()


@dataclass(frozen=True, eq=False)
class LevelRows:
    """Contributions of the nodes of one part to ghosts of tiles, as `hiresx.decomposition.patched_donors.Rows`. `part`:
    the part that has the nodes. `ghost` (n,): the numbers of the ghosts, box by box. `widths`: the number of nodes in
    each direction. `lines`: the weights along i, j and k. `boxes`: the ghosts."""

    part: int
    ghost: np.ndarray
    widths: Size
    lines: "tuple[Line, Line, Line]"
    boxes: Sequence[GhostBox]
    turn = None

    def boxes_of(self, chosen: np.ndarray) -> Iterator[tuple[GhostBox, np.ndarray]]:
        """Yield the boxes of the contributions number `chosen`, an ascending array, each with the places of its ghosts
        in this array."""
        ends = np.cumsum([0, *(prod(box.shape) for box in self.boxes)])
        for box, (first, last), (a, b) in zip(
            self.boxes, pairwise(ends), pairwise(np.searchsorted(chosen, ends)), strict=True
        ):
            if b - a == last - first:
                yield box, np.arange(a, b)
            else:
                yield from ((own, a + places) for own, places in box.boxes_of(chosen[a:b] - first))


@dataclass(frozen=True, eq=False)
class Line:
    """The nodes of a level along a direction, from `first` on, to whose interpolation from the coarser level a part
    contributes: first nodes in the part `start` (n,), and weights (2, WIDTH, n), of the interpolation and of linear
    interpolation. A node has the same place, its column, in both."""

    first: int
    start: np.ndarray
    weights: np.ndarray


@lru_cache(maxsize=512)
def _along(n: int, step: int, halo: int, ends: tuple[int, int], turn: int) -> Line:
    """Return the `Line` of a part with the nodes `ends` of a direction with `n` nodes. The direction continues in
    itself after a step of `step` nodes (0: it does not). `turn`: see `share`."""
    if n == 1:
        return Line(0, np.zeros(1, int), np.broadcast_to(np.eye(WIDTH)[:, :1], (2, WIDTH, 1)))
    shift = turn * step
    places = np.arange(2 * (ends[0] + shift - WIDTH), 2 * (ends[1] + shift + WIDTH))
    xi = places / 2
    # Across a period whose ends share nodes, one of the two sides may have no tile.
    base, weights = stencils(xi, *((-halo, n + halo) if step == n else (0, n)))
    whole = np.zeros((2, len(xi), 3, WIDTH))
    whole[..., 0] = 1.0
    whole[:, :, 0] = weights, linear(xi[:, None], base[:, None])[:, 0]
    starts = np.zeros((len(xi), 3), int)
    starts[:, 0] = base
    made = share(starts, whole, (n, 1, 1), (ends, (0, 1), (0, 1)), (turn, 0, 0), (shift, 0, 0))
    if made is None:
        return Line(0, np.zeros(0, int), np.zeros((2, WIDTH, 0)))
    chosen, start, _, own = made
    return Line(int(places[chosen[0]]), start[:, 0], own[:, 0])


@dataclass(frozen=True, eq=False)
class _GhostFace:
    """The ghosts behind a face of a tile, numbered from `number` on: layer by layer, within a layer along i first.
    `nodes`: their nodes along i, j and k, in the indexes of the level. `direction`: that of the face."""

    number: int
    direction: int
    nodes: tuple[np.ndarray, np.ndarray, np.ndarray]

    @classmethod
    def of(cls, patch: Patch, tile: Tile, halo: int, number: int) -> "_GhostFace":
        d = direction(patch.face)
        origin = [lo for lo, _ in tile.box]
        nodes = [np.arange(lo + o, hi + o) for (lo, hi), o in zip(patch.range, origin, strict=True)]
        nodes[d] = nodes[d] + side(patch.face) * np.arange(1, halo + 1)
        return cls(number, d, triple(nodes))

    @property
    def box(self) -> Range:
        return triple((int(along.min()), int(along.max()) + 1) for along in self.nodes)

    @cached_property
    def key(self) -> tuple[int, bytes]:
        """Says which ghosts these are, in their order."""
        return self.direction, b"".join(along.tobytes() for along in self.nodes)

    def share(self, lines: Sequence[Line]) -> tuple[np.ndarray, GhostBox]:
        """Return the ghosts (n,) to which a part with these lines contributes, counted from the first of the face, and
        their box."""
        columns = [nodes - line.first for nodes, line in zip(self.nodes, lines, strict=True)]
        inside = [
            np.flatnonzero((column >= 0) & (column < len(line.start)))
            for column, line in zip(columns, lines, strict=True)
        ]
        box = GhostBox(self.direction, triple(column[own] for column, own in zip(columns, inside, strict=True)))
        first, second = (d for d in range(3) if d != self.direction)
        layer, y, x = np.ix_(inside[self.direction], inside[second], inside[first])
        ghost = (layer * len(self.nodes[second]) + y) * len(self.nodes[first]) + x
        return ghost.ravel(), box


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes at the same point, one in a part and one in a part of a finer level. `to` (n,): nodes of the
    coarser part. `source` (n,): nodes of the finer part. Both are int32 flat indexes into the padded arrays of their
    parts, sorted by `to`."""

    to: np.ndarray
    source: np.ndarray


@dataclass(frozen=True, eq=False)
class Injection:
    """Copies from part `donor`, of a finer level, to nodes of part `block` at the same points. `pairs`: the pairs of
    nodes."""

    donor: int
    block: int
    pairs: Pairs

    @property
    def to(self) -> np.ndarray:
        """Flat indexes (n,) of the nodes that receive values."""
        return self.pairs.to

    @property
    def source(self) -> np.ndarray:
        """Flat indexes (n,) of the nodes whose values are copied."""
        return self.pairs.source


def injections(whole: Decomposition, cut: Decomposition, kept: Kept | None = None) -> list[Injection]:
    """Return the copies from finer to coarser levels. Each node that lies under a finer level takes the value of the
    node of the finest level at the same point. `cut`: the parts of all ranks. There is one `Injection` for each pair of
    parts between which values are copied. `kept`: a cache; pairs of parts with the same nodes are not computed
    again."""
    assert whole.levels is not None
    kept = kept or Kept()
    tiles = [part_on_level(whole.levels, part) for part in cut.parts]
    level, base = np.array([t.level for t in tiles]), np.array([t.base for t in tiles])
    boxes, halo = np.array([t.box for t in tiles]).reshape(-1, 3, 2), cut.stencil.halo
    # Every 2^n-th node of a finer level coincides with a node of the part's level; n is the same for all nodes along a
    # direction.
    step = 2 ** np.maximum(level - level[:, None], 0)[..., None]
    low = np.maximum(-(-boxes[:, :, 0] // step), boxes[:, None, :, 0])
    high = np.minimum((boxes[:, :, 1] - 1) // step + 1, boxes[:, None, :, 1])
    over = (low < high).all(axis=2) & (base == base[:, None]) & (level > level[:, None])
    place = np.nonzero(over)
    shared = np.stack([low[place], high[place]], axis=2).tolist()
    of_part: dict[int, list[tuple[int, list[list[int]]]]] = {}
    for p, q, box in zip(*(at.tolist() for at in place), shared, strict=True):
        of_part.setdefault(p, []).append((q, box))
    found = []
    for p, above in of_part.items():
        for q, box in above:
            finer = (other for r, other in above if tiles[r].level > tiles[q].level)
            covering = [o for o in finer if all(a[0] < b[1] and b[0] < a[1] for a, b in zip(o, box, strict=True))]
            nodes = [tuple(slice(*ends) for ends in of) for of in (box, *covering)]

            def make(p: int = p, q: int = q, nodes: list[tuple[slice, ...]] = nodes) -> Pairs | None:
                return _pairs([tiles[r] for r in (p, q)], [cut.blocks[r] for r in (p, q)], halo, nodes)

            key = "under", tiles[p], tiles[q], *(n for of in covering for ends in of for n in ends)
            pairs = kept(key, (), make)
            if pairs is not None:
                found.append(Injection(q, p, pairs))
    return sorted(found, key=lambda entry: (entry.donor, entry.block))


def _pairs(
    tiles: Sequence[Tile], blocks: Sequence[Block], halo: int, nodes: Sequence[tuple[slice, ...]]
) -> Pairs | None:
    """Return the pairs of coincident nodes of two parts, the second of which is of a finer level than the first.
    `nodes[0]`: the nodes of the first part that lie under the second. The other `nodes` lie under still finer levels
    and are left out. All are in the indexes of the level of the first part. The result is None if no node is left."""
    first, *covered = (tuple(reversed(of)) for of in nodes)
    steps = 1, 2 ** (tiles[1].level - tiles[0].level)
    found = []
    for tile, block, step in zip(tiles, blocks, steps, strict=True):
        ends = zip(nodes[0], tile.box, strict=True)
        lines = [np.arange(step * of.start - origin, step * of.stop - origin, step) for of, (origin, _) in ends]
        found.append(flat_box(lines, block, halo))
    free = np.ones(found[0].shape, bool)
    for other in covered:
        of_box = zip(other, first, strict=True)
        free[tuple(slice(max(o.start - f.start, 0), o.stop - f.start) for o, f in of_box)] = False
    return Pairs(*(indexes[free] for indexes in found)) if free.any() else None
