"""Grids whose lines meet walls at other angles than right ones, and flows along such walls whose solution is known."""

import numpy as np
from scipy.special import j0

from hiresx.case import Case
from hiresx.grid import Block, Grid, matched_connections

GAMMA = 1.4
P = 1 / GAMMA
REST = {"rho": 1.0, "p": P}
# What is small enough for waves to be those of the linear equations.
SMALL = 1e-6


def strip(n, skew, span=None, length=1.0):
    """0 <= y <= 1 with n nodes across, periodic along x; x = X + skew y. `span`: (skew, nodes) of z = Z + skew y, Z of
    period 1."""
    along = np.linspace(0, length, round(length * (n - 1)) + 1)
    aside = np.zeros(1) if span is None else np.linspace(0, 1, span[1])
    z, y, x = np.meshgrid(aside, np.linspace(0, 1, n), along, indexing="ij")
    if span is not None:
        z = z + span[0] * y
    period = {"i": (length, 0.0, 0.0)} | ({} if span is None else {"k": (0.0, 0.0, 1.0)})
    return Grid((Block("strip", x + skew * y, y, z),), period=(period,))


def plane(n, skew):
    """Above the wall y = 0, wide enough for a pulse at x = 0, y = 0.35 until t = 0.4; n nodes a unit of length."""
    x, y = np.linspace(-2, 1.5, round(3.5 * (n - 1)) + 1), np.linspace(0, 1.25, round(1.25 * (n - 1)) + 1)
    x, y = np.meshgrid(x, y)
    return Grid((Block("plane", (x + skew * y)[None], y[None], 0 * x[None]),))


def ring(n, skew, inner=1.0):
    """Between the circles of radius `inner` and inner + 1, n cells across; lines turn by `skew` on the way."""
    angle = -2 * np.pi * np.arange(4 * n + 1) / (4 * n)
    angle, r = np.meshgrid(angle, np.linspace(inner, inner + 1, n + 1))
    angle = angle + skew * (r - inner)
    x, y = r * np.cos(angle), r * np.sin(angle)
    x[:, -1], y[:, -1] = x[:, 0], y[:, 0]
    block = Block("ring", x[None], y[None], 0 * x[None])
    return Grid((block,), tuple(matched_connections((block,))))


def case(boundary, time, **tables):
    scheme = {"weights": "linear"}
    return Case.from_dict(
        {
            "grid": {"file": "none"},
            "time": time,
            "scheme": scheme | tables.pop("scheme", {}),
            "initial": {"state": REST},
            "boundary": boundary,
            **tables,
        }
    )


def sides(*faces):
    return {"faces": list(faces), "type": "periodic"}


# Gaussian pulse of half width 0.15 at x = 0, y = 0.35, and the wall's image of it.
_SHARP, _HEIGHT = np.log(2) / 0.15**2, 0.35


def pulse(x, y, z, t=0.0):
    """The pressure of the pulse in gas at rest, over SMALL: Hankel's integral."""
    k, weight = np.polynomial.legendre.leggauss(120)
    k, weight = 30 * (k + 1), 30 * weight
    spectrum = k / (2 * _SHARP) * np.exp(-k * k / (4 * _SHARP)) * np.cos(k * t) * weight

    def at(r):
        return (spectrum * j0(k * np.ravel(r)[:, None])).sum(axis=1).reshape(np.shape(r))

    return at(np.hypot(x, y - _HEIGHT)) + at(np.hypot(x, y + _HEIGHT))


def standing(x, y, z, t=0.0):
    """The pressure of a standing wave between walls at y = 0 and 1, over SMALL."""
    waves = (2 * np.pi, np.pi, 2 * np.pi if np.ptp(z) > 0 else 0.0)
    shape = [np.cos(k * c) for k, c in zip(waves, (x, y, z), strict=True)]
    return np.prod(shape, axis=0) * np.cos(np.linalg.norm(waves) * t)


def sound(pressure):
    """Gas at rest with this pressure, over SMALL, of isentropic sound."""

    def state(x, y, z):
        p = SMALL * pressure(x, y, z)
        return 1 + p, 0 * x, 0 * x, 0 * x, P + p

    return state


def vortex(x, y, z):
    """A potential vortex at Mach 0.5 on the circle of radius 1, of uniform entropy."""
    r = np.hypot(x, y)
    around = 0.5 / r
    T = 1 - 0.2 * around**2
    return T**2.5, -around * y / r, around * x / r, 0 * x, T**3.5 / GAMMA


def rotation(x, y, z):
    """A rigid rotation at 0.25, of uniform density."""
    return 1 + 0 * x, -0.25 * y, 0.25 * x, 0 * x, P + 0.5 * 0.0625 * (x * x + y * y - 1)
