"""Plane C-grids about sections in sheared parabolic coordinates.

The square root w = sqrt(2 (z - z0)) about a point z0 within the nose, half its radius behind the leading edge, unfolds
section and cut to one line Im w = S(Re w) that is almost straight (A. Jameson, Communications on Pure and Applied
Mathematics 27 (1974) 283). The grid is made there, of smooth functions:

    Im w = eta + S smoothed over the distance eta        Re w = u sqrt(1 + eta^2 / (u^2 + u_te^2))

eta is the distance from the wall, u the place along it. The first keeps the corner at the trailing edge, which a shear
alone would carry to the outer boundary, at the trailing edge (`hiresx.grid.diffusion`). The second bends the parabolas
Re w = const, which all turn upstream, into lines that fan out over section and wake. Neither has odd terms in eta
besides eta itself: lines continue smoothly across the cut. An algebraic grid of smooth functions has metrics as smooth
as these, without the residual of an elliptic solver or the dissipation of a hyperbolic one.
"""

from abc import ABC, abstractmethod

import numpy as np

from hiresx.case.grids import AirfoilC
from hiresx.case.wing import WingCH
from hiresx.errors import HiresxError
from hiresx.grid.diffusion import diffuse
from hiresx.grid.spacing import nodes_from_centre

Counted = AirfoilC | WingCH


class Outline(ABC):
    """Base class of the sections of wings, with chord 1 from (0, 0) to (1, 0), and of the cut behind them. Points are
    complex numbers x + i y. `focus`: the branch point of the square root of the conformal map (see `unfold`), inside
    the section, half the nose radius behind the nose. `trailing_edge`: the real part of w at the trailing edge."""

    focus: complex
    trailing_edge: float

    @abstractmethod
    def outline(self, s: np.ndarray) -> np.ndarray:
        """Return points x + i y of a wing section and its wake cut, in chords, of the shape of `s`. The parameter s is
        the signed square root of x along the mean line: s > 0 on the upper side, s < 0 on the lower side. For |s| > 1
        the points lie on the cut behind the trailing edge."""

    def unfold(self, z: np.ndarray | complex, side: np.ndarray | float) -> np.ndarray:
        """Return w = sqrt(2 (z - `focus`)), of the shape of the points `z` (complex, x + i y). This conformal map takes
        the wing section to a nearly straight line. `side`: positive for points z of the upper side, negative for the
        lower side. On the upper side the argument of z - focus rises from about 0 on the wake cut to about pi at the
        nose; on the lower side it falls to about -pi, and the root has the opposite sign. Therefore Im w > 0 on both
        sides of the section, Re w < 0 on the lower side, and both sides have the same w at the nose."""
        turn = np.where(np.asarray(side) > 0, 1j, -1j)
        return np.sqrt(2 * (z - self.focus) / turn) * np.sqrt(turn) * turn.imag

    def at(self, u: np.ndarray) -> np.ndarray:
        """Return the points x + i y of the wing section and its wake cut whose images under the conformal map `unfold`
        have the real parts `u`. They are found by bisection and have the shape of `u`."""
        low, high = -2 - np.abs(u), 2 + np.abs(u)
        for _ in range(60):
            s = 0.5 * (low + high)
            below = self.unfold(self.outline(s), s).real < u
            low, high = np.where(below, s, low), np.where(below, high, s)
        return self.outline(0.5 * (low + high))


def c_grid(spec: Counted, section: Outline, beside: float = 0.0) -> np.ndarray:
    """Return the nodes x + i y (nj, ni) of a plane C-grid around a wing section, in chords. The index i runs clockwise:
    from the end of the wake cut along its lower side, the lower surface, the leading edge, the upper surface and the
    upper side of the cut. The index j runs from the surface to a half ellipse about the end of the cut. `spec`: the
    table [grid] of a case file with the numbers of nodes and the spacings. `section`: the outline of the wing section.
    `beside`: for a plane beyond the tip of the wing, its distance from the tip divided by the first spacing of the
    planes there, otherwise 0. The spacings at the surface grow with it. Raises HiresxError for spacings that do not fit
    the numbers of nodes."""
    u, outline = _line(spec, section)
    eta = _distances(spec, section, u, outline, beside)
    w = section.unfold(outline, u)
    v = eta + diffuse(u, w.imag, eta)
    w = u * np.sqrt(1 + eta**2 / (u**2 + section.trailing_edge**2)) + 1j * v
    nodes = section.focus + 0.5 * w * w
    nodes[0] = outline
    return np.asarray(nodes)


def _line(spec: Counted, section: Outline) -> tuple[np.ndarray, np.ndarray]:
    """Return u (ni,) = Re w and the points z (ni,) of the nodes on airfoil and cut. On the airfoil du/dn has zero slope
    at the leading edge, where the square root itself concentrates the nodes, and at the trailing edge, where its value
    follows from `trailing_edge_spacing`. On the cut it grows from that value by a hyperbolic sine."""
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
    behind = (
        edge
        + nodes_from_centre(spec.n_wake, end - edge, last, "grid.trailing_edge_spacing on the cut", "grid.n_wake")[1:]
    )
    u = np.concatenate([-behind[::-1], on, behind])

    outline, n = section.at(u), spec.n_wake
    outline[[n, -n - 1]] = 1.0
    outline[:n] = outline[: -n - 1 : -1]
    return u, outline


def _distances(spec: Counted, section: Outline, u: np.ndarray, outline: np.ndarray, beside: float) -> np.ndarray:
    """Return eta (nj, ni), by hyperbolic sines from the wall to the outer boundary."""
    # |dz/dw| = |w|. For |w| above this size the first distance is made uniform over the chord; on the cut it grows with
    # |w|. If the size at the nose, about 0.1, were made uniform as well, the lines ahead of the nose would be skewed by
    # 60 degrees.
    least, edge = 0.4, section.trailing_edge
    size = np.hypot(least, np.abs(section.unfold(outline, u)))
    first = spec.first_spacing / edge * (0.5 + 0.5 * (np.hypot(least, edge) / size) ** 4) ** 0.25
    if spec.first_spacing_doubles:
        first *= np.hypot(1, beside) + (np.maximum(outline.real - 1, 0) / spec.first_spacing_doubles) ** 2
    outer = _outer(spec, section, u)
    cells = spec.n_normal - 1
    if (first * cells >= outer).any():
        raise HiresxError(
            f"grid.first_spacing = {spec.first_spacing:g} is more than a uniform spacing of {cells} cells",
            "lower grid.first_spacing or grid.n_normal",
        )
    # The rate b with sinh(b cells) / sinh(b) = outer / first.
    low, high = np.full(len(u), 1e-9), np.full(len(u), 500.0 / cells)
    for _ in range(100):
        rate = 0.5 * (low + high)
        above = np.sinh(rate * cells) / np.sinh(rate) > outer / first
        low, high = np.where(above, low, rate), np.where(above, rate, high)
    n = np.arange(cells + 1)[:, None]
    return outer * np.sinh(rate * n) / np.sinh(rate * cells)


def _outer(spec: Counted, section: Outline, u: np.ndarray) -> np.ndarray:
    """Return the eta at which the lines leave the ellipse about the end of the cut with the half axes `far_field` +
    chord + wake and `far_field`. The section is approximated by a straight line."""
    end, b = 1 + spec.wake, spec.far_field
    low, high = np.zeros_like(u), np.full_like(u, 10 * np.sqrt(end + b))
    for _ in range(60):
        eta = 0.5 * (low + high)
        z = section.focus.real + 0.5 * (u * np.sqrt(1 + eta**2 / (u**2 + section.trailing_edge**2)) + 1j * eta) ** 2
        inside = ((z.real - end) / (end + b)) ** 2 + (z.imag / b) ** 2 < 1
        low, high = np.where(inside, eta, low), np.where(inside, high, eta)
    return 0.5 * (low + high)
