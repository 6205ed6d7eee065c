"""Thermodynamics of the calorically perfect gas on the host, in the scales of the solver: T = gamma p / rho."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from hiresx.base.arrays import Reals
from hiresx.equations.system import GAS_CONSERVED, equations

_Values = TypeVar("_Values", float, np.ndarray)


def conservative(
    gamma: float, rho: Reals, u: Reals, v: Reals, w: Reals, p: Reals, *scalars: Reals
) -> tuple[np.ndarray, ...]:
    """Return rho, rho u, rho v, rho w, e and rho s of each scalar s in `scalars`, with the total energy e = p/(gamma-1)
    + rho |u|^2/2. The arguments are numbers or arrays of one shape, in the scales of the case."""
    energy = p / (gamma - 1) + 0.5 * rho * (u * u + v * v + w * w)
    return rho, rho * u, rho * v, rho * w, energy, *(rho * s for s in scalars)


def primitive(gamma: float, q: np.ndarray, scalars: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return the primitive variables rho, u, v, w, p and the `scalars` by name, each an array of shape (...). `q` (5 +
    number of scalars, ...): the conservative variables rho, rho u, rho v, rho w, e and rho s of each scalar. `gamma`:
    ratio of specific heats."""
    rho = q[0]
    u, v, w = q[1] / rho, q[2] / rho, q[3] / rho
    state = {"rho": rho, "u": u, "v": v, "w": w, "p": (gamma - 1) * (q[4] - 0.5 * rho * (u * u + v * v + w * w))}
    return state | {name: q[n] / rho for n, name in enumerate(scalars, len(GAS_CONSERVED))}


def alive(q: np.ndarray) -> bool:
    """Return whether density and internal energy are positive everywhere. `q` (5 + number of scalars, ...): the
    conservative variables rho, rho u, rho v, rho w, e and rho s of each scalar."""
    rho, *momentum, e = q[: len(GAS_CONSERVED)]
    with np.errstate(all="ignore"):
        return bool((rho > 0).all() and (e - sum(m * m for m in momentum) / (2 * rho) > 0).all())


def temperature(gamma: float, rho: _Values, p: _Values) -> _Values:
    """Return the temperature gamma p / rho, in units of the reference temperature. `rho`, `p`: density and pressure in
    the scales of the case."""
    return gamma * p / rho


@dataclass(frozen=True)
class Gas:
    """The gas of a case. `gamma`: the ratio of specific heats. `scalars`: the names of the passive scalars in it."""

    gamma: float
    scalars: tuple[str, ...] = ()

    @classmethod
    def of(cls, case: Any) -> "Gas":
        """Return the gas of `case`: its ratio of specific heats and the names of its scalars."""
        return cls(case.gas.gamma, equations(case).scalars)

    def primitive(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Return the primitive variables rho, u, v, w, p and the scalars by name, each an array of shape (...). `q` (5
        + number of scalars, ...): the conservative variables rho, rho u, rho v, rho w, e and rho s of each scalar."""
        return primitive(self.gamma, q, self.scalars)
