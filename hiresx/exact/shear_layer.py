"""Linear stability of the compressible tanh mixing layer: its growing mode, by an eigenvalue solve.

The mean flow is u = M tanh(y) between slip walls at y = +-H, with density 1 and pressure 1/gamma (scales: density,
sound speed, half the vorticity thickness). Disturbances f(y) exp(i (a x - w t)) of Euler's linearised equations,

    w u = a U u - i U' v + a p,    w v = a U v - i p',    w p = a U p + a u - i v',    v(+-H) = 0,

are collocated at Gauss-Lobatto points (Canuto et al., Spectral Methods, 2006, section 2.4), mapped by Bayliss and
Turkel's tangent towards the layer. The problem is that of Blumen, J. Fluid Mech. 40 (1970) 769.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hiresx.errors import HiresxError

POINTS = 100
# Half of the points lie within about this distance of the middle.
_LAYER = 2.0
_CONVERGED = 0.01


@dataclass(frozen=True, eq=False)
class Mode:
    """The fastest growing mode of a shear layer. `rate`: its growth rate. `frequency`: its angular frequency. Both are
    in c/L, with the sound speed c and half the vorticity thickness L. `half_height`: half the height of the domain,
    divided by L. The mode is normalised so that the largest |v| is 1. A call with an array y returns the complex
    amplitudes of rho, u, v, p, an array (4, ...)."""

    rate: float
    frequency: float
    half_height: float
    _nodes: np.ndarray
    _weights: np.ndarray
    _parts: np.ndarray

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return rho, u, v, p (4, ...) at y, by barycentric interpolation in the mapped coordinate."""
        at = _from_height(np.asarray(y, dtype=float), self.half_height)
        distance = at[..., None] - self._nodes
        hit = np.abs(distance) < 1e-14
        quotient = self._weights / np.where(hit, 1.0, distance)
        quotient = np.where(hit.any(axis=-1, keepdims=True), hit.astype(float), quotient)
        return np.moveaxis(quotient @ self._parts.T / quotient.sum(axis=-1, keepdims=True), -1, 0)


@lru_cache(maxsize=16)
def growing_mode(mach: float, wavenumber: float, half_height: float, gamma: float = 1.4, points: int = POINTS) -> Mode:
    """Return the fastest growing mode of the compressible tanh mixing layer at one wavenumber, from the eigenvalues of
    the linearised Euler equations. The streams have the velocities +`mach` and -`mach`. The scales are the density, the
    sound speed and half of the vorticity thickness. `wavenumber`: the wavenumber along the streams, in these scales.
    `half_height`: half the distance of the slip walls that bound the domain. `gamma`: ratio of specific heats.
    `points`: number of collocation intervals. Raises HiresxError if no mode grows. The problem is that of Blumen, J.
    Fluid Mech. 40 (1970) 769."""
    fine, coarse = (_fastest(mach, wavenumber, half_height, gamma, n) for n in (points, points * 3 // 4))
    # Waves that neither grow nor decay form a continuum. Collocation turns it into modes whose growth decreases with
    # refinement.
    if not abs(fine.rate - coarse.rate) < _CONVERGED * fine.rate:
        raise HiresxError(
            f"no wave of wavenumber {wavenumber:g} grows in a layer of streams of Mach {mach:g}",
            "waves grow at wavenumbers well below 1 and Mach numbers below 1",
        )
    return fine


def _fastest(mach: float, wavenumber: float, half_height: float, gamma: float, points: int) -> Mode:
    s, derivative = _differentiation(points)
    y = _to_height(s, half_height)
    derivative = derivative / (_height_slope(s, half_height))[:, None]
    n, zero = points + 1, np.zeros((points + 1, points + 1))
    carried = np.diag(wavenumber * mach * np.tanh(y)).astype(complex)
    shear = np.diag(mach / np.cosh(y) ** 2)
    along = wavenumber * np.eye(n)
    system = np.block(
        [[carried, -1j * shear, along], [zero, carried, -1j * derivative], [along, -1j * derivative, carried]]
    )
    # v is 0 at both walls, so its values and equations there are left out.
    kept = np.delete(np.arange(3 * n), [n, 2 * n - 1])
    values, vectors = np.linalg.eig(system[np.ix_(kept, kept)])
    best = int(np.argmax(values.imag))
    full = np.zeros(3 * n, complex)
    full[kept] = vectors[:, best]
    u, v, p = full.reshape(3, n)
    # Without gradients of the mean density and pressure a gas element keeps its entropy: rho' = p'.
    parts = np.stack([p, u, v, p]) / v[np.argmax(np.abs(v))]
    weights = (-1.0) ** np.arange(n)
    weights[[0, -1]] *= 0.5
    return Mode(float(values[best].imag), float(values[best].real), half_height, s, weights, parts)


def _differentiation(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the Gauss-Lobatto points (n,) and the matrix (n, n) of the derivative there."""
    s = np.cos(np.pi * np.arange(points + 1) / points)
    scale = (-1.0) ** np.arange(points + 1)
    scale[[0, -1]] *= 2
    matrix = np.outer(scale, 1 / scale) / (s[:, None] - s + np.eye(points + 1))
    return s, matrix - np.diag(matrix.sum(axis=1))


def _steepness(half_height: float) -> float:
    return float(np.arctan(half_height / _LAYER))


def _to_height(s: np.ndarray, half_height: float) -> np.ndarray:
    return _LAYER * np.tan(_steepness(half_height) * s)


def _height_slope(s: np.ndarray, half_height: float) -> np.ndarray:
    k = _steepness(half_height)
    return _LAYER * k / np.cos(k * s) ** 2


def _from_height(y: np.ndarray, half_height: float) -> np.ndarray:
    return np.arctan(y / _LAYER) / _steepness(half_height)
