"""Exact fields of small sources in a uniform stream along x: what surfaces around them see, and what is heard."""

import numpy as np
from scipy.special import hankel2

OMEGA, SMALL = 2.0, 1e-6
IN_PLANE = np.array([[12.0, 0.0, 0.0], [-9.0, 3.0, 0.0], [0.0, 10.0, 0.0], [4.0, -6.0, 0.0], [-2.0, -14.0, 0.0]])
OBSERVERS = np.array([[12.0, 0.0, 0.0], [-9.0, 3.0, 1.0], [0.0, 10.0, 0.0], [4.0, -6.0, 7.0], [-2.0, 1.0, -14.0]])


def monopole(x, mach):
    """phi and its derivatives (4, n) of a volume source in the stream M along x: phi, phi_x, phi_y, phi_z, all times
    exp(i w t); phi = exp(-i k R) / (4 pi r*)."""
    b2, k = 1 - mach**2, OMEGA
    star = np.sqrt(x[:, 0] ** 2 + b2 * (x[:, 1] ** 2 + x[:, 2] ** 2))
    radius = (star - mach * x[:, 0]) / b2
    phi = np.exp(-1j * k * radius) / (4 * np.pi * star)
    ex = -x[:, 0] / star**2 - 1j * k * (x[:, 0] / star - mach) / b2
    ey, ez = (-b2 * x[:, n] / star**2 - 1j * k * x[:, n] / star for n in (1, 2))
    return np.stack([phi, phi * ex, phi * ey, phi * ez])


def dipole(x, mach):
    """d/dy of the monopole."""
    return derivative(monopole, 1)(x, mach)


def line_monopole(x, mach):
    """As `monopole`, of a line along z: phi = -i exp(i M K x) H0(K r*) / (4 b), K = k / b^2, outwards (4, n)."""
    b2 = 1 - mach**2
    k, star = OMEGA / b2, np.sqrt(x[:, 0] ** 2 + b2 * x[:, 1] ** 2)
    phase = -0.25j / np.sqrt(b2) * np.exp(1j * k * mach * x[:, 0])
    zeroth, first = hankel2(0, k * star), hankel2(1, k * star)
    phi_x = k * (1j * mach * zeroth - x[:, 0] / star * first)
    return phase * np.stack([zeroth, phi_x, -k * b2 * x[:, 1] / star * first, 0 * star])


def derivative(source, axis, step=1e-3):
    """The source d/dx or d/dy of `source`, by differences of fourth order."""

    def found(x, mach):
        at = [source(x + n * step * np.eye(3)[axis], mach) for n in (-2, -1, 1, 2)]
        return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)

    return found


def sampled(source, mach, x, time):
    """rho, velocity (time, n, 3) and p of the flow at places x (n, 3), the source SMALL."""
    turn = SMALL * np.exp(1j * OMEGA * time)[:, None]
    _, *gradient = source(x, mach)
    p = (turn * pressure(source, x, mach)).real
    velocity = np.stack([(turn * part).real for part in gradient], axis=-1)
    velocity[..., 0] += mach
    return 1 + p, velocity, 1 / 1.4 + p


def pressure(source, x, mach):
    """p' over exp(i w t)."""
    phi, phi_x, *_ = source(x, mach)
    return -(1j * OMEGA * phi + mach * phi_x)


def fitted(times, found):
    """Complex amplitudes (m,) of exp(i w t) in signals (m, time), and what is left of the largest, over it."""
    basis = np.stack([np.cos(OMEGA * times), -np.sin(OMEGA * times), np.ones_like(times)], axis=1)
    parts, *_ = np.linalg.lstsq(basis, found.T, rcond=None)
    return parts[0] + 1j * parts[1], np.abs(found.T - basis @ parts).max() / np.abs(found).max()
