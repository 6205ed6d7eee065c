"""Differences of sixth-order accuracy on a curvilinear block. At faces they are central if values at nodes beyond the
face are given, and one-sided otherwise."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from hiresx.base.arrays import triple
from hiresx.equations.stencil import DIFFERENCE_NODES as NODES
from hiresx.equations.stencil import DIFFERENCE_REACH as REACH
from hiresx.equations.stencil import DIFFERENCE_WEIGHTS, ONE_SIDED_DIFFERENCES
from hiresx.output.fields.block_neighbours import BeyondFace

# By axis of an array and side (0: below, 1: above).
Sides: TypeAlias = Mapping[tuple[int, int], BeyondFace]
# Weights of the differences times 60, integers: those of the central one, and those at the first nodes of a line.
_CENTRAL = [round(60 * weight) for weight in DIFFERENCE_WEIGHTS]
_EDGE = np.array(ONE_SIDED_DIFFERENCES)


def derivative(f: np.ndarray, axis: int, beyond: Sides | None = None) -> np.ndarray:
    """Return the first derivative of f (nk, nj, ni) with respect to the node index along `axis` (0: k, 1: j, 2: i),
    with sixth-order accuracy, as a float64 array (nk, nj, ni). The difference is the central one, (-1, 9, -45, 0, 45,
    -9, 1)/60, at inner nodes, and also at faces for which `beyond` has the values of three further layers of nodes. It
    is one-sided at other faces. Raises ValueError if there are too few nodes along `axis`."""
    f = np.moveaxis(np.asarray(f, dtype=np.float64), axis, 0)
    n = f.shape[0]
    if n < NODES:
        raise ValueError(f"6th-order differences need {NODES} nodes, there are {n}")
    d = np.empty_like(f)
    _central(f, d[REACH:-REACH])
    for n, row in enumerate(_EDGE):
        d[n] = _weighted_sum(row, f[:NODES])
        d[-1 - n] = -_weighted_sum(row, f[: -NODES - 1 : -1])
    for side in (0, 1):
        if (found := (beyond or {}).get((axis, side))) is not None:
            _across(d, f, found, side)
    d /= 60.0
    return np.moveaxis(d, 0, axis)


def _central(f: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Return the central difference, times 60, of all layers but the outer ones."""
    last = len(f) - REACH
    np.subtract(f[REACH + 1 : last + 1], f[REACH - 1 : last - 1], out=into)
    into *= _CENTRAL[0]
    for s, weight in enumerate(_CENTRAL[1:], start=2):
        into += weight * (f[REACH + s : last + s] - f[REACH - s : last - s])
    return into


def _across(d: np.ndarray, f: np.ndarray, beyond: BeyondFace, side: int) -> None:
    """Set the central difference, times 60, in the three layers of `d` at a face with nodes beyond it."""
    near = f[: 2 * REACH] if side == 0 else f[: -2 * REACH - 1 : -1]
    line = np.concatenate([beyond.values[::-1], near])
    layers, sign = (d, 1.0) if side == 0 else (d[::-1], -1.0)
    central = _central(line, np.empty_like(line[REACH:-REACH]))
    layers[:REACH] = np.where(beyond.there, sign * central, layers[:REACH])


def _weighted_sum(weights: np.ndarray, layers: np.ndarray) -> np.ndarray:
    # Summed term by term: the order of summation of a matrix product depends on its size, so that results would depend
    # on the cuts of a block.
    total = weights[0] * layers[0]
    for weight, values in zip(weights[1:], layers[1:], strict=True):
        total += weight * values
    return total


class Metrics:
    """Operator for derivatives with respect to x, y, z on one block. `x`, `y`, `z` (nk, nj, ni): coordinates of the
    nodes.

    An index direction with a single node is treated as if the block were extruded by 1 (k along z, j along y, i along
    x), so that every field is constant along it. The gradients of x, y and z themselves are exact to round-off on any
    grid. `beyond`: a function that returns the coordinate "x", "y" or "z" at the nodes beyond the faces; None for
    one-sided differences."""

    def __init__(self, x: np.ndarray, y: np.ndarray, z: np.ndarray, beyond: Callable[[str], Sides] | None = None):
        self.axes = [axis for axis in (0, 1, 2) if x.shape[axis] > 1]
        beyond_coordinates = [{} if beyond is None else beyond(name) for name in "xyz"]
        # jacobian[a][d] = d x_a / d xi_d with xi = (i, j, k), the reverse of the axes of an array.
        jacobian = [
            [derivative(c, 2 - d, sides) if 2 - d in self.axes else float(a == d) for d in range(3)]
            for a, (c, sides) in enumerate(zip((x, y, z), beyond_coordinates, strict=True))
        ]
        cofactor = [[_minor(jacobian, a, d) for d in range(3)] for a in range(3)]
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / sum(jacobian[0][d] * cofactor[0][d] for d in range(3))
            # slope[a][axis] = d xi / d x_a of the direction of that array axis, for the directions that exist.
            self.slope = [{axis: cofactor[a][2 - axis] * inverse for axis in self.axes} for a in range(3)]

    def gradient(self, f: np.ndarray, beyond: Sides | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the derivatives of f (nk, nj, ni) with respect to x, y and z, three float64 arrays (nk, nj, ni), in
        the unit of f per length scale L. `beyond`: values of f at the nodes beyond the faces of the block, for those
        faces for which the constructor was given coordinates there."""
        along = {axis: derivative(f, axis, beyond) for axis in self.axes}
        zero = np.zeros(f.shape)
        return triple(sum((along[axis] * slope[axis] for axis in self.axes), zero) for slope in self.slope)


def _minor(m: Sequence[Sequence[np.ndarray | float]], a: int, d: int) -> np.ndarray | float:
    """Return the cofactor (a, d) of a 3x3 matrix; cyclic indexes include the sign."""
    a1, a2, d1, d2 = (a + 1) % 3, (a + 2) % 3, (d + 1) % 3, (d + 2) % 3
    return m[a1][d1] * m[a2][d2] - m[a1][d2] * m[a2][d1]
