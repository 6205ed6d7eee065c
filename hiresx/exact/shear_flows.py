"""Laminar shear flows: Blasius's boundary layer, its temperature, and Couette flow."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from hiresx.errors import HiresxError


@cache
def _blasius_table() -> tuple[np.ndarray, np.ndarray]:
    """Return eta and (f, f', f'') of Blasius's equation on 0 <= eta <= 12, where f' = 1 within 1e-11."""

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

    # Toepfer (1912): f''(0) = 1 gives f'(infinity) = a. Scaling f and eta by a^(-1/2) then gives f'(infinity) = 1.
    slope = march(1.0, 10.0, 1000)[-1, 1]
    return np.linspace(0.0, 12.0, 1201), march(slope**-1.5, 12.0, 1200)


def blasius(eta: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (f, f', f'') of Blasius's boundary layer, f''' + f f'' / 2 = 0 with f(0) = f'(0) = 0, f'(inf) = 1, as
    arrays of the shape of `eta`.

    Here eta = y sqrt(U / (nu x)) >= 0, u = U f', v = U (eta f' - f) / (2 sqrt(Re_x)), Cf = 2 f''(0) / sqrt(Re_x). The
    equation is integrated by a Runge-Kutta method (f''(0) within 1e-10) and interpolated by cubic Hermite polynomials.
    Raises HiresxError for a negative eta. Source: Blasius, Z. Math. Phys. 56 (1908) 1-37."""
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
    """Return u / U of a Blasius boundary layer at the distances `distance` >= 0 from the wall, an array of their shape.
    `thickness`: the distance at which u = 0.99 U, in the same unit. Source: Blasius (1908), see `blasius`."""
    nodes, table = _blasius_table()
    edge = np.interp(0.99, table[:, 1], nodes)
    return blasius(np.asarray(distance, dtype=float) * (edge / thickness))[1]


def crocco_busemann(
    u: np.ndarray, *, T_wall: float | None, T_edge: float, u_edge: float, gamma: float, recovery: float = 1.0
) -> np.ndarray:
    """Return the temperature in a boundary layer from its velocity, by the Crocco-Busemann relation, in scales in which
    the sound speed is sqrt(T). `u`: the velocities; the result has the shape of this array. `T_edge`, `u_edge`:
    temperature and velocity at the edge of the layer. `T_wall`: temperature at the wall; None for an adiabatic wall.
    `gamma`: ratio of specific heats. `recovery`: the recovery factor; 1 for Pr = 1, where the relation is exact;
    sqrt(Pr) is the usual correction for other Prandtl numbers in a laminar layer. Source: Busemann (1931), Crocco
    (1932); as in White, Viscous Fluid Flow, 3rd ed. (2006), chapter 7."""
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
    """Return velocity u and temperature T of steady compressible Couette flow at `y`, two arrays of the shape of y, and
    the mean of 1/T over 0 <= y <= 1. The uniform pressure follows from this mean and the mass between the walls. The
    wall at y = 0 is at rest, and the wall at y = 1 moves. Velocities are in units of the sound speed at T = 1, and c_p
    = 1/(gamma - 1). `wall_speed`, `T_upper`: velocity and temperature of the moving wall. `T_lower`: temperature of the
    wall at rest; None if it is adiabatic. `gamma`: ratio of specific heats. `prandtl`: the Prandtl number.
    `viscosity(T)`: a function that returns the viscosity at an array of temperatures, divided by the viscosity at T =
    1. The shear stress mu u' is uniform, so T is a parabola in u for any viscosity, and y is proportional to the
    integral of mu du. Source: Schlichting & Gersten, Boundary-Layer Theory, 9th ed. (2017)."""
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
