"""Between levels: the nodes that ghosts of tiles come from, and the nodes that take the values of finer levels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.halo_copies import flat_index
from hiresx.decomposition.levels import Levels, Space, stencils
from hiresx.decomposition.patched_donors import PatchedDonors, Rows, layers_behind, linear, share
from hiresx.decomposition.patches import Decomposition
from hiresx.grid.blocks import intersection, shift_range
from hiresx.grid.patched import PATCHED, WIDTH


def find_level_donors(whole: Decomposition) -> list[PatchedDonors]:
    """The ghosts of all tiles that lie among nodes of the level before: `donor` is the whole block's own number, and
    `xi` the place in the indexes that the level before has of the same block of the grid: a half or a whole number."""
    assert whole.levels is not None
    found = []
    for place, patch in enumerate(whole.patches):
        if patch.condition.type != PATCHED:
            continue
        index = layers_behind(patch, range(1, whole.stencil.halo + 1)).reshape(3, -1)
        first = np.array([lo for lo, _ in whole.levels.tiles[patch.block].box])
        xi = (index + first[:, None]).T / 2
        found.append(PatchedDonors(place, index, np.full(len(xi), patch.block), xi, 0.0, 0.0))
    return found


def level_rows(whole: Decomposition, cut: Decomposition, donor: np.ndarray, xi: np.ndarray) -> Iterator[Rows]:
    """Yield the contributions of all parts of `cut`, in their order, to the ghosts at `xi` (n, 3) of the tiles `donor`
    (n,), both from `find_level_donors`. Each has the weights of the sixth-order and of the linear interpolation."""
    levels = whole.levels
    assert levels is not None
    tiles = np.array([(tile.level, tile.base) for tile in levels.tiles])[donor]
    prepared = {}
    for level, base in np.unique(tiles, axis=0).tolist():
        at = np.flatnonzero((tiles == (level, base)).all(axis=1))
        space = levels.spaces[level - 1, base]
        start, weights = _weights(xi[at], space, whole.stencil.halo)
        prepared[level - 1, base] = at, start, np.stack([weights, linear(xi[at], start)])
    for p, part in enumerate(cut.parts):
        tile = levels.tiles[part.whole]
        if (tile.level, tile.base) not in prepared:
            continue
        at, start, weights = prepared[tile.level, tile.base]
        space = levels.spaces[tile.level, tile.base]
        box = shift_range(part.box, triple(lo for lo, _ in tile.box))
        for turn in product(*((0, -1, 1) if w else (0,) for w in space.wrapped)):
            step = np.array([t * w.step if w else 0 for t, w in zip(turn, space.wrapped, strict=True)])
            image, ends = start - step, np.array(box).T
            near = np.flatnonzero(((image + WIDTH > ends[0]) & (image < ends[1])).all(axis=1))
            made = share(start[near], weights[:, near], space.size, box, turn, step) if near.size else None
            if made is not None:
                chosen, first, widths, own = made
                flat = flat_index(first.T, cut.blocks[p], cut.stencil.halo)
                yield Rows(p, at[near[chosen]], flat, widths, own)


def _weights(xi: np.ndarray, space: Space, halo: int) -> tuple[np.ndarray, np.ndarray]:
    """First nodes (n, 3) and weights (n, 3, WIDTH) of interpolations, 0 and (1, 0, ...) along directions of one
    node."""
    base, weights = np.zeros(xi.shape, int), np.zeros((*xi.shape, WIDTH))
    weights[:, :, 0] = 1.0
    for d, (n, wrap) in enumerate(zip(space.size, space.wrapped, strict=True)):
        if n > 1:
            # Over a period whose ends share nodes there need not be tiles on both sides.
            low, high = (-halo, n + halo) if wrap is not None and wrap.step == n else (0, n)
            base[:, d], weights[:, d] = stencils(xi[:, d], low, high)
    return base, weights


@dataclass(frozen=True, eq=False)
class Injection:
    """Nodes of part `block` that lie under nodes of part `donor`, of a finer level: `to` and `source` (n,), int32, flat
    indexes into the padded arrays of both, in ascending order of `to`."""

    donor: int
    block: int
    to: np.ndarray
    source: np.ndarray


def injections(whole: Decomposition, cut: Decomposition) -> list[Injection]:
    """For every node that lies under a finer level, the node of the finest level there, grouped by donor and block."""
    levels = whole.levels
    assert levels is not None
    found = []
    of_level = np.array([t.level for t in levels.tiles])
    starts_of = np.array([[lo for lo, _ in t.box] for t in levels.tiles]).reshape(-1, 3)
    finer_over = _tiles_over(levels)
    parts: dict[int, list[int]] = {}
    for p, part in enumerate(cut.parts):
        parts.setdefault(part.whole, []).append(p)
    for b, tile in enumerate(levels.tiles):
        finest = _finest_over(levels, b, finer_over(b))
        covered = np.flatnonzero(finest.ravel() >= 0)
        if not covered.size:
            continue
        k, j, i = np.unravel_index(covered, finest.shape)
        donor = finest.ravel()[covered]
        index = np.stack([i, j, k])
        origin = np.array([lo for lo, _ in tile.box])[:, None]
        source = (index + origin) * 2 ** (of_level[donor] - tile.level) - starts_of[donor].T
        # nodes of one donor side by side
        order = np.argsort(donor, kind="stable")
        donors, first = np.unique(donor[order], return_index=True)
        for d, nodes in zip(donors, np.split(order, first[1:]), strict=True):
            for p in parts.get(b, ()):
                inside, to = _in_part(cut, p, index[:, nodes])
                for q in parts.get(int(d), ()):
                    there, flat = _in_part(cut, q, source[:, nodes])
                    both = inside & there
                    if both.any():
                        found.append(Injection(q, p, to[both], flat[both]))
    return sorted(found, key=lambda entry: (entry.donor, entry.block))


def _tiles_over(levels: Levels) -> Callable[[int], list[int]]:
    """The tiles of finer levels of the same block of the grid that may lie over a tile, by number; coarser first."""
    number = np.array([t.level for t in levels.tiles])
    base = np.array([t.base for t in levels.tiles])
    boxes = np.array([t.box for t in levels.tiles], dtype=np.int64).reshape(-1, 3, 2)
    order = np.argsort(number, kind="stable")

    def over(b: int) -> list[int]:
        # a node of the tile's level lies on every 2^n-th of a finer one, and directions of one node have one throughout
        step = 2 ** np.maximum(number - number[b], 0)[:, None]
        low, high = boxes[:, :, 0] // step, -(-boxes[:, :, 1] // step)
        meets = ((low < boxes[b, :, 1]) & (high > boxes[b, :, 0])).all(axis=1)
        chosen = meets & (base == base[b]) & (number > number[b])
        return [int(n) for n in order[chosen[order]]]

    return over


def _in_part(cut: Decomposition, p: int, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the nodes (3, n) of a whole block lie in a part, and flat indexes, which say nothing of the others."""
    box = np.array(cut.parts[p].box)
    inside = ((index >= box[:, :1]) & (index < box[:, 1:])).all(axis=0)
    return np.asarray(inside), flat_index(index - box[:, :1], cut.blocks[p], cut.stencil.halo)


def _finest_over(levels: Levels, b: int, over: Sequence[int]) -> np.ndarray:
    """Of each node of a whole block, (nk, nj, ni), the tile of the finest level that has it too, -1 where none has.
    `over`: the tiles that may, the finest last."""
    tile = levels.tiles[b]
    found = np.full([hi - lo for lo, hi in reversed(tile.box)], -1)
    for n in over:
        other = levels.tiles[n]
        step = 2 ** (other.level - tile.level)
        size = levels.spaces[tile.level, tile.base].size
        under = triple(
            (0, 1) if size[d] == 1 else (-(-lo // step), (hi - 1) // step + 1) for d, (lo, hi) in enumerate(other.box)
        )
        shared = intersection(tile.box, under)
        if shared is not None:
            origin = [lo for lo, _ in tile.box]
            at = tuple(slice(shared[d][0] - origin[d], shared[d][1] - origin[d]) for d in (2, 1, 0))
            found[at] = n
    return found
