"""Fields on curvilinear blocks as pictures of equal pixels: found once where each pixel lies, then one weighted sum for
each picture. A block is painted to its faces and no farther."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.output.fields import cut
from hiresx.results import needs

Box = tuple[float, float, float, float]
# Blocks that lie side by side and share no nodes leave a gap of one cell: pixels there take the nearest node, if it is
# nearer than this many cells.
_BETWEEN = 0.75


@dataclass(frozen=True, eq=False)
class Raster:
    """Pixels (rows, columns) from the least to the greatest coordinate of `box` (least and greatest horizontal, least
    and greatest vertical); of each the three nodes around it, indexes into the nodes of all pieces one after the other,
    and their weights; nan where there is no flow."""

    box: Box
    nodes: np.ndarray
    weights: np.ndarray

    def __call__(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """The picture (rows, columns) of `values`, one array for each piece."""
        flat = np.concatenate([np.ravel(part) for part in values])
        picture = self.weights[0] * flat[self.nodes[0]]
        for n in (1, 2):
            picture += self.weights[n] * flat[self.nodes[n]]
        return picture


def box_of(pieces: Sequence[cut.Piece], horizontal: str, vertical: str) -> Box:
    """What the pieces reach over."""
    return (*cut.extent(list(pieces), horizontal), *cut.extent(list(pieces), vertical))


def raster(
    pieces: Sequence[cut.Piece], horizontal: str, vertical: str, box: Box | None = None, wide: int = 1200
) -> Raster:
    """The pixels of two-dimensional `pieces` (nj, ni) in `box` (all of them, if absent), `wide` in a row; they are
    square unless the box is very flat or high."""
    box = box or box_of(pieces, horizontal, vertical)
    ratio = (box[3] - box[2]) / max(box[1] - box[0], 1e-300)
    rows, columns = int(np.clip(round(wide * ratio), 64, 2 * wide)), wide
    a = box[0] + (np.arange(columns) + 0.5) / columns * (box[1] - box[0])
    b = box[2] + (np.arange(rows) + 0.5) / rows * (box[3] - box[2])
    nodes, weights = np.zeros((3, rows, columns), np.int64), np.full((3, rows, columns), np.nan)
    first, sizes, places = 0, [], []
    for piece in pieces:
        x, y = piece[horizontal], piece[vertical]
        # Only the pixels that the piece can cover are asked for.
        inside = [slice(*np.searchsorted(axis, (np.nanmin(f), np.nanmax(f)))) for axis, f in ((b, y), (a, x))]
        if all(part.stop > part.start for part in inside) and min(x.shape) > 1:
            found, weight = _within(x, y, a[inside[1]], b[inside[0]])
            known = np.isfinite(weight[0])
            for n in range(3):
                nodes[n][tuple(inside)][known] = found[n][known] + first
                weights[n][tuple(inside)][known] = weight[n][known]
        sizes.append(_spacing(x, y))
        places.append(np.stack([x.ravel(), y.ravel()], axis=1))
        first += x.size
    owner = np.repeat(np.arange(len(sizes)), [part.size for part in sizes])
    _close(nodes, weights, np.concatenate(places), np.concatenate(sizes), owner, a, b)
    return Raster(box, nodes, weights)


def _within(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (3, rows, columns) and weights of the triangles that the pixels lie in; weights are nan outside."""
    from matplotlib.tri import Triangulation

    n = np.arange(x.size).reshape(x.shape)
    corners = n[:-1, :-1], n[:-1, 1:], n[1:, 1:], n[1:, :-1]
    triangles = np.concatenate(
        [np.stack([corners[0], corners[m], corners[m + 1]], axis=-1).reshape(-1, 3) for m in (1, 2)]
    )
    x, y = x.ravel(), y.ravel()
    (xa, xb, xc), (ya, yb, yc) = x[triangles.T], y[triangles.T]
    area = (xb - xa) * (yc - ya) - (xc - xa) * (yb - ya)
    kept = np.isfinite(area) & (np.abs(area) > 1e-14 * np.nanmax(np.abs(area)))
    triangles, area = triangles[kept], area[kept]
    mesh = np.meshgrid(a, b)
    try:
        number = Triangulation(np.nan_to_num(x), np.nan_to_num(y), triangles).get_trifinder()(*mesh)
    except RuntimeError:  # nodes that coincide, as at a pole: the nearest node is found in `_close`
        number = np.full(mesh[0].shape, -1)
    there = number >= 0
    chosen = triangles[number]
    found = np.moveaxis(chosen, -1, 0)
    (xa, xb, xc), (ya, yb, yc) = x[found], y[found]
    second = ((mesh[0] - xa) * (yc - ya) - (xc - xa) * (mesh[1] - ya)) / area[number]
    third = ((xb - xa) * (mesh[1] - ya) - (mesh[0] - xa) * (yb - ya)) / area[number]
    weight = np.stack([1 - second - third, second, third])
    weight[:, ~there] = np.nan
    return found, weight


def _spacing(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Distance of each node to the farther of its next ones along either grid line, flat."""
    found = np.zeros(x.shape)
    for axis in (0, 1):
        if x.shape[axis] < 2:
            continue
        step = np.hypot(np.diff(x, axis=axis), np.diff(y, axis=axis))
        lower, upper = (np.take(step, [0], axis), np.take(step, [-1], axis))
        found = np.maximum(found, np.concatenate([lower, step], axis))
        found = np.maximum(found, np.concatenate([step, upper], axis))
    return found.ravel()


def _close(
    nodes: np.ndarray, weights: np.ndarray, places: np.ndarray, sizes: np.ndarray, owner: np.ndarray,
    a: np.ndarray, b: np.ndarray,
) -> None:  # fmt: skip
    """Give the pixels between blocks the nearest node. `owner`: the block of each node."""
    row, column = np.nonzero(~np.isfinite(weights[0]))
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    if not row.size or not known.size:
        return
    at = np.stack([a[column], b[row]], axis=1)
    tree, count = needs.scipy("spatial").cKDTree, np.zeros(row.size, int)
    distance, nearest = np.full(row.size, np.inf), np.zeros(row.size, np.int64)
    for number in np.unique(owner):
        own = known[owner[known] == number]
        far, found = tree(places[own]).query(at)
        count += far < sizes[own[found]]
        closer = far < distance
        distance[closer], nearest[closer] = far[closer], own[found[closer]]
    # A pixel beside one block alone is in a wall, or outside.
    near = (count > 1) & (distance < _BETWEEN * sizes[nearest])
    row, column, nearest = row[near], column[near], nearest[near]
    nodes[:, row, column] = nearest
    weights[:, row, column] = np.array([1.0, 0.0, 0.0])[:, None]
