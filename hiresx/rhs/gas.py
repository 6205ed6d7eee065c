"""Primitive and conservative states of the perfect gas on the host."""

import numpy as np


def conservative(gamma: float, rho, u, v, w, p) -> tuple[np.ndarray, ...]:
    """(rho, rho u, rho v, rho w, e), e = p/(gamma-1) + rho |u|^2/2, of arrays of any one shape."""
    return rho, rho * u, rho * v, rho * w, p / (gamma - 1) + 0.5 * rho * (u * u + v * v + w * w)


def primitive(gamma: float, q) -> dict[str, np.ndarray]:
    """rho, u, v, w, p of a conservative state (5, ...)."""
    rho = q[0]
    u, v, w = q[1] / rho, q[2] / rho, q[3] / rho
    return {"rho": rho, "u": u, "v": v, "w": w, "p": (gamma - 1) * (q[4] - 0.5 * rho * (u * u + v * v + w * w))}
