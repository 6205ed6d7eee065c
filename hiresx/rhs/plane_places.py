"""Places of a recorded plane, and interpolation from them to the nodes of a face."""

from collections.abc import Mapping

import numpy as np

from hiresx.errors import HiresxError
from hiresx.rhs.face_values import place_at

AXES = "xyz"
# Coordinates count as equal within this fraction of the extent of the plane.
_SAME = 1e-7
# The gap between the last row and the first row of the next period is at most this multiple of the largest other
# distance.
_GAP = 1.5


def _distinct(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Return increasing `values`. Of values that differ by no more than `tolerance` the first is kept."""
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], np.diff(ordered) > tolerance])]


class PlanePlaces:
    """The points of a plane as a rectangular lattice of rows along up to two axes. `places` (points, 3): the points in
    any order; of points that coincide one is used. `period`: lengths after which the plane repeats, by the name of the
    axis. `who`: the beginning of error messages.

    Raises HiresxError if the places do not lie in a plane normal to an axis, if they do not form a complete rectangular
    lattice, and for periods that do not fit them.
    """

    def __init__(self, who: str, places: np.ndarray, period: Mapping[str, float]):
        self._who = who
        extent = np.ptp(places, axis=0)
        self._tolerance = _SAME * float(extent.max())
        self.axes = [d for d in range(3) if extent[d] > self._tolerance]
        self.lines = [_distinct(places[:, d], self._tolerance) for d in self.axes]
        if not 1 <= len(self.axes) <= 2:
            raise HiresxError(
                f"{who}: its {len(places)} places are no plane or line normal to an axis",
                "record a surface of nodes of one index, where the grid is normal to x, y or z",
            )
        numbers = [
            line.searchsorted(places[:, d] - self._tolerance) for d, line in zip(self.axes, self.lines, strict=True)
        ]
        shape = tuple(len(line) for line in self.lines)
        self._point = np.full(shape, -1)
        self._point[tuple(numbers)] = np.arange(len(places))
        if (self._point < 0).any():
            at = np.argwhere(self._point < 0)[0]
            where = ", ".join(
                f"{AXES[d]} = {line[m]:.6g}" for d, line, m in zip(self.axes, self.lines, at, strict=True)
            )
            raise HiresxError(
                f"{who}: its places are not all crossings of rows along {' and '.join(AXES[d] for d in self.axes)}: "
                f"there is none at {where}",
                "record a plane of a grid whose lines there run along the axes",
            )
        self._at = places[0]
        self._period = [self._checked_period(period, n) for n in range(len(self.axes))]
        if unused := sorted(set(period) - {AXES[d] for d in self.axes}):
            raise HiresxError(f"{who}: period.{unused[0]}: the plane has no extent along {unused[0]}", "leave it out")

    def _checked_period(self, period: Mapping[str, float], n: int) -> float | None:
        """Return the period along the n-th axis. Rows one period behind the first row are left out."""
        name, line = AXES[self.axes[n]], self.lines[n]
        length = period.get(name)
        if length is None:
            return None
        if abs(line[-1] - line[0] - length) <= self._tolerance:
            line = self.lines[n] = line[:-1]
            self._point = self._point.take(range(len(line)), axis=n)
        gap = length - (line[-1] - line[0])
        if not (len(line) > 1 and self._tolerance < gap <= _GAP * np.diff(line).max()):
            raise HiresxError(
                f"{self._who}: period.{name} = {length:g} does not fit its rows, which go from {line[0]:.6g} to "
                f"{line[-1]:.6g}",
                "give the length after which the rows repeat, or leave it out where they do not",
            )
        return length

    def interpolation(self, nodes: np.ndarray, cubic: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the interpolation from the recorded points of the plane to the n points `nodes` (3, n), their
        coordinates x, y, z in L, as two arrays (m, n): for each of the n points the numbers of m recorded points, and
        their weights. The weights are products of Lagrange polynomials, along each axis of the plane through the four
        nearest rows of recorded points (two if `cubic` is false; fewer if there are fewer rows). Raises HiresxError for
        the first point outside the recorded plane, and if `nodes` do not lie in a parallel plane."""
        for d in set(range(3)) - set(self.axes):
            if (spread := float(np.ptp(nodes[d]))) > self._tolerance + _SAME * abs(nodes).max():
                raise HiresxError(
                    f"{self._who}: the plane lies at {AXES[d]} = {self._at[d]:.6g}, but along the face {AXES[d]} "
                    f"changes by {spread:.4g}",
                    "give planes that are parallel to the face and as wide as it",
                )
        points, weights = np.zeros((1, nodes.shape[1]), int), np.ones((1, nodes.shape[1]))
        for n, (d, line) in enumerate(zip(self.axes, self.lines, strict=True)):
            rows, share = self._rows(n, line, nodes, d, 4 if cubic else 2)
            stride = self._point.shape[1] if n == 0 and len(self.axes) == 2 else 1
            points = (points[:, None] + stride * rows[None]).reshape(-1, nodes.shape[1])
            weights = (weights[:, None] * share[None]).reshape(-1, nodes.shape[1])
        used = abs(weights).max(axis=1) > 0
        return self._point.ravel()[points[used]], weights[used]

    def _rows(self, n: int, line: np.ndarray, nodes: np.ndarray, d: int, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of rows (m, nodes) along the n-th axis, and their weights."""
        to, period, count = nodes[d], self._period[n], len(line)
        if period is None:
            beyond = np.flatnonzero((to < line[0] - self._tolerance) | (to > line[-1] + self._tolerance))
            if len(beyond):
                raise HiresxError(
                    f"{self._who}: the face reaches beyond the plane, whose {AXES[d]} goes from {line[0]:.6g} to "
                    f"{line[-1]:.6g}, at {place_at(nodes, int(beyond[0]))}",
                    f"record a wider plane, shift it, or give period.{AXES[d]} where the flow repeats",
                )
            m = min(most, count)
            cell = np.clip(np.searchsorted(line, to, "right") - 1, 0, count - 2)
            rows = np.clip(cell - (m - 1) // 2, 0, count - m) + np.arange(m)[:, None]
            at = line[rows]
        else:
            to = line[0] + np.mod(to - line[0], period)
            cell = np.searchsorted(line, to, "right") - 1
            m = min(most, count)
            rows = cell - (m - 1) // 2 + np.arange(m)[:, None]
            at = line[rows % count] + period * (rows // count)
            rows = rows % count
        # A node on a row uses this row only, so that round-off of the places has no effect.
        close = abs(at - to) <= self._tolerance
        to = np.where(close.any(axis=0), np.take_along_axis(at, close.argmax(axis=0)[None], 0)[0], to)
        weights = np.ones_like(at)
        for a in range(m):
            for b in range(m):
                if a != b:
                    weights[a] *= (to - at[b]) / (at[a] - at[b])
        return rows, weights
