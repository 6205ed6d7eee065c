"""C-grid around a NACA four-digit airfoil of chord 1 from (0, 0) to (1, 0): the block "airfoil", or "airfoil-1",
"airfoil-2", ...

Regions: "wall" (jmin, on the airfoil, both nodes of the trailing edge included), "far-field" (jmax) and "outflow" (imin
and imax). The rest of jmin are the two sides of the cut behind the trailing edge, connected to each other.

Nodes in the plane: `hiresx.grid.parabolic`.
"""

from functools import partial

import numpy as np

from hiresx.case.grids import AirfoilC
from hiresx.grid.blocks import Block, Range, Regions
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.cutting import cut_along_i, even_starts
from hiresx.grid.parabolic import Outline, c_grid


def generate(spec: AirfoilC) -> Grid:
    """Return a C-grid around a NACA four-digit airfoil, with the parameters `spec`, the table [grid] of a case file.
    Lengths are in chords.

    The index i runs clockwise: from the outflow along the lower side of the wake cut, the lower surface, the leading
    edge, the upper surface and the upper side of the cut to the outflow. The index j runs from the airfoil and the cut
    to the outer boundary, which is a half ellipse that ends above and below the end of the cut. The index k runs along
    +z. The period along z is `span`, and the node at the upper end is left out. Raises HiresxError for spacings that do
    not fit the numbers of nodes."""
    section = Section(spec.naca, spec.thickness, spec.camber, spec.trailing_edge == "extended")
    nodes = c_grid(spec, section)

    nj, ni, nk = *nodes.shape, spec.n_span
    starts = even_starts(ni, spec.blocks)
    x, y = (np.broadcast_to(c, (nk, nj, ni)) for c in (nodes.real, nodes.imag))
    z = np.broadcast_to((np.arange(nk) * (spec.span / nk))[:, None, None], (nk, nj, ni))
    regions: Regions = {
        "wall": (("jmin", _along(spec.n_wake, ni - spec.n_wake, 0, nk)),),
        "far-field": (("jmax", _along(0, ni, nj - 1, nk)),),
        "outflow": (("imin", ((0, 1), (0, nj), (0, nk))), ("imax", ((ni - 1, ni), (0, nj), (0, nk)))),
    }
    # Both sides contain the nodes of the cut, and the layers behind one side are those of the other in reverse order.
    opposite = partial(Connection, matrix=((-1, 0, 0), (0, -1, 0), (0, 0, 1)), offset=(ni - 1, 0, 0))
    cut = [
        opposite(0, "jmin", _along(0, spec.n_wake, 0, nk), 0),
        opposite(0, "jmin", _along(ni - spec.n_wake, ni, 0, nk), 0),
    ]
    names = ["airfoil"] if spec.blocks == 1 else [f"airfoil-{n + 1}" for n in range(spec.blocks)]
    period = {"k": (0.0, 0.0, float(spec.span))} if nk > 1 else {}
    return cut_along_i(Block("airfoil", x, y, z, regions), starts, names, cut, period)


# Position of the largest camber if the digits give none.
USUAL_POSITION = 0.4
# The x at which 0.2969 sqrt(x) - 0.1260 x - 0.3516 x^2 + 0.2843 x^3 - 0.1015 x^4 vanishes.
EXTENDED = 1.0089304113651


class Section(Outline):
    """The outline of a NACA four-digit section with a closed trailing edge, and the cut through the wake behind it. The
    cut begins along the mean line and turns into the direction of the chord. Points are complex numbers x + i y, in
    chords.

    `thickness` and `camber`, in chords, replace the values that the `digits` give. `extended` says how the trailing
    edge is closed. If it is false, the last coefficient of the thickness polynomial is -0.1036, and the thickness is
    zero at x = 1. If it is true, the coefficient is -0.1015 as in the report, the thickness is zero at x = EXTENDED,
    and the section is scaled to the chord 1.

    Source: Jacobs, Ward & Pinkerton, NACA Report 460 (1933)."""

    def __init__(
        self, digits: str, thickness: float | None = None, camber: float | None = None, extended: bool = False
    ):
        self.length, self.last = (EXTENDED, -0.1015) if extended else (1.0, -0.1036)
        self.camber = int(digits[0]) / 100 if camber is None else camber
        self.thickness = int(digits[2:]) / 100 if thickness is None else thickness
        self.position = int(digits[1]) / 10 or (USUAL_POSITION if camber else 0.0)
        _, slope = self._mean_line(np.array(0.0))
        direction = (1 + 1j * slope) / abs(1 + 1j * slope)
        self.focus = 0.5 * 1.1019 * self.thickness**2 * complex(direction)
        self.trailing_edge = float(self.unfold(1 + 0j, 1.0).real)

    def _mean_line(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return height and slope of the mean line."""
        m, p = self.camber, self.position
        if m == 0 or p == 0:
            return np.zeros_like(x), np.zeros_like(x)
        c = np.where(x < p, m / p**2, m / (1 - p) ** 2)
        return c * np.where(x < p, 2 * p * x - x * x, 1 - 2 * p + 2 * p * x - x * x), 2 * c * (p - x)

    def outline(self, s: np.ndarray) -> np.ndarray:
        """Return points x + i y of the airfoil surface and the wake cut, in chords, of the shape of `s`. The parameter
        s is the signed square root of x along the mean line: s > 0 on the upper side, s < 0 on the lower side, |s| > 1
        on the cut."""
        s, upper = np.abs(s), np.asarray(s) > 0
        x = np.minimum(s * s, 1.0)
        mean, slope = self._mean_line(x)
        r = self.length * x
        half = 0.2969 * np.sqrt(self.length) * s + r * (-0.1260 + r * (-0.3516 + r * (0.2843 + self.last * r)))
        half = 5 * self.thickness / self.length * half
        half = np.where(s < 1, half, 0.0)
        normal = (1j - slope) / np.hypot(1, slope)
        behind = np.maximum(s * s - 1, 0.0)
        cut = behind - 1j * self._mean_line(np.array(1.0))[1] * np.expm1(-behind)
        return x + 1j * mean + np.where(upper, half, -half) * normal + cut


def _along(first: int, last: int, j: int, nk: int) -> Range:
    return (first, last), (j, j + 1), (0, nk)
