"""C-grid around a NACA four-digit airfoil of chord 1 from (0, 0) to (1, 0): the block "airfoil", or "airfoil-1",
"airfoil-2", ...

Regions: "wall" (jmin, on the airfoil, both nodes of the trailing edge included), "far-field" (jmax) and "outflow" (imin
and imax). The rest of jmin are the two sides of the cut behind the trailing edge, connected to each other.

The square root w = sqrt(2 (z - z0)) about a point within the nose, half its radius behind the leading edge, unfolds
airfoil and cut to one line Im w = S(Re w) that is almost straight (the sheared parabolic coordinates of Jameson, Comm.
Pure Appl. Math. 27 (1974) 283). The grid is made there, of smooth functions:

    Im w = eta + S smoothed over the distance eta        Re w = u sqrt(1 + eta^2 / (u^2 + u_te^2))

eta is the distance from the wall, u the place along it. The first keeps the corner at the trailing edge, which a shear
alone would carry to the outer boundary, at the trailing edge (`hiresx.grid.diffusion`). The second bends the parabolas
Re w = const, which all turn upstream, into lines that fan out over airfoil and wake. Neither has odd terms in eta
besides eta itself: lines continue smoothly across the cut. An algebraic grid of smooth functions has metrics as smooth
as these, without the residual of an elliptic solver or the dissipation of a hyperbolic one.
"""

from functools import partial

import numpy as np

from hiresx.case.grids import AirfoilC
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, Regions
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.cutting import cut_along_i, even_starts
from hiresx.grid.diffusion import diffuse
from hiresx.grid.spacing import from_centre


def generate(spec: AirfoilC) -> Grid:
    """Grid of an `airfoil-c` table (`hiresx.case.grids.AirfoilC`), lengths in chords.

    i runs clockwise: from the outflow along the lower side of the cut, the lower surface, the leading edge, the upper
    surface and the upper side of the cut to the outflow; j from there to the outer boundary, a half ellipse that ends
    above and below the end of the cut; k along +z, `span` the period (no node at the upper end).
    """
    section = Section(spec.naca, spec.thickness, spec.camber)
    u, outline = _line(spec, section)
    eta = _distances(spec, section, u, outline)
    w = section.unfold(outline, u)
    v = eta + diffuse(u, w.imag, eta)
    w = u * np.sqrt(1 + eta**2 / (u**2 + section.trailing_edge**2)) + 1j * v
    nodes = section.focus + 0.5 * w * w
    nodes[0] = outline

    ni, nj, nk = len(u), spec.n_normal, spec.n_span
    starts = even_starts(ni, spec.blocks)
    x, y = (np.broadcast_to(c, (nk, nj, ni)) for c in (nodes.real, nodes.imag))
    z = np.broadcast_to((np.arange(nk) * (spec.span / nk))[:, None, None], (nk, nj, ni))
    regions: Regions = {
        "wall": (("jmin", _along(spec.n_wake, ni - spec.n_wake, 0, nk)),),
        "far-field": (("jmax", _along(0, ni, nj - 1, nk)),),
        "outflow": (("imin", ((0, 1), (0, nj), (0, nk))), ("imax", ((ni - 1, ni), (0, nj), (0, nk)))),
    }
    # Both sides hold the nodes of the cut, and the layers of one side lie behind the other in reverse.
    opposite = partial(Connection, matrix=((-1, 0, 0), (0, -1, 0), (0, 0, 1)), offset=(ni - 1, 0, 0))
    cut = [
        opposite(0, "jmin", _along(0, spec.n_wake, 0, nk), 0),
        opposite(0, "jmin", _along(ni - spec.n_wake, ni, 0, nk), 0),
    ]
    names = ["airfoil"] if spec.blocks == 1 else [f"airfoil-{n + 1}" for n in range(spec.blocks)]
    period = {"k": (0.0, 0.0, float(spec.span))} if nk > 1 else {}
    return cut_along_i(Block("airfoil", x, y, z, regions), starts, names, cut, period)


# Of the largest camber, where the digits have none.
USUAL_POSITION = 0.4


class Section:
    """A four-digit section with closed trailing edge, and the cut behind it, which leaves along the mean line and turns
    into the chord's direction. Points are complex numbers x + i y.

    Source: Jacobs, Ward & Pinkerton, NACA Report 460 (1933); the last coefficient of the thickness is -0.1036, for
    which it vanishes at x = 1. `thickness` and `camber`, in chords, replace those of the digits. `focus`: the point z0;
    `trailing_edge`: Re w there.
    """

    def __init__(self, digits: str, thickness: float | None = None, camber: float | None = None):
        self.camber = int(digits[0]) / 100 if camber is None else camber
        self.thickness = int(digits[2:]) / 100 if thickness is None else thickness
        self.position = int(digits[1]) / 10 or (USUAL_POSITION if camber else 0.0)
        _, slope = self._mean_line(np.array(0.0))
        direction = (1 + 1j * slope) / abs(1 + 1j * slope)
        self.focus = 0.5 * 1.1019 * self.thickness**2 * complex(direction)
        self.trailing_edge = float(self.unfold(1 + 0j, 1.0).real)

    def _mean_line(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Height and slope."""
        m, p = self.camber, self.position
        if m == 0 or p == 0:
            return np.zeros_like(x), np.zeros_like(x)
        c = np.where(x < p, m / p**2, m / (1 - p) ** 2)
        return c * np.where(x < p, 2 * p * x - x * x, 1 - 2 * p + 2 * p * x - x * x), 2 * c * (p - x)

    def outline(self, s: np.ndarray) -> np.ndarray:
        """Points of the surface at x = s^2 along the mean line: on the upper side for s > 0, on the lower for s < 0.
        For |s| > 1 the points lie on the cut behind the trailing edge."""
        s, upper = np.abs(s), np.asarray(s) > 0
        x = np.minimum(s * s, 1.0)
        mean, slope = self._mean_line(x)
        half = 5 * self.thickness * (0.2969 * s + x * (-0.1260 + x * (-0.3516 + x * (0.2843 - 0.1036 * x))))
        half = np.where(s < 1, half, 0.0)
        normal = (1j - slope) / np.hypot(1, slope)
        behind = np.maximum(s * s - 1, 0.0)
        cut = behind - 1j * self._mean_line(np.array(1.0))[1] * np.expm1(-behind)
        return x + 1j * mean + np.where(upper, half, -half) * normal + cut

    def unfold(self, z: np.ndarray | complex, side: np.ndarray | float) -> np.ndarray:
        """w with Im w > 0 on the surface; `side`: positive where z belongs to the upper one. There the argument of
        z - z0 goes from about 0 on the cut to about pi at the nose, on the lower side to -pi; at the nose both give the
        same w."""
        turn = np.where(np.asarray(side) > 0, 1j, -1j)
        return np.sqrt(2 * (z - self.focus) / turn) * np.sqrt(turn) * turn.imag

    def at(self, u: np.ndarray) -> np.ndarray:
        """Points z of the outline with Re w = u, by bisection."""
        low, high = -2 - np.abs(u), 2 + np.abs(u)
        for _ in range(60):
            s = 0.5 * (low + high)
            below = self.unfold(self.outline(s), s).real < u
            low, high = np.where(below, s, low), np.where(below, high, s)
        return self.outline(0.5 * (low + high))


def _line(spec: AirfoilC, section: Section) -> tuple[np.ndarray, np.ndarray]:
    """u (ni,) = Re w and the points z (ni,) of the nodes on airfoil and cut.

    On the airfoil du/dn is level at the leading edge, where the square root itself draws the nodes together, and at the
    trailing edge, where it is what `trailing_edge_spacing` asks for; on the cut it grows from that, a hyperbolic sine.
    """
    end = float(section.unfold(section.outline(np.sqrt(1 + spec.wake)), 1.0).real)
    half, edge = (spec.n_airfoil - 1) / 2, section.trailing_edge
    last = spec.trailing_edge_spacing / edge
    first = 2 * edge / half - last
    if first <= 0:
        raise HiresxError(
            f"grid.trailing_edge_spacing = {spec.trailing_edge_spacing:g} is too large for {spec.n_airfoil} nodes on "
            "the airfoil",
            f"give less than {2 * edge**2 / half:.3g}, or fewer nodes",
        )
    if last * spec.n_wake > end - edge:
        raise HiresxError(
            f"grid.trailing_edge_spacing = {spec.trailing_edge_spacing:g} takes {spec.n_wake} nodes beyond the end of "
            "the cut",
            f"give less than {edge * (end - edge) / spec.n_wake:.3g}, a longer grid.wake, or fewer nodes",
        )
    t = np.linspace(-1, 1, spec.n_airfoil)
    # The integral of the step 10 t^3 - 15 t^4 + 6 t^5.
    risen = t**4 * (2.5 - 3 * np.abs(t) + t * t)
    on = half * (first * t + (last - first) * np.sign(t) * risen)
    on[0], on[-1] = -edge, edge
    behind = edge + from_centre(spec.n_wake, end - edge, last, "trailing_edge_spacing on the cut")[1:]
    u = np.concatenate([-behind[::-1], on, behind])

    outline, n = section.at(u), spec.n_wake
    outline[[n, -n - 1]] = 1.0
    outline[:n] = outline[: -n - 1 : -1]
    return u, outline


def _distances(spec: AirfoilC, section: Section, u: np.ndarray, outline: np.ndarray) -> np.ndarray:
    """eta (nj, ni), by hyperbolic sines from the wall to the outer boundary."""
    # |dz/dw| = |w|. From this size on the first distance is levelled over the chord; on the cut it grows with |w|. The
    # size at the nose, about 0.1, levelled as well would skew the lines ahead of it by 60 degrees.
    least, edge = 0.4, section.trailing_edge
    size = np.hypot(least, np.abs(section.unfold(outline, u)))
    first = spec.first_spacing / edge * (0.5 + 0.5 * (np.hypot(least, edge) / size) ** 4) ** 0.25
    outer = _outer(spec, section, u)
    cells = spec.n_normal - 1
    if (first * cells >= outer).any():
        raise HiresxError(
            f"grid.first_spacing = {spec.first_spacing:g} is more than a uniform spacing of {cells} cells",
            "lower grid.first_spacing or grid.n_normal",
        )
    # The rate b of sinh(b cells) / sinh(b) = outer / first.
    low, high = np.full(len(u), 1e-9), np.full(len(u), 500.0 / cells)
    for _ in range(100):
        rate = 0.5 * (low + high)
        above = np.sinh(rate * cells) / np.sinh(rate) > outer / first
        low, high = np.where(above, low, rate), np.where(above, rate, high)
    n = np.arange(cells + 1)[:, None]
    return outer * np.sinh(rate * n) / np.sinh(rate * cells)


def _outer(spec: AirfoilC, section: Section, u: np.ndarray) -> np.ndarray:
    """eta where the lines leave the ellipse about the end of the cut with the half axes `far_field` + chord + wake and
    `far_field`, the section taken for a straight line."""
    end, b = 1 + spec.wake, spec.far_field
    low, high = np.zeros_like(u), np.full_like(u, 10 * np.sqrt(end + b))
    for _ in range(60):
        eta = 0.5 * (low + high)
        z = section.focus.real + 0.5 * (u * np.sqrt(1 + eta**2 / (u**2 + section.trailing_edge**2)) + 1j * eta) ** 2
        inside = ((z.real - end) / (end + b)) ** 2 + (z.imag / b) ** 2 < 1
        low, high = np.where(inside, eta, low), np.where(inside, high, eta)
    return 0.5 * (low + high)


def _along(first: int, last: int, j: int, nk: int) -> Range:
    return (first, last), (j, j + 1), (0, nk)
