"""Planes and lines through curvilinear blocks, by linear interpolation along grid lines.

A piece is a dictionary of arrays of one shape, for a block of the grid or for points on a plane or line: the
coordinates "x", "y", "z" and any variables. A cut of a block is a list of pieces: a plane can meet a family of grid
lines more than once (an O-grid), or only some of them (which leaves nan for the others)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.errors import HiresxError

Piece = dict[str, np.ndarray]


def parse(text: str, what: str) -> dict[str, float | None]:
    """Return the coordinates that a text such as "y=0, z=1" prescribes for a plane or line, as {"y": 0.0, "z": 1.0}. A
    name alone, such as "y", means the middle of the domain and has the value None. `what`: the word "plane" or "line"
    for the error message. Raises HiresxError for any other text."""
    fixed: dict[str, float | None] = {}
    for part in text.split(","):
        axis, _, value = (piece.strip() for piece in part.partition("="))
        try:
            if axis not in ("x", "y", "z") or axis in fixed:
                raise ValueError
            fixed[axis] = float(value) if "=" in part else None
        except ValueError:
            raise HiresxError(
                f'{what} "{text}" is not understood', f"give it as {'y=0' if what == 'line' else 'z=0'}, or as y=0,z=0"
            ) from None
    return fixed


def extent(pieces: list[Piece], axis: str) -> tuple[float, float]:
    """Return the smallest and the largest value of the coordinate `axis` ("x", "y" or "z") over all blocks, in units of
    the length scale L. `pieces`: for each block a dictionary of its coordinates."""
    return min(float(np.nanmin(p[axis])) for p in pieces), max(float(np.nanmax(p[axis])) for p in pieces)


def flat_axis(pieces: list[Piece], part: str) -> str:
    """Return the name of the coordinate normal to a plane field: "z" for whole fields. For a subset of the fields,
    which may lie in any plane, it is the coordinate that varies least. `pieces`: for each block a dictionary of its
    coordinates. `part`: the description of the subset, "" for whole fields."""
    return min("zyx", key=lambda axis: -np.subtract(*extent(pieces, axis))) if part else "z"


def middle(pieces: list[Piece], axis: str) -> float:
    """Return the mean of the smallest and the largest value of the coordinate `axis` ("x", "y" or "z") over all blocks,
    in units of the length scale L. `pieces`: for each block a dictionary of its coordinates."""
    return sum(extent(pieces, axis)) / 2


@dataclass(frozen=True, eq=False)
class WeightedPlaces:
    """Interpolation from the nodes of a block to points, each value a weighted mean of m nodes. `nodes` (m, ...): the
    flat indexes of these nodes, for points of any shape (...). `weights` (m, ...): their weights; NaN if there is no
    such point. A call with an array of values at the nodes returns the values at the points."""

    nodes: np.ndarray
    weights: np.ndarray

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the interpolated values at the points. `values`: at the nodes of the block, an array `[k, j, i]`."""
        return (np.ravel(values)[self.nodes] * self.weights).sum(axis=0)

    def of(self, first: "WeightedPlaces") -> "WeightedPlaces":
        """Return the composition of two interpolations. `first` interpolates from the nodes of a block to points, and
        this object from these points to further points. The result interpolates from the nodes of the block to the
        further points."""
        shape = first.weights.shape[0], -1
        nodes = first.nodes.reshape(shape)[:, self.nodes]
        weights = first.weights.reshape(shape)[:, self.nodes] * self.weights
        return WeightedPlaces(*(part.reshape(-1, *self.nodes.shape[1:]) for part in (nodes, weights)))


def plane(pieces: list[Piece], axis: str, value: float) -> list[Piece]:
    """Return a three-dimensional field on the plane `axis` = `value` ("x", "y" or "z", and a coordinate in units of L),
    by linear interpolation along grid lines. `pieces`: for each block a dictionary of arrays `[k, j, i]`, coordinates
    "x", "y", "z" and variables. The result is a list of dictionaries of two-dimensional arrays, one or several for each
    block that the plane meets. Each block is cut along the family of its grid lines that most often meet the plane.
    Raises HiresxError if no block reaches the plane."""
    return [
        {name: sheet(values) for name, values in pieces[number].items()}
        for number, sheet in plane_samples(pieces, axis, value)
    ]


def plane_samples(pieces: list[Piece], axis: str, value: float) -> list[tuple[int, WeightedPlaces]]:
    """Return the interpolations from blocks to the plane `axis` = `value` ("x", "y" or "z", and a coordinate in units
    of L), as a list of pairs: the index of a block in `pieces`, and the interpolation from its nodes. `pieces`: for
    each block a dictionary of the coordinates as arrays `[k, j, i]`. Raises HiresxError if no block reaches the
    plane."""
    found = [(number, sheet) for number, piece in enumerate(pieces) for sheet in _sheets(piece, axis, value)]
    if not found:
        _outside(pieces, axis, value)
    return found


def line(pieces: list[Piece], axis: str, value: float) -> tuple[Piece, np.ndarray]:
    """Return the values of a two-dimensional field at the points where the line `axis` = `value` ("x", "y" or "z", and
    a coordinate in units of L) crosses grid lines. `pieces`: for each block a dictionary of two-dimensional arrays,
    coordinates "x", "y", "z" and variables. The first result is a dictionary of arrays (n,), in ascending order of the
    coordinate that varies most along the line. The second result has the indexes of the samples before which the line
    leaves the grid, for instance at a body. Raises HiresxError if no grid line crosses the line."""
    parts, order, gaps = line_samples(pieces, axis, value)
    samples = {
        name: np.concatenate([part(pieces[number][name]) for number, part in parts])[order] for name in pieces[0]
    }
    return samples, gaps


def line_samples(
    pieces: list[Piece], axis: str, value: float
) -> tuple[list[tuple[int, WeightedPlaces]], np.ndarray, np.ndarray]:
    """Return the interpolations from blocks to the points where the line `axis` = `value` crosses grid lines of a
    two-dimensional field, as three results: pairs of the index of a block in `pieces` and the interpolation from its
    nodes; indexes (n,) that select and sort the points of all pairs along the line; and the indexes of those sorted
    points before which the line leaves the grid. `pieces`: for each block a dictionary of the coordinates as
    two-dimensional arrays. Raises HiresxError if no grid line crosses the line."""
    parts = [(n, crossings(piece, axis, value, d)) for n, piece in enumerate(pieces) for d in (0, 1)]
    parts = [(n, part) for n, part in parts if part.nodes.size]
    if not parts:
        _outside(pieces, axis, value)
    joined = {name: np.concatenate([part(pieces[n][name]) for n, part in parts]) for name in "xyz"}
    along = max((name for name in "xyz" if name != axis), key=lambda name: np.ptp(joined[name]))
    covered = [_covered_intervals(piece, axis, value, along) for piece in pieces]
    number = np.concatenate([np.full(part.nodes.shape[1], n) for n, part in parts])
    order = np.argsort(joined[along], kind="stable")
    order = order[~_under_others(joined[along], number, covered)[order]]
    # A node on the line was found along both of its grid lines, and again in the neighbouring block.
    apart = np.diff(joined[along][order], prepend=-np.inf) > 1e-9 * max(np.ptp(joined[along]), 1e-300)
    order = order[apart]
    return parts, order, _gaps(joined[along][order], covered)


def _under_others(along: np.ndarray, number: np.ndarray, covered: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mask of the samples at `along` (n,), of the pieces `number` (n,), that lie among those of a later
    piece. Such a piece is of a finer level, since blocks do not overlap otherwise. `covered`: the intervals of every
    piece (`_covered_intervals`)."""
    under = np.zeros(len(along), dtype=bool)
    low, high = np.full(len(covered), np.inf), np.full(len(covered), -np.inf)
    np.minimum.at(low, number, along)
    np.maximum.at(high, number, along)
    small = 1e-9 * max(np.ptp(along), 1e-300)
    for later in np.unique(number):
        asked = np.flatnonzero((number < later) & (along > low[later] + small) & (along < high[later] - small))
        if not asked.size:
            continue
        own = np.unique(along[number == later])
        after = np.searchsorted(own, along[asked])
        middle = 0.5 * (own[after - 1] + own[after])
        cells = covered[later]
        inside = ((cells[:, :1] <= middle) & (middle <= cells[:, 1:])).any(axis=0)
        under[asked[inside]] = True
    return under


def _covered_intervals(piece: Piece, axis: str, value: float, along: str) -> np.ndarray:
    """Return the intervals (m, 2) of the coordinate `along` that the cells on the line span."""
    s, a = (
        np.stack([f[:-1, :-1], f[:-1, 1:], f[1:, :-1], f[1:, 1:]])
        for f in (_distance(piece, axis, value), piece[along])
    )
    met = (s.min(axis=0) <= 0) & (s.max(axis=0) >= 0)
    return np.stack([a.min(axis=0)[met], a.max(axis=0)[met]], axis=-1)


def _gaps(along: np.ndarray, covered: list[np.ndarray]) -> np.ndarray:
    intervals = np.concatenate(covered)
    intervals = intervals[np.argsort(intervals[:, 0])]
    reach = np.maximum.accumulate(intervals[:, 1])
    steps = np.diff(along)
    before = np.searchsorted(intervals[:, 0], along[:-1] + steps / 2, side="right") - 1
    # Between blocks that do not share nodes one cell is missing. This is no gap; an interval of more than twice the
    # steps beside it is one.
    usual = np.maximum(np.append(steps[1:], 0), np.insert(steps[:-1], 0, 0))
    return np.flatnonzero((reach[before] < along[:-1] + steps / 2) & (steps > 2 * usual)) + 1


def _distance(piece: Piece, axis: str, value: float) -> np.ndarray:
    coordinate = np.asarray(piece[axis])  # reads coordinates that are still in the file of the grid
    s = coordinate - value
    # A plane in a face of the grid must meet the face in spite of round-off.
    size = np.nanmax(np.abs(coordinate)) + abs(value)
    return np.where(np.abs(s) <= 1e-12 * size, 0.0, s)


def _meets(s: np.ndarray) -> np.ndarray:
    """Return the mask of the intervals along axis 0 of s (n, ...) that contain a zero. A zero at a node counts once."""
    meets = np.zeros(s.shape, dtype=bool)
    meets[:-1] = (s[:-1] == 0) | (s[:-1] * s[1:] < 0)
    meets[-1] = s[-1] == 0
    return meets


def _sheets(piece: Piece, axis: str, value: float) -> list[WeightedPlaces]:
    s = _distance(piece, axis, value)
    nodes = np.arange(s.size).reshape(s.shape)
    directions = [d for d in range(3) if s.shape[d] > 1]
    best = max(directions, key=lambda d: _meets(np.moveaxis(s, d, 0)).any(axis=0).mean())
    s, nodes = np.moveaxis(s, best, 0), np.moveaxis(nodes, best, 0)
    meets = _meets(s)
    order = np.cumsum(meets, axis=0)
    sheets = []
    for count in range(1, int(order[-1].max(initial=0)) + 1):
        here = meets & (order == count)
        known = here.any(axis=0)
        if count > 1 and not (known[:-1, :-1] & known[1:, :-1] & known[:-1, 1:] & known[1:, 1:]).any():
            continue  # the nodes of a pole, all of which lie in a plane through it, form no cell
        n = np.argmax(here, axis=0)[None]
        after = np.minimum(n + 1, s.shape[0] - 1)
        t = _fraction(np.take_along_axis(s, n, 0)[0], np.take_along_axis(s, after, 0)[0])
        t = np.where(known, t, np.nan)
        ends = [np.take_along_axis(nodes, end, 0)[0] for end in (n, after)]
        sheets.append(WeightedPlaces(np.stack(ends), np.stack([1 - t, t])))
    return sheets


def crossings(piece: Piece, axis: str, value: float, direction: int) -> WeightedPlaces:
    """Return an interpolation from the nodes of a block to the points where one family of its grid lines crosses the
    plane `axis` = `value` (in units of the length scale L). `axis`: "x", "y" or "z". `piece`: a dictionary of the
    arrays "x", "y" and "z" of the block. `direction`: the axis of these arrays along which the grid lines run."""
    s = np.moveaxis(_distance(piece, axis, value), direction, 0)
    nodes = np.moveaxis(np.arange(s.size).reshape(piece[axis].shape), direction, 0)
    n, *others = np.nonzero(_meets(s))
    here, after = (n, *others), (np.minimum(n + 1, s.shape[0] - 1), *others)
    t = _fraction(s[here], s[after])
    return WeightedPlaces(np.stack([nodes[here], nodes[after]]), np.stack([1 - t, t]))


def _fraction(s0: np.ndarray, s1: np.ndarray) -> np.ndarray:
    """Return the position of the zero between a node (0) and the next (1)."""
    change = s0 - s1
    return np.divide(s0, change, out=np.zeros_like(s0), where=(s0 != 0) & (change != 0))


def _outside(pieces: list[Piece], axis: str, value: float) -> None:
    low, high = extent(pieces, axis)
    raise HiresxError(f"{axis} = {value:g} does not meet the grid", f"it reaches from {axis} = {low:g} to {high:g}")
