"""Thermodynamics of the calorically perfect gas on the host, in the scales of the solver: T = gamma p / rho."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from hiresx.base.arrays import Reals
from hiresx.equations.system import GAS_CONSERVED, GAS_PRIMITIVE, equations

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
    return dict(LazyPrimitives(gamma, q.__getitem__, scalars))


class LazyPrimitives(Mapping[str, np.ndarray]):
    """The primitive variables rho, u, v, w, p and the `scalars` by name, arrays of one shape. Each is computed when it
    is first read, and stored. `row(n)`: a function that returns conserved variable number `n` of rho, rho u, rho v, rho
    w, e and rho s of each scalar. It is called at most once for each n: a velocity or a scalar needs rho and its own
    conserved variable, and p needs all variables of the gas. `gamma`: ratio of specific heats. Raises KeyError for
    another name."""

    def __init__(self, gamma: float, row: Callable[[int], np.ndarray], scalars: Sequence[str] = ()):
        self._gamma, self._row = gamma, row
        self._rows = {name: n for n, name in enumerate((*GAS_PRIMITIVE, *scalars))}
        self._found: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._found:
            self._found[name] = self._compute(name, self._row(self._rows[name]))
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _compute(self, name: str, conserved: np.ndarray) -> np.ndarray:
        if name == "rho":
            return conserved
        rho = self["rho"]
        if name != "p":
            return conserved / rho
        u, v, w = self["u"], self["v"], self["w"]
        return (self._gamma - 1) * (conserved - 0.5 * rho * (u * u + v * v + w * w))


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
