"""Data transfer between levels of refinement: donor nodes of the ghosts of tiles (boxes of nodes of a finer level), and
nodes of a coarser level that are overwritten by values of the finer one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from hiresx.decomposition.levels import Levels, part_on_level, stencils
from hiresx.decomposition.nodes_behind import CLOSED, Ends, NodesBehind, divided_by_stencils, usable
from hiresx.decomposition.patched_donors import linear
from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.tile_ghosts import TileGhosts, first_places, over_boxes, strides_of
from hiresx.grid.blocks import Range, intersection, ranges_of
from hiresx.grid.patched import WIDTH


@dataclass(frozen=True, eq=False)
class LevelShares:
    """Contributions to the ghost nodes of boxes of finer grid (tiles), which are interpolated from the next coarser
    level. Each of the n entries is the contribution of the nodes that one rank has in a box of the coarser level (a
    part) to a box of ghosts. Its weights are products of weights along the three directions. The entries are sorted by
    part. All arrays are integers.

    - `part` (n,): the number of the part that contributes, among the parts of all ranks.
    - `ghosts` (n,): the number of the box of ghosts, among the boxes of a `TileGhosts`.
    - `low`, `high` (n, 3): the indexes i, j, k of the first and of the last + 1 of the ghosts of the entry, on the
      finer level.
    - `lines`: the different sets of weights along a direction. `line` (n, 3): the numbers of those that apply along i,
      j, k.
    - `columns` (n, 3): the column of the weights of each `line` that belongs to the first ghost.
    - `widths` (n, 3): the number of nodes that a ghost reads along each direction.
    - `start` (n,), `steps` (n, 3): the ghost with the indexes m (3,) has the number start + sum(steps (m - low)) in its
      box. Ghosts are numbered layer by layer from the face outwards, and within a layer along i first.
    - `turn` (n, 3, 3), `corner` (n, 3): the node of the part with the indexes m (3,) in the directions of the ghosts,
      counted from the corner of the part where all of these are lowest, has the indexes `turn` @ m + `corner` in the
      part. The part may belong to another block than the ghosts, whose indexes run in other directions."""

    part: np.ndarray
    ghosts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lines: "Sequence[Line]"
    line: np.ndarray
    columns: np.ndarray
    widths: np.ndarray
    steps: np.ndarray
    start: np.ndarray
    turn: np.ndarray
    corner: np.ndarray

    @property
    def count(self) -> np.ndarray:
        """Number of ghost nodes to which each of the n entries contributes, an integer array (n,). An entry is the
        contribution of one rank's box of coarser nodes to one box of ghosts."""
        return (self.high - self.low).prod(axis=1)


def level_shares(whole: Decomposition, cut: Decomposition, ghosts: TileGhosts) -> LevelShares:
    """Return the weights with which ghost nodes of boxes of finer grid are interpolated from the nodes of coarser
    levels, as contributions (`LevelShares`) of the boxes of nodes that the ranks compute. `ghosts`: these ghost nodes,
    as boxes. `whole`: the decomposition before its division among ranks. `cut`: the decomposition into the boxes that
    the ranks compute."""
    levels, halo = whole.levels, whole.stencil.halo
    assert levels is not None
    # The index spaces to which the nodes of each block belong: its own, and those of blocks that it continues.
    divided, spaces = {}, dict[tuple[int, int], list[tuple[tuple[int, int], NodesBehind]]]()
    for level, base in sorted({*zip((ghosts.level - 1).tolist(), ghosts.base.tolist(), strict=True)}):
        divided[level, base] = _divided_ghosts(ghosts, levels, level, base, halo)
        for nodes in levels.spaces[level, base].nodes(base):
            spaces.setdefault((level, nodes.block), []).append(((level, base), nodes))
    of_part, own_lines, widths, of_ghosts, reached, turns, corners = [], [], [], [], [], [], []
    numbers: dict[Line, int] = {}
    for p, part in enumerate(cut.parts):
        tile = part_on_level(levels, part)
        for key, nodes in spaces.get((tile.level, tile.base), ()):
            own, size = nodes.here(tile.box), levels.spaces[key].size
            if intersection(own, nodes.box) is None:
                continue
            matrix, first = np.array(nodes.matrix), [[lo for lo, _ in box] for box in (own, tile.box)]
            for ends, those, least, most in divided[key]:
                lines = [
                    _along(n, usable(n, of, halo), box, within)
                    for n, of, box, within in zip(size, ends, own, nodes.box, strict=True)
                ]
                begin, end = np.array([(line.first, line.first + len(line.start)) for line in lines]).T
                low, high = np.maximum(least, begin), np.minimum(most, end)
                some = np.flatnonzero((low < high).all(axis=1))
                own_lines += [[numbers.setdefault(line, len(numbers)) for line in lines]] * len(some)
                widths += [[WIDTH if n > 1 else 1 for n in size]] * len(some)
                of_part += [p] * len(some)
                turns += [matrix] * len(some)
                corners += [matrix @ first[0] + nodes.offset - first[1]] * len(some)
                reached.append(np.stack([low, high, low - begin], axis=1)[some])
                of_ghosts.append(those[some])
    box, line = np.concatenate([np.zeros(0, int), *of_ghosts]), np.array(own_lines, int).reshape(-1, 3)
    low, high, columns = np.concatenate([np.zeros((0, 3, 3), int), *reached]).transpose(1, 0, 2)
    size, at = high - low, (np.arange(len(box)), ghosts.direction[box])
    layer = size.prod(axis=1) // size[at]
    faces = size.copy()
    faces[at] = 1
    steps = np.cumprod(faces, axis=1) // faces
    # Behind a lower face layers follow each other against the index.
    steps[at] = layer * ghosts.side[box]
    start = np.where(ghosts.side[box] > 0, 0, layer * (size[at] - 1))
    own_widths = np.array(widths, int).reshape(-1, 3)
    return LevelShares(
        np.array(of_part, int), box, low, high, [*numbers], line, columns, own_widths, steps, start,
        np.array(turns, int).reshape(-1, 3, 3), np.array(corners, int).reshape(-1, 3),
    )  # fmt: skip


def _divided_ghosts(
    ghosts: TileGhosts, levels: Levels, level: int, base: int, halo: int
) -> list[tuple[Ends, np.ndarray, np.ndarray, np.ndarray]]:
    """Divide the boxes of ghosts that are interpolated from the block `base` of the unrefined grid on `level` by the
    ends of the block beyond which their stencils extend. Returns for each set of ends the numbers (n,) of boxes of
    ghosts, and the first nodes and those after the last (n, 3) of parts of them."""
    those = np.flatnonzero((ghosts.level - 1 == level) & (ghosts.base == base))
    behind, size = levels.behind(level, base), levels.spaces[level, base].size
    if not behind:
        return [(CLOSED, those, ghosts.low[those], ghosts.high[those])]
    # Most stencils lie within the block.
    low, high = ghosts.low[those] // 2 - WIDTH // 2 + 1, (ghosts.high[those] - 1) // 2 + WIDTH // 2 + 1
    inside = (((low >= 0) & (high <= size)) | (np.array(size) == 1)).all(axis=1)
    found = [(CLOSED, those[inside], ghosts.low[those[inside]], ghosts.high[those[inside]])]
    parts: dict[Ends, list[tuple[int, Range]]] = {}
    those = those[~inside]
    for n, box in zip(those.tolist(), ranges_of(np.stack([ghosts.low, ghosts.high], axis=-1)[those]), strict=True):
        for part, ends in divided_by_stencils(box, size, behind, halo):
            parts.setdefault(ends, []).append((n, part))
    for ends, some in parts.items():
        boxes = np.array([part for _, part in some])
        found.append((ends, np.array([n for n, _ in some]), boxes[..., 0], boxes[..., 1]))
    return found


@dataclass(frozen=True, eq=False)
class Cells:
    """A division of boxes of ghost nodes into n disjoint smaller boxes (cells), such that all ghosts of a cell have
    contributions from the same entries of a `LevelShares`. All arrays are integers. `ghosts` (n,): the number of the
    box of ghosts (in a `TileGhosts`) that contains the cell. `low`, `high` (n, 3): the indexes i, j, k of the first and
    of the last + 1 of the ghosts of the cell, on their level. `cell`, `share` (m,): all m pairs of the number of a cell
    and the number of an entry of the `LevelShares` that contributes to it, sorted by cell, then by entry."""

    ghosts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cell: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, ghosts: TileGhosts, shares: LevelShares, chosen: np.ndarray) -> "Cells":
        """Divide boxes of ghost nodes into smaller boxes (cells), such that all ghosts of a cell have contributions
        from the same entries of `shares`. `ghosts`: the boxes of ghosts. `chosen` (m,): the numbers of the m boxes to
        divide. `shares`: the contributions to all boxes. The cells are sorted by the number of the part of the grid to
        which the ghosts belong, then by the direction normal to the face in front of them."""
        chosen = chosen[np.lexsort((ghosts.direction[chosen], ghosts.part[chosen]))]
        number = np.full(len(ghosts.part), -1)
        number[chosen] = np.arange(len(chosen))
        of = number[shares.ghosts]
        order = np.argsort(of, kind="stable")[np.count_nonzero(of < 0) :]
        box, low, high, cell, share = _divided(
            ghosts.low[chosen], ghosts.high[chosen], of[order], shares.low[order], shares.high[order]
        )
        return cls(chosen[box], low, high, cell, order[share])

    @property
    def points(self) -> np.ndarray:
        """Number of ghosts of each of the n cells (boxes of ghosts with the same contributions), an integer array
        (n,)."""
        return (self.high - self.low).prod(axis=1)

    @property
    def contributions(self) -> np.ndarray:
        """Number of entries of the `LevelShares` that contribute to each of the n cells (boxes of ghosts), an integer
        array (n,). Every ghost of a cell receives this number of contributions."""
        return np.bincount(self.cell, minlength=len(self.ghosts))


def _divided(
    low: np.ndarray, high: np.ndarray, of: np.ndarray, inner_low: np.ndarray, inner_high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Divide boxes of nodes into cells along the ends of boxes that lie in them. `low`, `high` (n, 3): the first nodes
    of the boxes and those after the last. `inner_low`, `inner_high` (m, 3): those of the boxes in them. `of` (m,): the
    box in which each of these lies, ascending. Returns for each cell its box, its first node and that after the last,
    and for each pair of a cell and an inner box that contains it their numbers, sorted by cell, then by inner box."""
    boxes, least = np.arange(len(low)), low.min(axis=0, initial=0)
    span = high.max(axis=0, initial=0) - least + 1
    ends, first, count, inner_from, inner_to = [], [], [], [], []
    for d in range(3):
        places = np.concatenate([low[:, d], high[:, d], inner_low[:, d], inner_high[:, d]])
        # The ends of all boxes, those of a box together.
        keys = np.concatenate([boxes, boxes, of, of]) * span[d] + places - least[d]
        found, number = np.unique(keys, return_inverse=True)
        begin, end, *inside = np.split(number, np.cumsum([len(boxes), len(boxes), len(of)]))
        ends.append(found)
        first.append(begin)
        count.append(end - begin)
        inner_from.append(inside[0] - begin[of])
        inner_to.append(inside[1] - begin[of])
    sizes, steps = np.stack(count[::-1], axis=1), np.eye(3, dtype=int)[::-1, None]
    place = over_boxes(sizes, np.stack(first), np.broadcast_to(steps, (3, len(boxes), 3)))
    lows, highs = (
        np.stack([e[n] % s + o for e, n, s, o in zip(ends, place + after, span, least, strict=True)], axis=1)
        for after in (0, 1)
    )
    # The cells of an inner box are a box of cells.
    along = np.stack([np.ones_like(count[0]), count[0], count[0] * count[1]], axis=1)[of]
    lowest, inner_sizes = np.stack(inner_from, axis=1), np.stack(inner_to, axis=1) - np.stack(inner_from, axis=1)
    start = first_places(sizes.prod(axis=1))[of] + (along * lowest).sum(axis=1)
    (cell,) = over_boxes(inner_sizes[:, ::-1], start[None], along[None, :, ::-1])
    inner = np.repeat(np.arange(len(of)), inner_sizes.prod(axis=1))
    order = np.argsort(cell, kind="stable")
    return np.repeat(boxes, sizes.prod(axis=1)), lows, highs, cell[order], inner[order]


@dataclass(frozen=True, eq=False)
class Line:
    """Interpolation weights along one direction for n successive nodes of a level, restricted to those nodes of the
    coarser level that one rank has in a box. `first`: the index of the first of the n nodes. `start` (n,): the first
    node that each of them reads, counted from the first node of the box. `weights` (2, WIDTH, n): the weights of the
    nodes from there on, for interpolation of sixth order and for linear interpolation."""

    first: int
    start: np.ndarray
    weights: np.ndarray


@lru_cache(maxsize=2048)
def _along(n: int, use: tuple[int, int], box: tuple[int, int], within: tuple[int, int]) -> Line:
    """Return the `Line` of a part along a direction with `n` nodes. `use`: the first and the last + 1 of the nodes that
    stencils may use. `box`: those of the part. `within`: those that contribute."""
    if n == 1:
        return Line(0, np.zeros(1, int), np.broadcast_to(np.eye(WIDTH)[:, :1], (2, WIDTH, 1)))
    lo, hi = max(box[0], within[0]), min(box[1], within[1])
    xi = np.arange(2 * (lo - WIDTH), 2 * (hi + WIDTH)) / 2
    base, weights = stencils(xi, *use)
    weights = np.stack([weights, linear(xi[:, None], base[:, None])[:, 0]])
    chosen = np.flatnonzero((base < hi) & (base + WIDTH > lo))
    base, weights = base[chosen], weights[:, chosen]
    # All nodes from the first one that is read on lie in the part.
    start = np.clip(base, box[0], box[1] - WIDTH)
    places = np.arange(WIDTH) + (start - base)[:, None]
    node = places + base[:, None]
    inside = (places >= 0) & (places < WIDTH) & (node >= lo) & (node < hi)
    own = np.take_along_axis(weights, np.broadcast_to(np.clip(places, 0, WIDTH - 1), weights.shape), axis=2)
    first = int(2 * xi[chosen[0]]) if len(chosen) else 0
    return Line(first, start - box[0], np.where(inside, own, 0.0).transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of coincident nodes of a block and of a block of a finer level, as the nodes of n boxes. `sizes` (n, 3):
    the number of nodes of each box along i, j, k. `first` (2, n): the flat indexes of its first node in the arrays with
    ghosts of the coarser and of the finer block. `steps` (2, n, 3): the differences of these indexes along i, j, k."""

    sizes: np.ndarray
    first: np.ndarray
    steps: np.ndarray

    @property
    def count(self) -> int:
        """Number of pairs of coincident nodes in all boxes."""
        return int(self.sizes.prod(axis=1).sum())

    @cached_property
    def nodes(self) -> np.ndarray:
        """The flat indexes, int32 (2, m), of all m pairs of coincident nodes: in row 0 in the array with ghosts of the
        coarser block, in row 1 in the array with ghosts of the finer block."""
        return over_boxes(self.sizes[:, ::-1], self.first, self.steps[..., ::-1]).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Injection:
    """Copies of values from a box of nodes of a finer level, with the number `donor`, to the coincident nodes of a box
    of a coarser level, with the number `block` (injection). `pairs`: the pairs of nodes. Each box is computed by one
    rank."""

    donor: int
    block: int
    pairs: Pairs

    @property
    def to(self) -> np.ndarray:
        """Flat indexes, int32 (n,), of the nodes that receive values from a finer level, in the array with ghosts of
        their box of nodes on the coarser level."""
        return self.pairs.nodes[0]

    @property
    def source(self) -> np.ndarray:
        """Flat indexes, int32 (n,), of the nodes of a finer level whose values are copied, in the array with ghosts of
        their box of nodes."""
        return self.pairs.nodes[1]


@dataclass(frozen=True, eq=False)
class CoincidentBoxes:
    """The nodes of coarser levels that take the values of coincident nodes of a finer level (injection), as n disjoint
    boxes. `block`, `donor` (n,): the numbers of the parts that have the nodes of the coarser and of the finer level.
    `nodes`: the nodes of all boxes."""

    block: np.ndarray
    donor: np.ndarray
    nodes: Pairs

    def injections(self) -> list[Injection]:
        """Return one `Injection` for each pair of parts that have coincident nodes, sorted by donor, then by block."""
        order = np.lexsort((self.block, self.donor))
        keys = np.stack([self.donor, self.block], axis=1)[order]
        begins = np.flatnonzero((np.diff(keys, axis=0, prepend=-1) != 0).any(axis=1)).tolist()
        of = self.nodes
        return [
            Injection(int(keys[a, 0]), int(keys[a, 1]), Pairs(of.sizes[some], of.first[:, some], of.steps[:, some]))
            for a, b in pairwise([*begins, len(order)])
            for some in (order[a:b],)
        ]


def coincident_boxes(whole: Decomposition, cut: Decomposition) -> CoincidentBoxes:
    """Return the nodes that take values from finer levels. Each node that lies under a finer level takes the value of
    the coincident node of the finest level there. `whole`: the decomposition before its division among ranks. `cut`:
    the boxes of nodes that all ranks compute, its parts."""
    assert whole.levels is not None
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
    box, low, high, cell, _ = _divided(shared[:, 0], shared[:, 1], pair[chosen], covers[chosen, 0], covers[chosen, 1])
    free = np.bincount(cell, minlength=len(box)) == 0
    low, high, part, finer = low[free], high[free], part[box[free]], finer[box[free]]
    strides, origins = strides_of(cut.blocks, cut.stencil.halo)
    places, along = [], []
    for own, by in ((part, np.ones((len(part), 1), int)), (finer, step[part, finer])):
        places.append(origins[own] + (strides[own] * (by * low - boxes[own, :, 0])).sum(axis=1))
        along.append(strides[own] * by)
    return CoincidentBoxes(part, finer, Pairs(high - low, np.stack(places), np.stack(along)))
