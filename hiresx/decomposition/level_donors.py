"""Data transfer between levels of refinement: donor nodes of the ghosts of tiles, and nodes of a coarser level that are
overwritten by values of the finer one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.base.kept import Kept
from hiresx.decomposition.levels import part_on_level, stencils
from hiresx.decomposition.patched_donors import linear, share
from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.tile_ghosts import GhostFaces, TileGhosts, over_boxes, strides_of
from hiresx.grid.blocks import rectangles
from hiresx.grid.patched import WIDTH


def level_rows(whole: Decomposition, cut: Decomposition, found: Sequence[TileGhosts]) -> Iterator["LevelRows"]:
    """Yield the contributions of the nodes of all parts to the values of the ghosts of tiles, in the order of the
    parts. `whole`: the decomposition into whole blocks and tiles. `cut`: its division into parts for the ranks.
    `found`: the ghosts, as `find_level_donors` returns them; they are numbered consecutively. Each contribution has the
    weights of sixth-order and of linear interpolation.

    The ghosts of a face form a box of nodes, and so do the nodes of a part. The weights are therefore products of
    weights along each direction.
    """
    levels, halo = whole.levels, whole.stencil.halo
    assert levels is not None
    faces = GhostFaces(whole, found)
    tiles = [levels.tiles[block] for block in faces.block.tolist()]
    origin = np.array([[lo for lo, _ in tile.box] for tile in tiles]).reshape(-1, 3)
    lows, highs = faces.low + origin, faces.high + origin  # in the indexes of the level
    beside: dict[tuple[int, int], list[int]] = {}
    for n, tile in enumerate(tiles):
        beside.setdefault((tile.level - 1, tile.base), []).append(n)
    near = {key: np.array(some) for key, some in beside.items()}
    pieces = []  # part, nodes along each direction that a ghost reads, lines, and boxes of ghosts
    for p, part in enumerate(cut.parts):
        tile = part_on_level(levels, part)
        key = tile.level, tile.base
        if key not in near:
            continue
        space = levels.spaces[key]
        widths = triple(WIDTH if n > 1 else 1 for n in space.size)
        for turn in product(*((0, -1, 1) if w else (0,) for w in space.wrapped)):
            lines = triple(
                _along(n, wrap.step if wrap else 0, halo, of, t)
                for n, wrap, of, t in zip(space.size, space.wrapped, tile.box, turn, strict=True)
            )
            reached = np.array([(line.first, line.first + len(line.start)) for line in lines])
            low, high = np.maximum(lows[near[key]], reached[:, 0]), np.minimum(highs[near[key]], reached[:, 1])
            some = np.flatnonzero((low < high).all(axis=1))
            if some.size:
                pieces.append((p, widths, lines, near[key][some], low[some], high[some]))
    if not pieces:
        return
    face, low, high = (np.concatenate(some) for some in list(zip(*pieces, strict=True))[3:])
    none = np.zeros((0, len(face), 3), int)
    (ghost,) = faces.at_ghosts(face, low - origin[face], high - origin[face], none[..., 0], none)
    last = 0
    for p, widths, lines, of_piece, lowest, highest in pieces:
        boxes = [
            GhostBox.of(direction, side, lines, nodes)
            for direction, side, nodes in zip(
                faces.direction[of_piece].tolist(),
                faces.side[of_piece].tolist(),
                np.stack([lowest, highest], axis=2).tolist(),
                strict=True,
            )
        ]
        first, last = last, last + int((highest - lowest).prod(axis=1).sum())
        yield LevelRows(p, ghost[first:last], widths, lines, boxes)


@dataclass(frozen=True, eq=False)
class GhostBox:
    """A box of ghosts behind a face of a tile, layer by layer, within a layer along i first. `normal`: the direction
    (0, 1, 2) of the face. `columns`: the numbers of the ghosts along i, j and k in the lines of the contributions."""

    normal: int
    columns: tuple[np.ndarray, np.ndarray, np.ndarray]

    @classmethod
    def of(cls, normal: int, side: int, lines: "Sequence[Line]", nodes: Sequence[Sequence[int]]) -> "GhostBox":
        """Return the box of the ghosts at `nodes` (3, 2) of the level behind a face of this direction and `side`."""
        columns = [np.arange(lo - line.first, hi - line.first) for (lo, hi), line in zip(nodes, lines, strict=True)]
        # Behind a lower face layers follow each other against the index.
        columns[normal] = columns[normal][::side]
        return cls(normal, triple(columns))

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
    boxes = np.array([t.box for t in tiles]).reshape(-1, 3, 2)
    # Every 2^n-th node of a finer level coincides with a node of the part's level; n is the same for all nodes along a
    # direction.
    step = 2 ** np.maximum(level - level[:, None], 0)[..., None]
    low = np.maximum(-(-boxes[:, :, 0] // step), boxes[:, None, :, 0])
    high = np.minimum((boxes[:, :, 1] - 1) // step + 1, boxes[:, None, :, 1])
    over = (low < high).all(axis=2) & (base == base[:, None]) & (level > level[:, None])
    # Of each pair of parts the boxes under still finer levels are left out.
    part, finer = np.nonzero(over)
    shared = np.stack([low[part, finer], high[part, finer]], axis=1)
    first, last = (np.searchsorted(part, part, which) for which in ("left", "right"))
    (other,) = over_boxes((last - first)[:, None], first[None], np.ones((1, len(part), 1), int))
    pair = np.repeat(np.arange(len(part)), last - first)
    covers = np.stack(
        [np.maximum(shared[pair, 0], shared[other, 0]), np.minimum(shared[pair, 1], shared[other, 1])], axis=1
    )
    chosen = (level[finer[other]] > level[finer[pair]]) & (covers[:, 0] < covers[:, 1]).all(axis=1)
    pair, covers = pair[chosen], covers[chosen]
    ends = np.searchsorted(pair, np.arange(len(part) + 1)).tolist()
    covered = [covers[a:b].tobytes() for a, b in pairwise(ends)]
    ends_of_pairs = [*zip(part.tolist(), finer.tolist(), strict=True)]
    nodes = [(t.level, t.base, t.box) for t in tiles]
    keys = [(("under", nodes[p], nodes[q], of), ()) for (p, q), of in zip(ends_of_pairs, covered, strict=True)]

    def make(missing: list[int]) -> list[Pairs | None]:
        number = np.full(len(part), -1)
        number[missing] = np.arange(len(missing))
        some = number[pair] >= 0
        return _pairs(
            cut, boxes, part[missing], finer[missing], step[part[missing], finer[missing]], shared[missing],
            number[pair[some]], covers[some],
        )  # fmt: skip

    found = kept.together(keys, make)
    made = [Injection(q, p, pairs) for (p, q), pairs in zip(ends_of_pairs, found, strict=True) if pairs is not None]
    return sorted(made, key=lambda entry: (entry.donor, entry.block))


def _pairs(
    cut: Decomposition, boxes: np.ndarray, part: np.ndarray, finer: np.ndarray, step: np.ndarray, shared: np.ndarray,
    pair: np.ndarray, covers: np.ndarray,
) -> list[Pairs | None]:  # fmt: skip
    """Return the coincident nodes of n pairs of parts, `part` (n,) and `finer` (n,), of `cut`; None for a pair without
    any. `boxes`: the nodes of all parts, in the indexes of their levels. `step` (n, 1): the number of nodes of the
    finer level for one of the coarser. `shared` (n, 2, 3): first and last + 1 of the nodes of `part` that are also
    nodes of `finer`. `covers` (m, 2, 3): boxes among those of the pair `pair` (m,) that lie under still finer levels
    and are left out."""
    strides, origins = strides_of(cut.blocks, cut.stencil.halo)
    low, sizes = shared[:, 0], shared[:, 1] - shared[:, 0]
    places, steps = [], []
    for own, by in ((part, np.ones_like(step)), (finer, step)):
        places.append(origins[own] + (strides[own] * (by * low - boxes[own, :, 0])).sum(axis=1))
        steps.append((strides[own] * by)[:, ::-1])
    to, source = over_boxes(sizes[:, ::-1], np.stack(places), np.stack(steps)).astype(np.int32)
    count = sizes.prod(axis=1)
    free, begin = np.ones(len(to), bool), np.cumsum(count) - count
    inner = np.stack([np.ones_like(count), sizes[:, 0], sizes[:, 0] * sizes[:, 1]], axis=1)[pair]
    first = begin[pair] + (inner * (covers[:, 0] - low[pair])).sum(axis=1)
    free[over_boxes((covers[:, 1] - covers[:, 0])[:, ::-1], first[None], inner[None, :, ::-1])[0]] = False
    to, source = to[free], source[free]
    ends = np.concatenate([[0], np.cumsum(free)])[[*begin, len(free)]].tolist()
    return [Pairs(to[a:b], source[a:b]) if a < b else None for a, b in pairwise(ends)]
