"""Kernels written in NumPy from the equations, used by several test files."""

import numpy as np
from kernels_alone import (
    GAMMA,
)  # fmt: skip


def eigenvectors(state: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Right eigenvectors (n, 5, 5) of the flux of conservative states (5, n) through areas (3, n), as columns:
    acoustic, entropy, two shears along the tangents n x e and its normal, acoustic."""
    rho, (u, v, w) = state[0], state[1:4] / state[0]
    p = (GAMMA - 1) * (state[4] - 0.5 * rho * (u * u + v * v + w * w))
    a, enthalpy, kinetic = np.sqrt(GAMMA * p / rho), (state[4] + p) / rho, 0.5 * (u * u + v * v + w * w)
    n = m / np.linalg.norm(m, axis=0)
    steep = m[2] ** 2 > 3 * (m[0] ** 2 + m[1] ** 2)
    e = np.where(steep, [[1.0], [0.0], [0.0]], [[0.0], [0.0], [1.0]])
    s = np.cross(n, e, axis=0)
    s /= np.linalg.norm(s, axis=0)
    t = np.cross(n, s, axis=0)
    velocity, one, zero = np.stack([u, v, w]), np.ones_like(u), np.zeros_like(u)
    un = np.sum(n * velocity, axis=0)
    columns = [
        [one, *(velocity - a * n), enthalpy - a * un],
        [one, *velocity, kinetic],
        [zero, *s, np.sum(s * velocity, axis=0)],
        [zero, *t, np.sum(t * velocity, axis=0)],
        [one, *(velocity + a * n), enthalpy + a * un],
    ]
    return np.moveaxis(np.array([np.stack(c) for c in columns]), (0, 1, 2), (2, 1, 0))
