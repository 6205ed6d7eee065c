"""Closed-form solutions that cases and verification checks are measured against.

Everything here is a ratio or a profile, so it holds in any consistent scales; `gamma` is the ratio of specific heats
and sound speeds are c = sqrt(gamma p / rho).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from math import acos, atan, cos, exp, pi, radians, sin, sqrt, tan

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from hiresx.base.arrays import Values, triple
from hiresx.errors import HiresxError


@dataclass(frozen=True)
class Riemann:
    """Exact solution of the Riemann problem of the one-dimensional Euler equations.

    `left` and `right` are (rho, u, p). `p_star` and `u_star` are the pressure and the velocity between the two
    nonlinear waves. Raises HiresxError for a state that is not positive and where the two rarefactions would leave
    a vacuum, which no solver of this project represents.
    Source: Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, 3rd ed. (2009), chapter 4.
    """

    left: tuple[float, float, float]
    right: tuple[float, float, float]
    gamma: float
    p_star: float = field(init=False)
    u_star: float = field(init=False)

    def __post_init__(self) -> None:
        for side, (rho, _, p) in (("left", self.left), ("right", self.right)):
            if not (rho > 0 and p > 0):
                raise HiresxError(
                    f"Riemann problem: the {side} state has rho = {rho:g}, p = {p:g}",
                    "give a positive density and pressure",
                )
        if self._velocity_jump(0.0) >= 0:
            raise HiresxError(
                f"Riemann problem: the states {self.left} and {self.right} move apart so fast that a vacuum opens",
                "bring the two velocities closer together",
            )
        object.__setattr__(self, "p_star", self._pressure())
        object.__setattr__(self, "u_star", self._velocity())

    def _wave(self, state: tuple[float, float, float], p: float) -> tuple[float, float]:
        """Velocity change across the wave that brings `state` to pressure p, and its derivative (Toro 4.6, 4.37)."""
        rho, _, p0 = state
        g = self.gamma
        if p > p0:
            a = 2 / ((g + 1) * rho)
            b = (g - 1) / (g + 1) * p0
            root = sqrt(a / (p + b))
            return (p - p0) * root, root * (1 - 0.5 * (p - p0) / (p + b))
        c = sqrt(g * p0 / rho)
        ratio = p / p0
        slope = ratio ** (-(g + 1) / (2 * g)) / (rho * c) if p > 0 else float("inf")
        return 2 * c / (g - 1) * (ratio ** ((g - 1) / (2 * g)) - 1), slope

    def _velocity_jump(self, p: float) -> float:
        return self._wave(self.left, p)[0] + self._wave(self.right, p)[0] + self.right[1] - self.left[1]

    def _pressure(self) -> float:
        g = self.gamma
        (rho_l, u_l, p_l), (rho_r, u_r, p_r) = self.left, self.right
        low, high = min(p_l, p_r), max(p_l, p_r)
        if self._velocity_jump(low) >= 0:
            # Two rarefactions: closed form (Toro 4.46).
            c_l, c_r = sqrt(g * p_l / rho_l), sqrt(g * p_r / rho_r)
            z = (g - 1) / (2 * g)
            return ((c_l + c_r - 0.5 * (g - 1) * (u_r - u_l)) / (c_l / p_l**z + c_r / p_r**z)) ** (1 / z)
        # The velocity jump rises with p and is concave, so Newton's iteration from below never overshoots.
        p = high if self._velocity_jump(high) < 0 else low
        for _ in range(200):
            slope = self._wave(self.left, p)[1] + self._wave(self.right, p)[1]
            change = -self._velocity_jump(p) / slope
            p += change
            if abs(change) <= 1e-15 * p:
                break
        return p

    def _velocity(self) -> float:
        wave_l, wave_r = self._wave(self.left, self.p_star)[0], self._wave(self.right, self.p_star)[0]
        return 0.5 * (self.left[1] + self.right[1]) + 0.5 * (wave_r - wave_l)

    def sample(self, xi: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rho, u, p), each of the shape of xi = (x - x0) / t, the similarity coordinate (Toro 4.5)."""
        xi = np.asarray(xi, dtype=float)
        rho_l, u_l, p_l = self._side(self.left, xi, 1.0)
        # The right half is the left half seen in a mirror.
        rho_r, u_r, p_r = self._side(self.right, xi, -1.0)
        on_left = xi <= self.u_star
        return np.where(on_left, rho_l, rho_r), np.where(on_left, u_l, u_r), np.where(on_left, p_l, p_r)

    def _side(
        self, state: tuple[float, float, float], xi: np.ndarray, sign: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rho0, u0, p0 = state
        g = self.gamma
        u0, u_star, xi = sign * u0, sign * self.u_star, sign * xi
        c0 = sqrt(g * p0 / rho0)
        ratio = self.p_star / p0
        if ratio > 1:
            mu = (g - 1) / (g + 1)
            rho_star = rho0 * (ratio + mu) / (mu * ratio + 1)
            speed = u0 - c0 * sqrt((g + 1) / (2 * g) * ratio + (g - 1) / (2 * g))
            ahead = xi < speed
            rho, u, p = np.where(ahead, rho0, rho_star), np.where(ahead, u0, u_star), np.where(ahead, p0, self.p_star)
        else:
            rho_star = rho0 * ratio ** (1 / g)
            head, tail = u0 - c0, u_star - c0 * ratio ** ((g - 1) / (2 * g))
            inside = np.clip(xi, head, tail)
            c = 2 / (g + 1) * (c0 + 0.5 * (g - 1) * (u0 - inside))
            rho = rho0 * (c / c0) ** (2 / (g - 1))
            u = 2 / (g + 1) * (c0 + 0.5 * (g - 1) * u0 + inside)
            p = p0 * (c / c0) ** (2 * g / (g - 1))
            rho, p = np.where(xi >= tail, rho_star, rho), np.where(xi >= tail, self.p_star, p)
        return rho, sign * u, p


def riemann(
    x: np.ndarray,
    t: float,
    *,
    left: tuple[float, float, float],
    right: tuple[float, float, float],
    x0: float,
    gamma: float,
) -> tuple[np.ndarray, ...]:
    """State (rho, u, v, w, p) of the Riemann problem at time t, arrays of the shape of x; v = w = 0.

    `left`, `right`: (rho, u, p) on the two sides of x0. At t = 0 the initial states as `jump` places them, which takes
    x to be the nodes of a line. Raises HiresxError as `Riemann` does.
    """
    solution = Riemann(triple(left), triple(right), gamma)
    x = np.asarray(x, dtype=float)
    rho, u, p = solution.sample((x - x0) / t) if t > 0 else jump(x, x0, left, right, gamma)
    return rho, u, np.zeros_like(x), np.zeros_like(x), p


def jump(
    x: np.ndarray, x0: float, left: tuple[Values, Values, Values], right: tuple[Values, Values, Values], gamma: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rho, u, p) with `left` below x0 and `right` above it, arrays of the shape of x (nodes along its last axis).

    The node whose cell (half-way to its neighbours) holds x0 takes the mean of the conserved variables over that cell:
    only then does the discrete jump lie at x0 wherever the nodes are. Nodes half a spacing away from x0 stay pure.
    """
    x = np.asarray(x, dtype=float)
    share = 0.5 + (x0 - x) / np.gradient(x, axis=-1)
    # A share that is 0 or 1 but for the rounding of x must not mix in a trace of the other state.
    share = np.clip(np.where(np.abs(share - np.rint(share)) < 1e-9, np.rint(share), share), 0.0, 1.0)

    def conserved(state: tuple[Values, Values, Values]) -> tuple[Values, Values, Values]:
        rho, u, p = state
        return rho, rho * u, p / (gamma - 1) + 0.5 * rho * u * u

    rho, momentum, energy = (
        share * a + (1 - share) * b for a, b in zip(conserved(left), conserved(right), strict=True)
    )
    p = (gamma - 1) * (energy - 0.5 * momentum**2 / rho)
    # On either side the given pressure itself, not what is left of it after the kinetic energy was added and removed.
    p = np.where(share == 1.0, left[2], np.where(share == 0.0, right[2], p))
    return rho, momentum / rho, p


@cache
def _blasius_table() -> tuple[np.ndarray, np.ndarray]:
    """eta and (f, f', f'') of Blasius's equation on 0 <= eta <= 12, where f' = 1 within 1e-11."""

    def march(curvature: float, end: float, steps: int) -> np.ndarray:
        def rate(y: np.ndarray) -> np.ndarray:
            return np.array([y[1], y[2], -0.5 * y[0] * y[2]])

        y = np.array([0.0, 0.0, curvature])
        table, h = [y], end / steps
        for _ in range(steps):
            k1 = rate(y)
            k2 = rate(y + 0.5 * h * k1)
            k3 = rate(y + 0.5 * h * k2)
            k4 = rate(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            table.append(y)
        return np.array(table)

    # Toepfer (1912): f''(0) = 1 gives f'(infinity) = a, and stretching f and eta by a^(-1/2) makes that 1.
    slope = march(1.0, 10.0, 1000)[-1, 1]
    return np.linspace(0.0, 12.0, 1201), march(slope**-1.5, 12.0, 1200)


def blasius(eta: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(f, f', f'') of f''' + f f'' / 2 = 0, f(0) = f'(0) = 0, f'(inf) = 1; arrays of the shape of eta >= 0.

    eta = y sqrt(U / (nu x)), u = U f', v = U (eta f' - f) / (2 sqrt(Re_x)), Cf = 2 f''(0) / sqrt(Re_x).
    Integrated once by Runge-Kutta (f''(0) within 1e-10) and interpolated by cubic Hermite polynomials.
    Source: Blasius, Z. Math. Phys. 56 (1908) 1-37.
    """
    nodes, table = _blasius_table()
    eta = np.asarray(eta, dtype=float)
    if np.any(eta < 0):
        raise HiresxError(f"Blasius profile asked at eta = {np.min(eta):g}", "eta is a distance from the wall: >= 0")
    h = nodes[1]
    inside = np.minimum(eta, nodes[-1])
    i = np.minimum((inside / h).astype(int), len(nodes) - 2)
    s = inside / h - i
    values = np.concatenate([table, (-0.5 * table[:, 0] * table[:, 2])[:, None]], axis=1)

    def hermite(m: int) -> np.ndarray:
        y0, y1, d0, d1 = values[i, m], values[i + 1, m], values[i, m + 1], values[i + 1, m + 1]
        return (
            (1 + 2 * s) * (1 - s) ** 2 * y0
            + s * s * (3 - 2 * s) * y1
            + h * (s * (1 - s) ** 2 * d0 - s * s * (1 - s) * d1)
        )

    f, fp, fpp = hermite(0), hermite(1), hermite(2)
    return f + (eta - inside), fp, fpp


def blasius_layer(distance: ArrayLike, thickness: float) -> np.ndarray:
    """u / U of a Blasius layer at a distance >= 0 from its wall, of the shape of `distance`.

    thickness: the distance at which u = 0.99 U. Source: as `blasius`.
    """
    nodes, table = _blasius_table()
    edge = np.interp(0.99, table[:, 1], nodes)
    return blasius(np.asarray(distance, dtype=float) * (edge / thickness))[1]


def crocco_busemann(
    u: np.ndarray, *, T_wall: float | None, T_edge: float, u_edge: float, gamma: float, recovery: float = 1.0
) -> np.ndarray:
    """Temperature (scale: c = sqrt(T)) across a layer with velocity u, of the shape of u.

    T_wall None is an adiabatic wall. recovery: 1 for Pr = 1, where the relation is exact; sqrt(Pr) is the usual
    correction for other Prandtl numbers in a laminar layer.
    Source: Busemann (1931), Crocco (1932); as in White, Viscous Fluid Flow, 3rd ed. (2006), chapter 7.
    """
    u = np.asarray(u, dtype=float)
    T_adiabatic = T_edge + recovery * 0.5 * (gamma - 1) * u_edge**2
    if T_wall is None:
        T_wall = T_adiabatic
    return T_wall + (T_adiabatic - T_wall) * u / u_edge - recovery * 0.5 * (gamma - 1) * u**2


def couette(
    y: ArrayLike,
    wall_speed: float,
    T_lower: float | None,
    T_upper: float,
    gamma: float,
    prandtl: float,
    viscosity: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, float]:
    """u and T, each of the shape of y, of steady Couette flow between walls at y = 0, at rest, and y = 1; and the mean
    of 1/T over 0 <= y <= 1, which gives the pressure from the mass.

    Velocities over the sound speed at T = 1. T_lower None: the lower wall is adiabatic. viscosity(T): mu over that at
    T = 1, of arrays. The shear mu u' is uniform, so T is a parabola in u whatever the viscosity, and y the integral of
    mu du. Source: Schlichting & Gersten, Boundary-Layer Theory, 9th ed. (2017); c_p = 1/(gamma - 1) in these scales.
    """
    heating = prandtl * (gamma - 1)
    if T_lower is None:
        at_rest, slope = T_upper + 0.5 * heating * wall_speed**2, 0.0
    else:
        at_rest, slope = T_lower, (T_upper - T_lower) / wall_speed + 0.5 * heating * wall_speed

    def temperature(u: np.ndarray) -> np.ndarray:
        return at_rest + slope * u - 0.5 * heating * u * u

    # Gauss-Legendre: the integrands are analytic
    nodes, weights = leggauss(40)
    nodes, weights = 0.5 * (nodes + 1), 0.5 * weights

    def integral(f: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> np.ndarray:
        return u * (f(temperature(u[..., None] * nodes)) @ weights)

    y = np.asarray(y, dtype=float)
    whole = integral(viscosity, np.array(wall_speed))
    u = wall_speed * y
    for _ in range(30):
        u = u - (integral(viscosity, u) - y * whole) / viscosity(temperature(u))
    mean = integral(lambda T: viscosity(T) / T, np.array(wall_speed)) / whole
    return u, temperature(u), float(mean)


@dataclass(frozen=True)
class Shock:
    """Ratios across a shock (behind over ahead), its angle to the flow ahead in degrees, the Mach number behind."""

    angle: float
    pressure: float
    density: float
    mach: float


def normal_shock(mach: float, gamma: float) -> Shock:
    """Normal shock at Mach number `mach` >= 1. Source: NACA report 1135 (1953), equations 93 to 96."""
    if mach < 1:
        raise HiresxError(f"no shock at Mach {mach:g}", "give a Mach number of at least 1")
    m2, g = mach * mach, gamma
    return Shock(
        90.0,
        (2 * g * m2 - (g - 1)) / (g + 1),
        (g + 1) * m2 / ((g - 1) * m2 + 2),
        sqrt(((g - 1) * m2 + 2) / (2 * g * m2 - (g - 1))),
    )


def oblique_shock(mach: float, deflection: float, gamma: float) -> Shock:
    """Weak oblique shock that turns a flow at Mach number `mach` by `deflection` degrees.

    Raises HiresxError where the shock would detach. Source: NACA report 1135 (1953), equations 128 to 138; the
    angle in closed form after Mascitti, Journal of Aircraft 6 (1969) 66, with the cubic solved by cosines.
    """
    m2, g, theta = mach * mach, gamma, radians(deflection)
    if theta == 0:
        beta = acos(sqrt(1 - 1 / m2))
    else:
        a, b = 1 + 0.5 * (g - 1) * m2, 1 + 0.5 * (g + 1) * m2
        squared = (m2 - 1) ** 2 - 3 * a * b * tan(theta) ** 2
        root = sqrt(squared) if squared > 0 else 0.0
        chi = ((m2 - 1) ** 3 - 9 * a * (a + 0.25 * (g + 1) * m2 * m2) * tan(theta) ** 2) / root**3 if root else 2.0
        if abs(chi) > 1:
            raise HiresxError(
                f"a shock at Mach {mach:g} that turns the flow by {deflection:g} degrees is detached",
                "lower the angle or raise the Mach number",
            )
        beta = atan((m2 - 1 + 2 * root * cos((4 * pi + acos(chi)) / 3)) / (3 * a * tan(theta)))
    normal = normal_shock(max(1.0, mach * sin(beta)), gamma)
    return Shock(beta * 180 / pi, normal.pressure, normal.density, normal.mach / sin(beta - theta))


def rayleigh_pitot(mach: float, gamma: float) -> float:
    """Stagnation pressure behind a normal shock over the static pressure ahead of it, p02 / p1, mach >= 1.

    Source: Rayleigh, Proc. R. Soc. A 84 (1910) 247; NACA report 1135 (1953), equation 100.
    """
    behind = normal_shock(mach, gamma)
    return behind.pressure * (1 + 0.5 * (gamma - 1) * behind.mach**2) ** (gamma / (gamma - 1))


def billig_standoff(mach: float, shape: str = "cylinder") -> tuple[float, float]:
    """Stand-off distance and radius of curvature at the axis of a bow shock, both over the radius of the body.

    shape: "cylinder" or "sphere"; a correlation for gamma = 1.4, not a theory.
    Source: Billig, Journal of Spacecraft and Rockets 4 (1967) 822.
    """
    if shape == "cylinder":
        return 0.386 * exp(4.67 / mach**2), 1.386 * exp(1.8 / (mach - 1) ** 0.75)
    if shape == "sphere":
        return 0.143 * exp(3.24 / mach**2), 1.143 * exp(0.54 / (mach - 1) ** 1.2)
    raise HiresxError(f"no bow-shock correlation for a {shape!r}", "shape is 'cylinder' or 'sphere'")
