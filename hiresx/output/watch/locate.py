"""Location of points in a multi-block curvilinear grid, and the stencils of the interpolation to them.

Coordinates and flow are interpolated with the same tensor product of Lagrange polynomials through six nodes per
direction, in index space. A stencil extends through connections, so that points between two blocks, or in the last cell
of a period, need no special treatment. At physical faces it becomes one-sided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid.blocks import FACES
from hiresx.grid.patched import CHUNK, WIDTH, lagrange
from hiresx.grid.stored_coordinates import slabs

# WIDTH, the nodes of a stencil per direction: polynomials of degree 5. A point outside the grid by at most this
# fraction of a cell is moved to the face: on a coarse grid a curved wall differs from the polynomials through its
# nodes.
OUTSIDE = 0.01
# Number of cells per side of the bricks in which points are searched first.
BRICK = 8
# Fraction of its extent by which the bounding box of a brick or a cell is enlarged, since curved cells extend beyond
# their nodes.
BULGE = 0.3
# Newton's method: largest number of steps, largest step in cells, and the change in cells at which it has converged.
STEPS, STRIDE, CONVERGED = 60, 1.5, 1e-11
# Largest coordinate of any grid; its square does not overflow.
FARTHEST = 1e150
# Largest displacement of a window, in nodes, with which it still contains its cell.
MOVE = 2
# Number of cells tried as starting points before the search for a point ends, and how many of them are likely to
# succeed.
TRIALS, LIKELY = 30, 4


@dataclass(frozen=True)
class Location:
    """The position of a point in the grid and the stencil by which the flow is interpolated to it. `block`: the number
    of the block that contains the point. `index`: the point's real-valued indexes (i, j, k). `blocks` (n,): the block
    of each node of the stencil. `nodes` (3, n): the node's indexes (i, j, k). `weights` (n,): its weight. `turns` (3,
    3, n): the matrix by which connections rotate a vector at this node."""

    block: int
    index: tuple[float, float, float]
    blocks: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray
    turns: np.ndarray


class _Nodes(NamedTuple):
    """Nodes as a block sees them through connections: blocks (n,), indexes there (3, n), the `turns` (3, 3, n) and
    `shifts` (3, n) that bring their coordinates to where they are seen, and whether there are such nodes (n,)."""

    blocks: np.ndarray
    indexes: np.ndarray
    turns: np.ndarray
    shifts: np.ndarray
    there: np.ndarray

    @classmethod
    def own(cls, b: int, index: np.ndarray) -> "_Nodes":
        """The nodes `index` (3, n) of block `b` itself."""
        n = index.shape[1]
        turns = np.broadcast_to(np.eye(3)[..., None], (3, 3, n)).copy()
        return cls(np.full(n, b), index.copy(), turns, np.zeros((3, n)), np.ones(n, dtype=bool))


class Locator:
    """Search for the blocks and stencils of points in the grid `decomposition`."""

    def __init__(self, decomposition: Decomposition):
        self._blocks = decomposition.blocks
        # The finest level that contains a point is used.
        levels = decomposition.levels
        self._order = sorted(range(len(self._blocks)), key=lambda b: 0 if levels is None else -levels.tiles[b].level)
        self._connections = [
            [c for c in decomposition.connections if c.block == b] for b in range(len(decomposition.blocks))
        ]
        # per block and direction: whether anything is connected below and above
        self._connected = [
            [tuple(any(c.face == FACES[2 * d + s] for c in found) for s in (0, 1)) for d in range(3)]
            for found in self._connections
        ]
        self._bricks: dict[int, _Bricks] = {}

    def find(self, point: Sequence[float] | np.ndarray) -> Location | None:
        """Return the block, the indexes and the interpolation stencil of `point` (x, y, z), in units of the length
        scale L. If several blocks contain it, the first block of the finest level is taken. Returns None if the point
        lies outside the grid."""
        return self.find_all(np.reshape(point, (1, 3)))[0]

    def find_all(self, points: Sequence[Sequence[float]] | np.ndarray) -> list[Location | None]:
        """Return the block, the indexes and the interpolation stencil of each of `points` (n, 3), in units of the
        length scale L; None for a point outside the grid."""
        places = np.reshape(np.asarray(points, dtype=float), (-1, 3))
        chunks = (places[n : n + CHUNK] for n in range(0, len(places), CHUNK))
        return [found for some in chunks for found in self._find_some(some)]

    def locate_all(self, points: Sequence[Sequence[float]] | np.ndarray, who: str, hint: str) -> list[Location]:
        """Return the block, the indexes and the interpolation stencil of each of `points` (n, 3), in units of the
        length scale L. Raises HiresxError for the first point outside the grid. `who`: the beginning of the error
        message. `hint`: the advice in the error."""
        return self.check_found(points, self.find_all(points), who, hint)

    def check_found(
        self,
        points: Sequence[Sequence[float]] | np.ndarray,
        locations: Sequence[Location | None],
        who: str,
        hint: str,
    ) -> list[Location]:
        """Return `locations`, which `find_all` has returned for `points` (n, 3), after a check that none is None.
        Raises HiresxError for the first point outside the grid, with its nearest node. `who`: the beginning of the
        error message. `hint`: the advice in the error."""
        found = []
        for point, location in zip(points, locations, strict=True):
            if location is None:
                b, node, distance = self.nearest(point)
                place, near = (", ".join(f"{c:.6g}" for c in xyz) for xyz in (point, self._blocks[b].node(*node)))
                raise HiresxError(
                    f"{who}: the place ({place}) lies outside the grid, {distance:.3g} from its nearest node, ({near}) "
                    f"in block '{self._blocks[b].name}'",
                    hint,
                )
            found.append(location)
        return found

    def _find_some(self, points: np.ndarray) -> list[Location | None]:
        found: list[Location | None] = [None] * len(points)
        left: list[int] = np.flatnonzero(~(np.abs(points).max(axis=1) > FARTHEST)).tolist()
        starts: dict[int, dict[int, np.ndarray]] = {}
        # the likely starting points of all blocks come before the others
        for some in (range(LIKELY), range(LIKELY, TRIALS)):
            for b in self._order:
                if not left:
                    return found
                if b not in starts:
                    starts[b] = dict(zip(left, self._starts(b, points[left]), strict=True))
                for trial in some:
                    asked = [n for n in left if len(starts[b][n]) > trial]
                    if not asked:
                        break
                    begin = np.stack([starts[b][n][trial] for n in asked])
                    for n, index in zip(asked, self._newton(b, points[asked], begin), strict=True):
                        if index is not None:
                            nodes, weights = self._stencil(b, index)
                            place = triple(float(c) for c in index)
                            found[n] = Location(b, place, nodes.blocks, nodes.indexes, weights, nodes.turns)
                    left = [n for n in left if found[n] is None]
        return found

    def nearest(self, point: Sequence[float] | np.ndarray) -> tuple[int, tuple[int, int, int], float]:
        """Return the node closest to `point` (x, y, z): the number of its block, its indexes (i, j, k) and its
        distance, in units of the length scale L."""
        best = 0, (0, 0, 0), np.inf
        for b, block in enumerate(self._blocks):
            asked, first = [("xyz"[d], float(point[d])) for d in block.active], 0
            for nodes in slabs(*(getattr(block, axis) for axis, _ in asked)):
                with np.errstate(over="ignore"):  # a point may have any position
                    square = np.sum([(c - value) ** 2 for c, (_, value) in zip(nodes, asked, strict=True)], axis=0)
                k, j, i = (int(n) for n in np.unravel_index(int(np.argmin(square)), square.shape))
                if square[k, j, i] < best[2]:
                    best = b, (i, j, first + k), float(square[k, j, i])
                first += len(square)
        return best[0], best[1], float(np.sqrt(best[2]))

    # ---- nodes, also behind connections

    def _resolve(self, b: int, index: np.ndarray) -> _Nodes:
        """Positions of the nodes `index` (3, n) of block `b`, some of which may lie outside of it."""
        nodes = _Nodes.own(b, index)
        for _ in range(3):  # one connection per direction
            outside = nodes.there & (self._beyond(nodes.blocks, nodes.indexes) != 0).any(axis=0)
            if not outside.any():
                break
            for own in np.unique(nodes.blocks[outside]):
                self._through(own, nodes, np.flatnonzero(outside & (nodes.blocks == own)))
        nodes.there[(self._beyond(nodes.blocks, nodes.indexes) != 0).any(axis=0)] = False
        return nodes

    def _beyond(self, blocks: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """-1 below, 0 inside and 1 above the block, per direction (3, n)."""
        size = np.array([block.size for block in self._blocks])[blocks].T
        return np.where(nodes < 0, -1, np.where(nodes >= size, 1, 0))

    def _through(self, b: int, nodes: _Nodes, at: np.ndarray) -> None:
        """Follow the nodes at `at`, all of them outside block `b`, through one of its connections."""
        index = nodes.indexes[:, at]
        beyond = self._beyond(nodes.blocks[at], index)
        nearest = np.clip(index, 0, np.array(self._blocks[b].size)[:, None] - 1)
        found = np.zeros(len(at), dtype=bool)
        for d in range(3):
            for c in self._connections[b]:
                s = FACES.index(c.face)
                if s // 2 != d:
                    continue
                here = ~found & (beyond[d] == (1 if s % 2 else -1))
                for e in range(3):
                    if e != d:
                        here &= (nearest[e] >= c.range[e][0]) & (nearest[e] < c.range[e][1])
                if here.any():
                    to = at[here]
                    nodes.blocks[to], nodes.indexes[:, to] = c.donor, c.donors(index[:, here])
                    nodes.shifts[:, to] += rotate(nodes.turns[..., to], np.reshape(c.translation, (3, 1)))
                    if c.rotation is not None:
                        nodes.turns[..., to] = np.einsum("abn,bc->acn", nodes.turns[..., to], np.array(c.rotation))
                    found |= here
        nodes.there[at] = found

    def _coordinates(self, nodes: _Nodes) -> np.ndarray:
        """Return x, y, z (3, n) of nodes at the positions at which the block sees them."""
        result = np.empty(nodes.indexes.shape)
        for b in np.unique(nodes.blocks):
            at, block = nodes.blocks == b, self._blocks[b]
            result[:, at] = block.node(*nodes.indexes[:, at])
        return rotate(nodes.turns, result) + nodes.shifts

    # ---- the stencil

    def _stencil(self, b: int, index: np.ndarray) -> tuple[_Nodes, np.ndarray]:
        """Return nodes and weights (n,) of the stencil around the fractional indexes `index` of block `b`. It is
        centred on its cell, or shifted as little as necessary so that all its nodes exist."""
        nodes, starts = self._window(b, self._cell(b, index))
        weights, _ = lagrange(index - starts)
        return nodes, _tensor([weights[d] for d in self._blocks[b].active])

    def _cell(self, b: int, index: np.ndarray) -> list[int]:
        """Return the lower node of the cell, which lies in the block or in the gap to a neighbour."""
        return [
            int(np.clip(np.floor(c), -int(below), n - 2 + int(above))) if n > 1 else 0
            for c, n, (below, above) in zip(index, self._blocks[b].size, self._connected[b], strict=True)
        ]

    def _window(self, b: int, cell: Sequence[int]) -> tuple[_Nodes, list[int]]:
        """Return the nodes of the window for a cell, and its first node in every direction."""
        block = self._blocks[b]
        around: _Nodes | None = None
        # The nodes of all windows: windows that extend into other blocks are taken from these.
        corner = [c - 2 - MOVE if n > 1 else c for c, n in zip(cell, block.size, strict=True)]
        width = [WIDTH + 2 * MOVE if n > 1 else 1 for n in block.size]
        lines = [WIDTH if n > 1 else 1 for n in block.size]
        # The window of six nodes is moved as little as possible so that it still contains the cell.
        for move in _MOVES[len(block.active)]:
            starts = list(cell)
            for d, m in zip(block.active, move, strict=True):
                starts[d] += m - 2
            over = [(starts[d] < 0, starts[d] + WIDTH > block.size[d]) for d in block.active]
            if any(
                o and not c
                for d, pair in zip(block.active, over, strict=True)
                for o, c in zip(pair, self._connected[b][d], strict=True)
            ):
                continue
            if not any(map(any, over)):
                return _Nodes.own(b, _box(starts, lines)), starts
            if around is None:
                around = self._resolve(b, _box(corner, width))
            i, j, k = _box([s - c for s, c in zip(starts, corner, strict=True)], lines)
            nodes = _Nodes(*(array[..., (k * width[1] + j) * width[0] + i] for array in around))
            if nodes.there.all():
                return nodes, starts
        # The gap is closed by a wall here: take the nearest cell of the block itself.
        return self._window(b, [min(max(c, 0), max(n - 2, 0)) for c, n in zip(cell, block.size, strict=True)])

    # ---- the search

    def _newton(self, b: int, points: np.ndarray, starts: np.ndarray) -> list[np.ndarray | None]:
        """Index coordinates of `points` (n, 3) in block `b` by Newton's method from `starts` (n, 3); None for those of
        which there are none."""
        index = np.array(starts, dtype=float)
        active = np.array(self._blocks[b].active)
        high = np.array(self._blocks[b].size, dtype=float)[active]
        found: list[np.ndarray | None] = [None] * len(points)
        stuck, left = np.zeros(len(points), dtype=int), np.arange(len(points))
        beside: dict[tuple[int, ...], tuple[np.ndarray, list[int]]] = {}
        for _ in range(STEPS):
            at = index[left]
            x, first = self._windows(b, at, beside)
            lines, slopes = ([of_nodes[:, d] for d in active] for of_nodes in lagrange(at - first))
            columns = [_weighted(x, [*lines[:n], slope, *lines[n + 1 :]]) for n, slope in enumerate(slopes)]
            jacobian = np.stack(columns, axis=2)
            rest = points[left[:, None], active] - _weighted(x, lines)
            # On a pole one of the columns is zero, and any position around it is valid.
            there = np.abs(rest).max(axis=1) < CONVERGED * np.abs(jacobian).max(axis=(1, 2))
            lost = ~there & ~(np.abs(np.linalg.det(jacobian)) > 0)
            going = ~(there | lost)
            step = np.linalg.solve(jacobian[going], rest[going, :, None])[..., 0]
            moving, before = left[going], at[going][:, active]
            after = np.clip(before + np.clip(step, -STRIDE, STRIDE), -1.0, high)
            index[moving[:, None], active] = after
            arrived = np.abs(step).max(axis=1) < CONVERGED
            for n in [*left[there], *moving[arrived]]:
                found[n] = self._inside(b, index[n])
            # limited to the edge of the block: the point is not in the block
            held = np.abs(after - before).max(axis=1) < CONVERGED
            stuck[moving] = np.where(held, stuck[moving] + 1, 0)
            left = moving[~arrived & ~(stuck[moving] > 1)]
            if not left.size:
                break
        return found

    def _windows(
        self, b: int, index: np.ndarray, beside: dict[tuple[int, ...], tuple[np.ndarray, list[int]]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates (n, dimensions, nodes) of the windows of the cells of `index` (n, 3) in block `b`, and their
        first nodes (n, 3). `beside`: those that reach into other blocks, by their cells, of earlier calls."""
        block, cells = self._blocks[b], np.array([self._cell(b, place) for place in index])
        size, joined = np.array(block.size), np.array(self._connected[b])
        last = np.where(size > 1, size - WIDTH, 0)
        first = cells - np.where(size > 1, 2, 0)
        # The nearest window within the block is used, unless it has to be moved away from a neighbour.
        apart = (((first < 0) & joined[:, 0]) | ((first > last) & joined[:, 1])).any(axis=1)
        first = np.clip(first, 0, last)
        i, j, k = (
            first[~apart, d].reshape(-1, 1, 1, 1) + np.arange(WIDTH if size[d] > 1 else 1).reshape(shape)
            for d, shape in enumerate(((1, 1, 1, -1), (1, 1, -1, 1), (1, -1, 1, 1)))
        )
        nodes = [np.ravel(c) for c in np.broadcast_arrays(i, j, k)]
        x = np.empty((len(index), len(block.active), WIDTH ** len(block.active)))
        x[~apart] = np.moveaxis(block.node(*nodes)[list(block.active)].reshape(x.shape[1], -1, x.shape[2]), 0, 1)
        for n in np.flatnonzero(apart):
            cell = tuple(cells[n].tolist())
            if cell not in beside:
                window, starts = self._window(b, cell)
                beside[cell] = self._coordinates(window)[list(block.active)], starts
            x[n], first[n] = beside[cell]
        return x, first

    def _inside(self, b: int, index: np.ndarray) -> np.ndarray | None:
        """Return `index`, moved to the face if it lies less than a hundredth of a cell outside; None if it lies
        farther."""
        size = np.array(self._blocks[b].size)
        taken = np.clip(index, 0, size - 1)
        if (taken == index).all():
            return index
        # Outside the block's nodes, but possibly in the gap to the neighbour's nodes.
        cell = np.floor(index).astype(int)
        corners = np.array(list(product((0, 1), repeat=3))).T
        corners[size == 1] = 0
        if self._resolve(b, cell[:, None] + corners).there.all():
            return index
        return taken if np.max(np.abs(taken - index)) <= OUTSIDE else None

    def _starts(self, b: int, points: np.ndarray) -> list[np.ndarray]:
        """For each of `points` (n, 3) index coordinates (m, 3) from which to look for it, the likeliest first."""
        if b not in self._bricks:
            self._bricks[b] = _Bricks(self, b)
        return self._bricks[b].starts(points)


class _Bricks:
    """The cells of a block, and of the gaps before its neighbours, in bricks with boxes around them."""

    def __init__(self, locator: Locator, b: int):
        block = locator._blocks[b]
        self._active = block.active
        # One more layer on every side; missing nodes are NaN.
        shape = tuple(n + 2 if n > 1 else 1 for n in block.size[::-1])
        self._nodes = np.full((3, *shape), np.nan)
        inner = tuple(slice(1, -1) if n > 1 else slice(None) for n in shape)
        for d, axis in enumerate("xyz"):
            self._nodes[(d, *inner)] = getattr(block, axis)
        shell = np.ones(shape, dtype=bool)
        shell[inner] = False
        index = (np.argwhere(shell) - [n > 1 for n in shape]).T[::-1]
        nodes = locator._resolve(b, index)
        values = np.full(index.shape, np.nan)
        values[:, nodes.there] = locator._coordinates(_Nodes(*(array[..., nodes.there] for array in nodes)))
        self._nodes[:, shell] = values
        self._low, self._high = self._boxes()

    def _boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corners (active, bricks...) of the boxes around the bricks."""
        found = []
        for smaller in (np.fmin, np.fmax):
            corners = []
            for d in self._active:
                box = self._nodes[d]
                for axis in (2 - e for e in self._active):
                    n = box.shape[axis]
                    lower, upper = (np.take(box, range(m, n - 1 + m), axis=axis) for m in (0, 1))
                    box = smaller.reduceat(smaller(lower, upper), np.arange(0, n - 1, BRICK), axis=axis)
                corners.append(box)
            found.append(np.stack(corners))
        low, high = found
        bulge = BULGE * np.fmax.reduce(high - low)
        return low - bulge, high + bulge

    def starts(self, points: np.ndarray) -> list[np.ndarray]:
        """For each of `points` (n, 3) index coordinates (m, 3) of the centres of cells near it, the nearest first."""
        asked = points[:, list(self._active)]
        by_brick: dict[tuple[int, ...], list[int]] = {}
        for n, place in enumerate(asked):
            place = place.reshape(-1, 1, 1, 1)
            for hit in np.argwhere(((self._low <= place) & (self._high >= place)).all(axis=0)).tolist():
                by_brick.setdefault(tuple(hit), []).append(n)
        found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in points]
        for brick in sorted(by_brick):
            for n, cells in zip(by_brick[brick], self._cells(brick, asked[by_brick[brick]]), strict=True):
                found[n].append(cells)
        return [_nearest(cells) if cells else np.empty((0, 3)) for cells in found]

    def _cells(self, brick: tuple[int, ...], asked: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each of the points `asked` (n, dimensions), distances in cells (m,) and centres in index coordinates
        (m, 3) of the nearest cells of a brick."""
        shape = self._nodes.shape[1:]
        box = tuple(slice(m * BRICK, m * BRICK + BRICK + 1) for m in brick)
        nodes = self._nodes[(slice(None), *box)][list(self._active)]
        corners = []
        for offset in product(*((0, 1) if n > 1 else (0,) for n in shape)):
            part = (
                slice(o, m - 1 + o) if n > 1 else slice(None)
                for o, m, n in zip(offset, nodes.shape[1:], shape, strict=True)
            )
            corners.append(nodes[(slice(None), *part)])
        size = np.max(np.maximum.reduce(corners) - np.minimum.reduce(corners), axis=0)
        middle = sum(corners) / len(corners)
        for place in asked:
            away = np.linalg.norm(middle - place.reshape(-1, 1, 1, 1), axis=0) / np.maximum(size, np.finfo(float).tiny)
            nearest = np.argsort(away, axis=None, kind="stable")[:TRIALS]
            nearest = nearest[np.isfinite(away.ravel()[nearest])]  # NaN: there is no such cell
            cell = np.stack(np.unravel_index(nearest, away.shape), axis=1)
            # nodes are counted from the layer outside
            centres = np.where(np.array(shape) > 1, np.array(brick) * BRICK + cell - 0.5, 0.0)
            yield away.ravel()[nearest], centres[:, ::-1]


def _nearest(cells: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The centres of the nearest of the cells of several bricks, as `_Bricks._cells` gives them."""
    away, centres = (np.concatenate(parts) for parts in zip(*cells, strict=True))
    found: np.ndarray = centres[np.argsort(away, kind="stable")[:TRIALS]]
    return found


def rotate(turns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the products of n matrices `turns` (3, 3, n) and n vectors, an array (3, ..., n). `vectors` (3, ..., n):
    the components of the vectors along the first axis."""
    among = (1,) * (vectors.ndim - 2)
    return (turns.reshape(3, 3, *among, -1) * vectors).sum(axis=1)


def _box(first: Sequence[int], width: Sequence[int]) -> np.ndarray:
    """Indexes (3, n) of the nodes of a box with the corner `first`, `width` nodes wide; k slowest, as in arrays."""
    k, j, i = np.meshgrid(*(n + np.arange(m) for n, m in zip(first[::-1], width[::-1], strict=True)), indexing="ij")
    return np.stack([i.ravel(), j.ravel(), k.ravel()])


# Displacements of a window by direction, the smallest first, by number of directions.
_MOVES = [sorted(product(range(-MOVE, MOVE + 1), repeat=n), key=lambda move: sum(map(abs, move))) for n in range(4)]


def _weighted(x: np.ndarray, lines: Sequence[np.ndarray]) -> np.ndarray:
    """Sums (n, dimensions) of `x` (n, dimensions, nodes) with the product of weights (n, ...) along i, j, k."""
    found: np.ndarray = (x @ _tensor(lines)[..., None])[..., 0]
    return found


def _tensor(lines: Sequence[np.ndarray]) -> np.ndarray:
    """Product of weights (..., n) along i, j, k, flat (...,) with k slowest."""
    result = np.ones((*lines[0].shape[:-1], 1))
    for line in reversed(lines):
        result = (result[..., :, None] * line[..., None, :]).reshape(*line.shape[:-1], -1)
    return result
