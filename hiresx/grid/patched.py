"""Patched faces: faces of blocks that touch without common nodes. This module extrapolates grid lines beyond such a
face, and finds the indexes of points in other blocks.

The nodes of a block define a smooth map: tensor products of polynomials through six nodes in each direction, of sixth
order in the spacing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.grid.blocks import Block
from hiresx.grid.connections import IDENTITY, Connection

# Name of the type of boundary condition, and of the regions that connectivity files define for patched connections.
PATCHED = "patched"
# Number of nodes of an interpolation in each direction.
WIDTH = 6
# Distance beyond the last node of a block, in cells, up to which a point is interpolated from it.
BEYOND = 0.25
# The highest degree of the polynomials by which grid lines are extrapolated.
HIGHEST = 4
# Valid steps of an extrapolated grid line are between a third of and three times the last step before the face.
STEEPEST = 3.0
# Number of points that are processed at a time.
CHUNK = 2048


def extrapolate(nodes: np.ndarray, degree: int, layers: int) -> np.ndarray:
    """Return the positions (layers, ...) of ghost nodes by which grid lines are extrapolated beyond a face, the nearest
    layer first. The ghosts lie on polynomials of `degree` < n through the degree + 1 nodes nearest to the face. `nodes`
    (n, ...): positions of n nodes along each line, from the face inwards."""
    t = -np.arange(1.0, layers + 1)
    weights = lagrange(t, degree + 1)[0]
    return np.tensordot(weights, nodes[: degree + 1], axes=1)


def degree_of(nodes: np.ndarray, layers: int) -> int:
    """Return the highest polynomial degree, at most 4, with which all grid lines can be extrapolated beyond a face
    without turning or changing their spacing too fast (`continues_forward`); 1 if there is none. `nodes` (n >= 5, 3,
    ...): positions from the face inwards. `layers`: the number of ghost layers."""
    return next((n for n in range(HIGHEST, 1, -1) if continues_forward(nodes, n, layers)), 1)


def continues_forward(nodes: np.ndarray, degree: int, layers: int) -> bool:
    """Return whether the extrapolation of all grid lines beyond a face by polynomials of `degree` continues forwards
    over `layers` ghosts, with steps that neither grow nor shrink too fast. `nodes` (n > degree, 3, ...): positions from
    the face inwards."""
    last = nodes[0] - nodes[1]
    length = np.linalg.norm(last, axis=0)
    steps = np.diff(extrapolate(nodes, degree, layers), axis=0, prepend=nodes[:1])
    size = np.linalg.norm(steps, axis=1)
    forwards = np.sum(steps * last, axis=1) > 0.7 * size * length
    return bool((forwards & (size < STEEPEST * length) & (STEEPEST * size > length)).all())


def lagrange(t: np.ndarray, width: int = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and derivatives (..., width) of the Lagrange polynomials of the nodes 0, 1, ..., width - 1 at
    the positions `t` (...): each polynomial is 1 at one node and 0 at the others."""
    t = np.asarray(t, dtype=float)[..., None]
    nodes = np.arange(width)
    value, slope = np.ones((*t.shape[:-1], width)), np.zeros((*t.shape[:-1], width))
    for other in range(width):
        factor = np.where(nodes == other, 1.0, (t - other) / np.where(nodes == other, 1, nodes - other))
        inner = np.where(nodes == other, 0.0, 1 / np.where(nodes == other, 1, nodes - other))
        slope = slope * factor + value * inner
        value = value * factor
    return value, slope


def nearest_nodes(block: Block, index: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the node of a block that is nearest to each of the `points`, as float64 indexes i, j, k, (n, 3). `points`
    (n, dimensions): coordinates in reference lengths. `index` (3, m): indexes of the nodes among which the nearest is
    searched."""
    nodes = block.node(*index)[: points.shape[1]]
    centre = nodes.mean(axis=1, keepdims=True)
    nodes = nodes - centre
    squares = np.sum(nodes**2, axis=0)
    found = np.empty((len(points), 3))
    for n in range(0, len(points), CHUNK):
        distance = squares - 2 * (points[n : n + CHUNK] - centre[:, 0]) @ nodes
        found[n : n + CHUNK] = index[:, np.argmin(distance, axis=1)].T
    return found


@dataclass(frozen=True)
class Wrap:
    """An index direction in which a block closes on itself, as in an O-grid. A node beyond the upper end of the block
    coincides with the node `step` nodes before it, and a node beyond the lower end with the node `step` nodes after it.
    """

    step: int


def wraps(block: Block, b: int, connections: Sequence[Connection]) -> list[Wrap | None]:
    """Return, for each index direction of block number `b`, whether the block closes on itself, as an O-grid does: a
    `Wrap` with the number of nodes after which the block repeats, or None. Only connections of whole faces without
    rotation are considered."""
    found: list[Wrap | None] = [None] * 3
    for d in block.active:
        whole = [(0, n) for n in block.size]
        steps = []
        for end in (0, block.size[d] - 1):
            whole[d] = (end, end + 1)
            for c in connections:
                if (c.block, c.donor, c.range) == (b, b, tuple(whole)) and c.matrix == IDENTITY and c.rotation is None:
                    steps.append(abs(c.offset[d]))
        if len(steps) == 2 and steps[0] == steps[1]:
            found[d] = Wrap(steps[0])
    return found


class BlockMap:
    """The map from index space (xi, eta, zeta) to (x, y, z) of a block. `extended`: its coordinates with ghosts (nk + 2
    halo, nj + 2 halo, ni + 2 halo). The ghosts are used in directions in which the block is connected with itself
    (`wrapped`, see `wraps`)."""

    def __init__(self, block: Block, extended: Sequence[np.ndarray], halo: int, wrapped: Sequence[Wrap | None]):
        self.block, self.halo, self.wrapped = block, halo, tuple(wrapped)
        self.dimensions = len(block.active)
        box = tuple(slice(halo, halo + 1) if n == 1 else slice(None) for n in reversed(block.size))
        self._nodes = np.stack([c[box] for c in extended[: self.dimensions]])
        # first and last + 1 of the nodes that may be used
        self.low = np.array([-halo if w else 0 for w in wrapped])
        self.high = np.array([n + halo if w else n for n, w in zip(block.size, wrapped, strict=True)])

    def base(self, xi: np.ndarray) -> np.ndarray:
        """Return the index (n, 3) of the first node of the interpolation stencil in each direction, for positions given
        as fractional node indexes `xi` (n, 3). A stencil is centred, or as nearly centred as the end of the block
        allows."""
        base = np.floor(xi).astype(int) - WIDTH // 2 + 1
        base = np.clip(base, self.low, np.maximum(self.high - WIDTH, self.low))
        return np.where(np.array(self.block.size) > 1, base, 0)

    def weights(self, xi: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the Lagrange interpolation weights of the six stencil nodes in each index direction, and their
        derivatives with respect to the index, each (n, 3, 6). `xi` (n, 3): positions as fractional node indexes. `base`
        (n, 3): index of the first stencil node. In a direction with one node the weights are (1, 0, ...)."""
        value, slope = lagrange(xi - base)
        for d in range(self.dimensions, 3):
            value[:, d], slope[:, d] = np.eye(WIDTH)[0], 0.0
        return value, slope

    def at(self, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates (n, dimensions), in reference lengths, of the positions with the fractional node
        indexes `xi` (n, 3), and the derivatives of the coordinates with respect to the indexes, (n, dimensions,
        dimensions) [point, coordinate, index]. Both are interpolated from the nodes of the block."""
        base = self.base(xi)
        value, slope = self.weights(xi, base)
        index = []
        for d, n in enumerate(self.block.size):
            reach = np.arange(WIDTH if n > 1 else 1)
            index.append(base[:, d, None] + reach + (self.halo if n > 1 else 0))
        i, j, k = index
        near = self._nodes[:, k[:, :, None, None], j[:, None, :, None], i[:, None, None, :]]
        # the sums over k, j and i in turn, once with the values and once with the slopes of each
        (a, b, c), (da, db, dc) = ([f[:, d, : m.shape[1]] for d, m in enumerate(index)] for f in (value, slope))

        def weighted_sum(array: np.ndarray, weights: np.ndarray) -> np.ndarray:
            """Return the weighted sum over the axis that follows those of the coordinate and of the point."""
            shape = array.shape
            flat = array.reshape(*shape[:2], shape[2], -1)
            return np.matmul(weights[None, :, None], flat).reshape(*shape[:2], *shape[3:])

        planes = weighted_sum(near, c)
        lines = weighted_sum(planes, b)
        position = weighted_sum(lines, a)
        slopes = [weighted_sum(lines, da)]
        if self.dimensions > 1:
            slopes.append(weighted_sum(weighted_sum(planes, db), a))
        if self.dimensions > 2:
            slopes.append(weighted_sum(weighted_sum(weighted_sum(near, dc), b), a))
        return position.T, np.stack(slopes).transpose(2, 1, 0)

    def locate(self, points: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the fractional node indexes at which the points lie in the block, by Newton's method. `points` (n,
        dimensions): coordinates in reference lengths. `start` (n, 3): first estimates of the indexes. Returns the
        indexes (n, 3), and whether the method converged (n,)."""
        parts = range(0, len(points), CHUNK)
        found = [self._locate(points[n : n + CHUNK], start[n : n + CHUNK]) for n in parts]
        if not found:
            return start, np.zeros(0, dtype=bool)
        places, outside = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return places, outside

    def _locate(self, points: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, xi = self.dimensions, start.astype(float)
        last = np.array(self.block.size)[:m] - 1
        rest = np.full(len(points), np.inf)
        left = np.arange(len(points))
        for turn in range(40):
            position, slopes = self.at(xi[left])
            flat = ~(np.abs(np.linalg.det(slopes)) > 0)
            slopes[flat] = np.eye(m)
            step = np.linalg.solve(slopes, (points[left] - position)[..., None])[..., 0]
            moved = xi[left, :m] + np.clip(step, -2, 2)
            xi[left, :m] = np.clip(moved, -1.5, last + 1.5)
            rest[left] = np.abs(step).max(axis=1)
            # points that have not converged and do not stay outside
            outside = ((moved < -1.5) | (moved > last + 1.5)).any(axis=1) & (turn > 4)
            left = left[(rest[left] > 1e-12 * (1 + np.abs(xi[left]).max(axis=1))) & ~outside]
            if not left.size:
                break
        return xi, rest < 1e-7

    def beyond(self, xi: np.ndarray) -> np.ndarray:
        """Return how far, in cells (n,), the fractional node indexes `xi` (n, 3) lie outside the range in which the
        block can be interpolated; 0 inside."""
        last = np.array(self.block.size) - 1
        low = np.array([-1.0 if w else 0.0 for w in self.wrapped])
        high = np.array([n + (1.0 if w else 0.0) for n, w in zip(last, self.wrapped, strict=True)])
        return np.maximum(np.maximum(low - xi, xi - high), 0).max(axis=1)
