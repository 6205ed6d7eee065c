"""Wall units of mean profiles: friction velocity, distances in viscous lengths, and velocities transformed for density
and viscosity that change with the distance."""

from typing import NamedTuple

import numpy as np

from hiresx.output.fields.differences import derivative


class WallUnits(NamedTuple):
    """Wall units of a mean profile. `u_tau` = (tau_w / rho_w)^(1/2) and `viscous_length` = mu_w / (rho_w u_tau) are
    numbers. The other fields are arrays (n,) over the nodes: `y_plus`; the semi-local `y_star` = y (tau_w rho)^(1/2) /
    mu; `u_plus`, `u_van_driest` (van Driest 1951) and `u_trettel_larsson` (Trettel & Larsson 2016, equation 14). The
    last one is None if the layer at the wall is not resolved."""

    u_tau: float
    viscous_length: float
    y_plus: np.ndarray
    y_star: np.ndarray
    u_plus: np.ndarray
    u_van_driest: np.ndarray
    u_trettel_larsson: np.ndarray | None


def wall_units(
    y: np.ndarray,
    u: np.ndarray,
    rho: np.ndarray,
    mu: np.ndarray,
    stress: float,
    at_wall: tuple[float, float] | None = None,
) -> WallUnits:
    """Return a mean profile in wall units: friction velocity, viscous length, y+, y*, u+ and transformed velocities.
    `y` (n,): distances from the wall, beginning with 0. `u`, `rho`, `mu` (n,): mean velocity along the wall, mean
    density, and mean viscosity divided by Re_c. `stress`: the shear stress at the wall. All are in units of c_ref,
    rho_ref and L. `at_wall`: density and mu at the wall, if the velocity of the first node is not zero, as with a wall
    model. Derivatives of density and viscosity with respect to y* are sixth-order differences (7 nodes or more);
    integrals over u are computed by the trapezoidal rule. Source: van Driest (1951); Trettel & Larsson (2016), equation
    14."""
    rho_wall, mu_wall = at_wall or (rho[0], mu[0])
    u_tau = float(np.sqrt(stress / rho_wall))
    length = float(mu_wall / (rho_wall * u_tau))
    plus, y_star = u / u_tau, y * np.sqrt(stress * rho) / mu
    root = np.sqrt(rho / rho_wall)

    def integral(weight: np.ndarray) -> np.ndarray:
        steps = 0.5 * (weight[1:] + weight[:-1]) * np.diff(plus)
        return np.concatenate([[0.0], np.cumsum(steps)])

    if at_wall:
        first = 0.5 * (1 + root[0]) * plus[0]
        return WallUnits(u_tau, length, y / length, y_star, plus, first + integral(root), None)
    # (rho/rho_w)^(1/2) [1 + y rho'/(2 rho) - y mu'/mu] du+ = mu/mu_w d(y*)/d(y+) du+
    stretched = mu / mu[0] * length * _slope(y_star) / _slope(y)
    return WallUnits(u_tau, length, y / length, y_star, plus, integral(root), integral(stretched))


def _slope(values: np.ndarray) -> np.ndarray:
    """Return the derivative with respect to the number of the node."""
    return derivative(values[None, None], 2)[0, 0]
