"""The exact amplitude of a plane sound wave that the linear scheme computes, by Fourier analysis in space and time.

With the ideal weights the interpolated states are linear combinations of nodes, with the weights (3, -20, 90, 60,
-5)/128 at i-2..i+2 and their mirror image. For a small wave the two-state flux h(ql, qr) is replaced by its Jacobians.
A Fourier mode q exp(i k x) then obeys q' = -M q with a matrix M, and SSP-RK3 multiplies it in each step by 1 - z +
z^2/2 - z^3/6, z = dt M. The Jacobians are derived from the formulas of the fluxes as written here, not from the
kernels."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
_LEFT = np.array([3, -20, 90, 60, -5]) / 128
# Linear correction of eq. (19): f(i+n) - f(i-n), n = 1, 2, 3.
_CORRECTION = np.array([17 / 256, -13 / 320, 19 / 3840])
# Difference of the Jacobians. The fluxes are smooth at rest except for a kink of an eigenvalue that does not affect
# sound waves.
_STEP = 1e-6


def amplitude_ratio(flux: str, points: float, waves: float, cfl: float, gamma: float = 1.4) -> complex:
    """Return the computed complex amplitude of a plane sound wave divided by the exact one, after the wave has
    travelled `waves` wavelengths through gas at rest on a uniform grid with `points` nodes per wavelength. The ratio is
    1 for an exact scheme. The scheme is AFWENO with linear (ideal) weights, which interpolates states through five
    nodes, and the time integrator SSP-RK3. `flux`: the numerical flux by its name in the key `scheme.flux` of a case.
    `cfl`: sound speed times time step divided by the spacing. `gamma`: ratio of specific heats. The ratio follows from
    Fourier analysis."""
    theta = 2 * np.pi / points
    left = np.sum(_LEFT * np.exp(1j * theta * np.arange(-2, 3)))
    right = np.exp(1j * theta) * np.conj(left)
    upwind, downwind = jacobians(flux, gamma)
    central = 2j * np.sum(_CORRECTION * np.sin(theta * np.arange(1, 4)))
    # The length is the spacing, the sound speed 1.
    rate = (1 - np.exp(-1j * theta)) * (upwind * left + downwind * right) + (upwind + downwind) * central
    time = waves * points
    steps = int(np.ceil(time / cfl - 1e-9))
    z = rate * (time / steps)
    step = np.eye(3) - z + z @ z / 2 - z @ z @ z / 6
    # rho' = u' = p' in the sound wave: density, momentum, energy; and the weight of the pressure in the final
    # amplitude.
    start = np.array([1.0, 1.0, 1 / (gamma - 1)])
    end = np.linalg.matrix_power(step, steps) @ start
    return complex(end[2] * (gamma - 1) * np.exp(1j * theta * time))


def jacobians(flux: str, gamma: float) -> tuple[Array, Array]:
    """Return the Jacobians (3, 3) of a one-dimensional numerical flux with respect to its left and its right state
    (rho, rho u, e), in gas at rest with density and sound speed 1. `flux`: the numerical flux by its name in the key
    `scheme.flux` of a case, such as "van_leer". `gamma`: ratio of specific heats."""
    rest = np.array([1.0, 0.0, 1 / (gamma * (gamma - 1))])
    if flux in ("steger_warming", "van_leer"):
        split = _steger_warming if flux == "steger_warming" else _van_leer
        return _jacobian(lambda q: split(q, 1, gamma), rest), _jacobian(lambda q: split(q, -1, gamma), rest)
    # HLLC and Roe separate the waves; local Lax-Friedrichs has the same |eigenvalue| for both sound waves.
    whole = _jacobian(lambda q: _physical(q, gamma), rest)
    values, vectors = np.linalg.eig(whole)
    size = (vectors * np.abs(values)) @ np.linalg.inv(vectors)
    return (whole + size) / 2, (whole - size) / 2


def _jacobian(function: Callable[[Array], Array], at: Array) -> Array:
    return np.stack(
        [(function(at + _STEP * e) - function(at - _STEP * e)) / (2 * _STEP) for e in np.eye(at.size)], axis=1
    )


def _state(q: Array, gamma: float) -> tuple[float, float, float, float]:
    """Return rho, u, p and the sound speed."""
    u = q[1] / q[0]
    p = (gamma - 1) * (q[2] - 0.5 * q[1] * u)
    return q[0], u, p, np.sqrt(gamma * p / q[0])


def _physical(q: Array, gamma: float) -> Array:
    _, u, p, _ = _state(q, gamma)
    return np.array([q[1], q[1] * u + p, (q[2] + p) * u])


def _steger_warming(q: Array, side: int, gamma: float) -> Array:
    """Return the fluxes of Steger & Warming, J. Comput. Phys. 40 (1981) 263, eq. (A.1) in one dimension. About l1 = u/2
    see _STEP."""
    rho, u, _, a = _state(q, gamma)
    l1 = 0.5 * u
    l2, l3 = (0.5 * (value + side * abs(value)) for value in (u + a, u - a))
    mass = 2 * (gamma - 1) * l1 + l2 + l3
    energy = (gamma - 1) * l1 * u**2 + 0.5 * (l2 * (u + a) ** 2 + l3 * (u - a) ** 2)
    energy += (3 - gamma) / (2 * (gamma - 1)) * (l2 + l3) * a**2
    return rho / (2 * gamma) * np.array([mass, 2 * (gamma - 1) * l1 * u + l2 * (u + a) + l3 * (u - a), energy])


def _van_leer(q: Array, side: int, gamma: float) -> Array:
    """Return the fluxes of van Leer, Lecture Notes in Physics 170 (1982) 507, for subsonic flow."""
    rho, u, _, a = _state(q, gamma)
    mass = side * 0.25 * rho * a * (u / a + side) ** 2
    wave = (gamma - 1) * u + side * 2 * a
    return np.array([mass, mass * wave / gamma, mass * wave**2 / (2 * (gamma**2 - 1))])
