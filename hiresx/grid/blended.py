"""Interpolation through six nodes with three continuous derivatives, also where the stencil changes to other nodes.

The nodes, `WIDTH` = 6, are those of `hiresx.grid.patched`. Between the nodes i and i + 1 the value is

    (1 - r) P_i + r P_(i+1),    r(t) = 6 t^5 - 15 t^4 + 10 t^3,    t = xi - i,

where P_i is the polynomial of fourth degree through the nodes i - 2 to i + 2. At a node the first and the second
derivative of r vanish, and both polynomials have the value of the node, so that the first three derivatives are those
of P_i from both sides. The polynomial through all six nodes would have two slopes there. Values are of fifth order in
the spacing, first derivatives of fourth. Towards the end of a block, where the stencil does not change, the polynomial
through all six nodes is used: r = (xi - base) / 5.
"""

import numpy as np

from hiresx.grid.patched import WIDTH, BlockMap, lagrange

# Nodes before the cell of a centred interpolation.
BEFORE = WIDTH // 2 - 1


def lagrange_blended(t: np.ndarray, share: np.ndarray, change: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Return the weights (..., 6) by which the values at six equidistant nodes are combined to interpolate at the
    positions `t` (...), in node spacings from the first node. The weights are a mean of two quartic Lagrange
    interpolations: `share` (...) times the weights of the last five nodes, plus 1 - `share` times the weights of the
    first five. The result is a tuple with the weights. If `change` (...), the derivative of `share` with respect to t,
    is given, the tuple also has the derivatives of the weights."""
    (first, first_slope), (last, last_slope) = lagrange(t, WIDTH - 1), lagrange(np.asarray(t) - 1, WIDTH - 1)
    none = np.zeros((*first.shape[:-1], 1))
    lower, upper = np.concatenate([first, none], axis=-1), np.concatenate([none, last], axis=-1)
    r = share[..., None]
    value = lower + r * (upper - lower)
    if change is None:
        return (value,)
    slopes = np.concatenate([first_slope, none], axis=-1), np.concatenate([none, last_slope], axis=-1)
    return value, slopes[0] + r * (slopes[1] - slopes[0]) + change[..., None] * (upper - lower)


class BlendedMap(BlockMap):
    """A `BlockMap`, from indexes to coordinates of a block, whose first three derivatives are continuous. `ended` (3,
    2): whether there are no nodes beyond the lower and the upper end of each direction. Near such an end, coordinates
    are interpolated by the polynomial through all six nodes."""

    ended: np.ndarray

    def share(self, xi: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of the quartic polynomial through the last five of six nodes in the blended interpolation,
        and its derivative with respect to the index, (n, 3) each: one number for each position and index direction.
        (The polynomial through the first five nodes has 1 minus this weight.) `xi` (n, 3): positions as fractional node
        indexes. `base` (n, 3): index of the first of the six nodes."""
        place = xi - base
        t = np.clip(place - BEFORE, 0, 1)
        r, change = t**3 * (10 + t * (6 * t - 15)), 30 * (t * (1 - t)) ** 2
        at_low = self.ended[:, 0] & (base == self.low)
        at_high = self.ended[:, 1] & (base >= self.high - WIDTH)
        all_six = place / (WIDTH - 1)
        below, above = np.where(at_low, all_six, 0.0), np.where(at_high, all_six, 1.0)
        of_six = (at_low * (1 - r) + at_high * r) / (WIDTH - 1)
        return below + r * (above - below), of_six + change * (above - below)

    def weights(self, xi: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the interpolation weights of the six nodes in each index direction, and their derivatives with respect
        to the index, each (n, 3, 6). The map has three continuous derivatives. `xi` (n, 3): positions as fractional
        node indexes. `base` (n, 3): index of the first of the six nodes. In a direction with one node the weights are
        (1, 0, ...)."""
        value, slope = lagrange_blended(xi - base, *self.share(xi, base))
        for d in range(self.dimensions, 3):
            value[:, d], slope[:, d] = np.eye(WIDTH)[0], 0.0
        return value, slope
