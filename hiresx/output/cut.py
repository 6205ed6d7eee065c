"""Planes and lines through curvilinear blocks, by linear interpolation along grid lines.

A piece is a dictionary of arrays of one shape: the coordinates "x", "y", "z" and any variables. A cut of a block is a
list of pieces: a plane can meet a family of grid lines more than once (an O-grid), or only some of them (which leaves
nan for the others).
"""

import numpy as np

from hiresx.errors import HiresxError

Piece = dict[str, np.ndarray]


def parse(text: str, what: str) -> dict[str, float | None]:
    """ "y=0, z=1" as {"y": 0.0, "z": 1.0}; a bare "y" stands for the middle of the domain and gives None.

    Raises HiresxError naming `what` (plane or line) for anything else.
    """
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
    """Least and greatest coordinate `axis` of `pieces`."""
    return min(float(np.nanmin(p[axis])) for p in pieces), max(float(np.nanmax(p[axis])) for p in pieces)


def middle(pieces: list[Piece], axis: str) -> float:
    """Half-way between least and greatest coordinate `axis`."""
    return sum(extent(pieces, axis)) / 2


def plane(pieces: list[Piece], axis: str, value: float) -> list[Piece]:
    """The plane `axis` = `value` through three-dimensional `pieces` (nk, nj, ni), as two-dimensional pieces.

    Each block is cut along the family of its grid lines that most often meet the plane. Raises HiresxError when no
    block reaches the plane.
    """
    found = [sheet for piece in pieces for sheet in _sheets(piece, axis, value)]
    if not found:
        _outside(pieces, axis, value)
    return found


def line(pieces: list[Piece], axis: str, value: float) -> tuple[Piece, np.ndarray]:
    """Where the line `axis` = `value` meets the grid lines of two-dimensional `pieces`.

    Returns the samples, arrays (n,) in rising order of the other coordinate that varies most, and the indexes of those
    before which the line leaves the grid (a body). Raises HiresxError when no grid line reaches it.
    """
    parts = [part for piece in pieces for direction in (0, 1) for part in _crossings(piece, axis, value, direction)]
    if not parts:
        _outside(pieces, axis, value)
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    along = max((name for name in "xyz" if name != axis), key=lambda name: np.ptp(joined[name]))
    order = np.argsort(joined[along], kind="stable")
    # A node on the line was met along both of its grid lines, and once more in the block beside it.
    apart = np.diff(joined[along][order], prepend=-np.inf) > 1e-9 * max(np.ptp(joined[along]), 1e-300)
    samples = {name: values[order][apart] for name, values in joined.items()}
    return samples, _gaps(samples[along], [_covered(piece, axis, value, along) for piece in pieces])


def _covered(piece: Piece, axis: str, value: float, along: str) -> np.ndarray:
    """Intervals (m, 2) of the coordinate `along` that the cells on the line span."""
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
    # Between blocks that do not share nodes a cell is missing; that is no gap, twice the steps beside it is one.
    usual = np.maximum(np.append(steps[1:], 0), np.insert(steps[:-1], 0, 0))
    return np.flatnonzero((reach[before] < along[:-1] + steps / 2) & (steps > 2 * usual)) + 1


def _distance(piece: Piece, axis: str, value: float) -> np.ndarray:
    coordinate = piece[axis]
    s = coordinate - value
    # A plane along a face of the grid must not miss it by round-off.
    size = np.nanmax(np.abs(coordinate)) + abs(value)
    return np.where(np.abs(s) <= 1e-12 * size, 0.0, s)


def _meets(s: np.ndarray) -> np.ndarray:
    """Where along axis 0 of s (n, ...) the interval from a node to the next holds a zero; a node's zero counts once."""
    meets = np.zeros(s.shape, dtype=bool)
    meets[:-1] = (s[:-1] == 0) | (s[:-1] * s[1:] < 0)
    meets[-1] = s[-1] == 0
    return meets


def _sheets(piece: Piece, axis: str, value: float) -> list[Piece]:
    s = _distance(piece, axis, value)
    directions = [d for d in range(3) if s.shape[d] > 1]
    best = max(directions, key=lambda d: _meets(np.moveaxis(s, d, 0)).any(axis=0).mean())
    s = np.moveaxis(s, best, 0)
    meets = _meets(s)
    order = np.cumsum(meets, axis=0)
    sheets = []
    for count in range(1, int(order[-1].max(initial=0)) + 1):
        here = meets & (order == count)
        n = np.argmax(here, axis=0)[None]
        after = np.minimum(n + 1, s.shape[0] - 1)
        t = _fraction(np.take_along_axis(s, n, 0)[0], np.take_along_axis(s, after, 0)[0])
        t = np.where(here.any(axis=0), t, np.nan)
        sheet = {}
        for name, values in piece.items():
            values = np.moveaxis(values, best, 0)
            a, b = np.take_along_axis(values, n, 0)[0], np.take_along_axis(values, after, 0)[0]
            sheet[name] = a + t * (b - a)
        sheets.append(sheet)
    return sheets


def _crossings(piece: Piece, axis: str, value: float, direction: int) -> list[Piece]:
    s = np.moveaxis(_distance(piece, axis, value), direction, 0)
    n, other = np.nonzero(_meets(s))
    if not n.size:
        return []
    after = np.minimum(n + 1, s.shape[0] - 1)
    t = _fraction(s[n, other], s[after, other])
    found = {}
    for name, values in piece.items():
        values = np.moveaxis(values, direction, 0)
        found[name] = values[n, other] + t * (values[after, other] - values[n, other])
    return [found]


def _fraction(s0: np.ndarray, s1: np.ndarray) -> np.ndarray:
    """How far from a node to the next the zero lies."""
    change = s0 - s1
    return np.divide(s0, change, out=np.zeros_like(s0), where=(s0 != 0) & (change != 0))


def _outside(pieces: list[Piece], axis: str, value: float) -> None:
    low, high = extent(pieces, axis)
    raise HiresxError(f"{axis} = {value:g} does not meet the grid", f"it reaches from {axis} = {low:g} to {high:g}")
