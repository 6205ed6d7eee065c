"""Pictures with equal pixels of fields on curvilinear blocks. The cell that contains each pixel is determined once;
each picture is then a weighted sum of node values. Pixels outside of the blocks stay empty."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.output.fields import cut

Box = tuple[float, float, float, float]
# Blocks that are adjacent and share no nodes leave a gap of one cell, which belongs to the flow. Faces that are closer
# to each other than this many cells are joined.
_BETWEEN = 1.5
# A node may lie beyond the end of a face by this fraction of the last cell and still be opposite to it.
_PAST = 0.1
# Number of tests of pixels against triangles at a time.
_SLAB = 1 << 21
# Weights above minus this value count as not negative, so that a pixel on a face belongs to the block.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Raster:
    """The mapping from the pixels (rows, columns) of a picture to the nodes of a plane. `box`: the limits of the
    horizontal and of the vertical coordinate. `nodes` (3, rows, columns): the indexes of the three nodes around each
    pixel, in a list of the nodes of all blocks, one block after the other. `weights` (3, rows, columns): their weights;
    NaN outside of the flow. A call with an array of values for each block returns the picture (rows, columns)."""

    box: Box
    nodes: np.ndarray
    weights: np.ndarray

    def __call__(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the picture (rows, columns) of a variable. `values`: the array of node values of each block."""
        flat = np.concatenate([np.ravel(part) for part in values])
        picture: np.ndarray = self.weights[0] * flat[self.nodes[0]]
        for n in (1, 2):
            picture += self.weights[n] * flat[self.nodes[n]]
        return picture

    @property
    def centres(self) -> tuple[np.ndarray, np.ndarray]:
        """Horizontal (columns,) and vertical (rows,) coordinates of the pixels' centres, in units of the length scale
        L."""
        return _centres(self.box, *self.nodes.shape[1:])


def box_of(pieces: Sequence[cut.Piece], horizontal: str, vertical: str) -> Box:
    """Return the limits of the coordinates `horizontal` and `vertical` over all blocks: smallest and largest
    horizontal, then smallest and largest vertical value, in units of the length scale L. `pieces`: for each block a
    dictionary of its coordinates."""
    return (*cut.extent(list(pieces), horizontal), *cut.extent(list(pieces), vertical))


def raster(
    pieces: Sequence[cut.Piece], horizontal: str, vertical: str, box: Box | None = None, wide: int = 1200
) -> Raster:
    """Return the mapping from the pixels of a picture to the nodes of a plane. `pieces`: for each block a dictionary of
    its coordinates (nj, ni). `horizontal`, `vertical`: the names of the coordinates of the picture. `box`: the region
    to show, as limits of the horizontal, then of the vertical coordinate in units of L; by default the whole plane.
    `wide`: number of pixels in a row. Pixels are square unless the box is very flat or high. Values are interpolated
    linearly over the triangles into which a cell is divided."""
    box = box or box_of(pieces, horizontal, vertical)
    ratio = (box[3] - box[2]) / max(box[1] - box[0], 1e-300)
    rows = int(np.clip(round(wide * ratio), 64, 2 * wide))
    a, b = _centres(box, rows, wide)
    nodes, weights = np.zeros((3, rows, wide), np.int64), np.full((3, rows, wide), np.nan)
    x, y = (np.concatenate([piece[axis].ravel() for piece in pieces]) for axis in (horizontal, vertical))
    numbers, first = [], 0
    for piece in pieces:
        shape = piece[horizontal].shape
        numbers.append(np.arange(first, first + shape[0] * shape[1]).reshape(shape))
        first += numbers[-1].size
    # Blocks are drawn over the gaps beside them. Blocks of finer levels come after those under them, and so do the gaps
    # between them.
    gaps = _gaps(numbers, x, y)
    for block, number in enumerate(numbers):
        for triangles in (*gaps.get(block, ()), _cells(number, wide)):
            _paint(triangles, x, y, a, b, nodes, weights)
    return Raster(box, nodes, weights)


def _centres(box: Box, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    return (
        box[0] + (np.arange(columns) + 0.5) / columns * (box[1] - box[0]),
        box[2] + (np.arange(rows) + 0.5) / rows * (box[3] - box[2]),
    )


def _cells(n: np.ndarray, most: int) -> np.ndarray:
    """Return the triangles (m, 3) of the cells between the nodes `n` (nj, ni). In rows with more than `most` nodes some
    nodes, which would only take time, are left out, but none on the faces."""
    for axis, size in enumerate(n.shape):
        if size > most:
            n = np.take(n, np.unique(np.append(np.arange(0, size, -(-size // most)), size - 1)), axis)
    corners = n[:-1, :-1], n[:-1, 1:], n[1:, 1:], n[1:, :-1]
    return np.concatenate([np.stack([corners[0], corners[m], corners[m + 1]], axis=-1).reshape(-1, 3) for m in (1, 2)])


def _paint(
    triangles: np.ndarray, x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, nodes: np.ndarray,
    weights: np.ndarray,
) -> None:  # fmt: skip
    """Set nodes and weights of the pixels at (a, b) in `triangles`."""
    xs, ys = x[triangles.T], y[triangles.T]  # (3, m)
    # The pixels in the bounding box of each triangle, including those on its rim.
    (left, right), (low, high) = _range(a, xs), _range(b, ys)
    across = np.maximum(right - left, 0)
    count = across * np.maximum(high - low, 0)
    area = (xs[1] - xs[0]) * (ys[2] - ys[0]) - (xs[2] - xs[0]) * (ys[1] - ys[0])
    seen = np.flatnonzero((count > 0) & np.isfinite(area) & (area != 0))
    xs, ys, area, left, low, across, count = (f[..., seen] for f in (xs, ys, area, left, low, across, count))
    triangles = triangles[seen]
    # The second and the third weight are linear in the position: they follow from their slopes, starting at the first
    # corner.
    slopes = np.stack([ys[2] - ys[0], xs[0] - xs[2], ys[0] - ys[1], xs[1] - xs[0]]) / area
    for start, stop in _slabs(np.cumsum(count)):
        which = np.repeat(np.arange(start, stop), count[start:stop])
        order = np.arange(which.size) - np.repeat(np.cumsum(count[start:stop]) - count[start:stop], count[start:stop])
        row, column = np.divmod(order, across[which])
        row, column = row + low[which], column + left[which]
        p, q = a[column] - xs[0][which], b[row] - ys[0][which]
        second = slopes[0][which] * p + slopes[1][which] * q
        third = slopes[2][which] * p + slopes[3][which] * q
        inside = (second >= -_ROUNDING) & (third >= -_ROUNDING) & (second + third <= 1 + _ROUNDING)
        row, column, second, third = row[inside], column[inside], second[inside], third[inside]
        of = triangles[which[inside]]
        for n, weight in enumerate((1 - second - third, second, third)):
            nodes[n, row, column] = of[:, n]
            weights[n, row, column] = weight


def _range(centres: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first, and the last + 1, of the pixels between the least and the greatest of the `corners` (3, m)."""
    margin = _ROUNDING * (centres[-1] - centres[0])
    return (
        np.searchsorted(centres, corners.min(axis=0) - margin),
        np.searchsorted(centres, corners.max(axis=0) + margin, side="right"),
    )


def _slabs(ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of triangles with _SLAB tests each, or one triangle."""
    start = 0
    while start < ends.size:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _SLAB, side="right")))
        yield start, stop
        start = stop


# Gaps -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _BlockSide:
    """A side of a block: its nodes in a row, the length of the cell behind each, the number of the block and the
    side."""

    nodes: np.ndarray
    depth: np.ndarray
    block: int
    side: int


def _gaps(numbers: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray) -> dict[int, list[np.ndarray]]:
    """Return triangles between faces that are one cell apart: those of neighbouring blocks, or the ends of one block
    that closes on itself. They are ordered by the first of the two blocks."""
    several = [(block, number) for block, number in enumerate(numbers) if min(number.shape) > 1]
    faces = [face for block, number in several for face in _faces(number, block, x, y)]
    spans = np.array([[f(c[face.nodes]) for c in (x, y) for f in (np.min, np.max)] for face in faces]).reshape(-1, 4)
    found: dict[int, list[np.ndarray]] = {}
    for n, one in enumerate(faces):
        reach = _BETWEEN * one.depth.max()
        low, high = spans[:, 0::2] - reach, spans[:, 1::2] + reach
        near = (low <= spans[n, 1::2]).all(axis=1) & (high >= spans[n, 0::2]).all(axis=1)
        for m in np.flatnonzero(near):
            other = faces[m]
            beside = other.block == one.block and other.side // 2 == one.side // 2
            if m != n and (other.block != one.block or beside):
                found.setdefault(min(one.block, other.block), []).extend(_strip(one, other, x, y))
    return found


def _faces(number: np.ndarray, block: int, x: np.ndarray, y: np.ndarray) -> Iterator[_BlockSide]:
    sides = (
        (number[0], number[1]),
        (number[-1], number[-2]),
        (number[:, 0], number[:, 1]),
        (number[:, -1], number[:, -2]),
    )
    for side, (nodes, behind) in enumerate(sides):
        depth = np.hypot(x[nodes] - x[behind], y[nodes] - y[behind])
        if np.isfinite(depth).all() and np.ptp(x[nodes]) + np.ptp(y[nodes]) > 0:
            yield _BlockSide(nodes, depth, block, side)


def _strip(one: _BlockSide, other: _BlockSide, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the triangles from the nodes of a face to the nearest nodes of the other, where these are one cell
    away."""
    nearest = np.empty(one.nodes.size, np.int64)
    chunk = max(1, _SLAB // other.nodes.size)
    for start in range(0, nearest.size, chunk):
        part = one.nodes[start : start + chunk]
        far = (x[part, None] - x[other.nodes]) ** 2 + (y[part, None] - y[other.nodes]) ** 2
        nearest[start : start + chunk] = far.argmin(axis=1)
    facing = other.nodes[nearest]
    distance = np.hypot(x[one.nodes] - x[facing], y[one.nodes] - y[facing])
    close = (distance < _BETWEEN * np.maximum(one.depth, other.depth[nearest])) & (distance > 0)
    # Beyond its ends a face has no neighbour, since a wall may begin there; two ends always face each other.
    inner_nodes = np.ones(close.size, bool)
    inner_nodes[[0, -1]] = False
    for end, before in ((0, 1), (-1, -2)):
        last, inner = other.nodes[end], other.nodes[before]
        outward = np.array([x[last] - x[inner], y[last] - y[inner]])
        past = (x[one.nodes] - x[last]) * outward[0] + (y[one.nodes] - y[last]) * outward[1]
        close &= ~(inner_nodes & (facing == last) & (past > _PAST * (outward @ outward)))
    both = close[:-1] & close[1:]
    if not both.any():
        return []
    a, b, c, d = one.nodes[:-1][both], one.nodes[1:][both], facing[1:][both], facing[:-1][both]
    return [np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])]
