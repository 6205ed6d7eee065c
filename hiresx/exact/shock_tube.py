"""The exact solution of the Riemann problem of the one-dimensional Euler equations, and the values at nodes next to an
initial jump.

Any consistent scales can be used. `gamma` is the ratio of specific heats; the sound speed is c = sqrt(gamma p / rho).
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from hiresx.base.arrays import Values, triple
from hiresx.errors import HiresxError


@dataclass(frozen=True)
class Riemann:
    """Exact solution of the Riemann problem of the one-dimensional Euler equations.

    `left` and `right` are (rho, u, p), and `gamma` is the ratio of specific heats. `p_star` and `u_star` are the
    pressure and the velocity between the two nonlinear waves. Raises HiresxError for a state with a density or pressure
    that is not positive, and if there is a vacuum between the two rarefactions. Source: Toro, Riemann Solvers and
    Numerical Methods for Fluid Dynamics, 3rd ed. (2009), chapter 4.
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
        """Return the velocity change across the wave that brings `state` to pressure p, and its derivative (Toro 4.6,
        4.37)."""
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
        """Return density, velocity and pressure of the exact solution at the similarity coordinate `xi` = (x - x0) / t,
        where x0 is the position of the initial jump. All are in the scales of the two initial states. Each array has
        the shape of `xi`. Source: Toro (see `Riemann`), section 4.5."""
        xi = np.asarray(xi, dtype=float)
        rho_l, u_l, p_l = self._side(self.left, xi, 1.0)
        # The right half is the mirror image of the left half.
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
    """Return the exact solution (rho, u, v, w, p) of a Riemann problem at time `t`: arrays of the shape of `x`, with v
    = w = 0, in the scales of the arguments. `left`, `right`: (rho, u, p) on the two sides of the initial jump at `x0`.
    `gamma`: ratio of specific heats. At t = 0, `x` must be the nodes of a line, and the node next to the jump has a
    mean of both states (see `jump`). Raises HiresxError for a density or pressure that is not positive, and if a vacuum
    develops."""
    solution = Riemann(triple(left), triple(right), gamma)
    x = np.asarray(x, dtype=float)
    rho, u, p = solution.sample((x - x0) / t) if t > 0 else jump(x, x0, left, right, gamma)
    return rho, u, np.zeros_like(x), np.zeros_like(x), p


def jump(
    x: np.ndarray, x0: float, left: tuple[Values, Values, Values], right: tuple[Values, Values, Values], gamma: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return density, velocity and pressure at the nodes `x` of grid lines for an initial jump: the state `left` below
    `x0` and `right` above it. The arrays have the shape of `x`, whose last axis runs along the lines. `left`, `right`:
    (rho, u, p). `gamma`: ratio of specific heats. If the cell of a node (from halfway to its neighbours) contains x0,
    the node has the mean of the conserved variables over this cell. The discrete jump then lies exactly at x0 on any
    grid."""
    x = np.asarray(x, dtype=float)
    share = 0.5 + (x0 - x) / np.gradient(x, axis=-1)
    # A fraction that is 0 or 1 up to the rounding of x must not add a small amount of the other state.
    share = np.clip(np.where(np.abs(share - np.rint(share)) < 1e-9, np.rint(share), share), 0.0, 1.0)

    def conservative(state: tuple[Values, Values, Values]) -> tuple[Values, Values, Values]:
        rho, u, p = state
        return rho, rho * u, p / (gamma - 1) + 0.5 * rho * u * u

    rho, momentum, energy = (
        share * a + (1 - share) * b for a, b in zip(conservative(left), conservative(right), strict=True)
    )
    p = (gamma - 1) * (energy - 0.5 * momentum**2 / rho)
    # On each side the result is the given pressure itself, without the rounding errors of adding and subtracting the
    # kinetic energy.
    p = np.where(share == 1.0, left[2], np.where(share == 0.0, right[2], p))
    return rho, momentum / rho, p
