"""Sums of waves of given frequencies, which a function of a case returns and the device evaluates at any time."""

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hiresx.base.arrays import check_reals
from hiresx.errors import HiresxError

Shape: TypeAlias = tuple[int, ...]


def _refused(what: str) -> HiresxError:
    return HiresxError(
        f"Waves: {what}", "give a mean, M frequencies, and for cos and sin one number or M numbers or arrays"
    )


class Waves:
    """A quantity on a face as a sum of waves,

        q(x, t) = mean(x) + sum over m of cos_m(x) cos(2 pi f_m t) + sin_m(x) sin(2 pi f_m t).

    A function of a `[[boundary]]` table with `steady = false` may return it in place of an array, for any of rho, u, v,
    w and p, or for a passive scalar. The function is then called once, and the device computes the sums.

    `mean`: a number or an array that broadcasts to the shape of x. `frequency`: the M >= 0 numbers f_m in c_ref / L (t
    is in L / c_ref), in any order. `cos`, `sin`: M amplitudes, each a number or an array that broadcasts to the shape
    of x; or one number for all of them. Raises HiresxError for another number of amplitudes, for masked entries and for
    frequencies that are not finite.
    """

    def __init__(
        self,
        mean: ArrayLike,
        frequency: ArrayLike,
        cos: Sequence[ArrayLike] | np.ndarray | float = 0.0,
        sin: Sequence[ArrayLike] | np.ndarray | float = 0.0,
    ):
        for name, given in (("mean", [mean]), ("frequency", [frequency]), ("cos", cos), ("sin", sin)):
            parts = given if isinstance(given, list | tuple) else [given]
            try:
                for part in parts:
                    check_reals(part)
            except ValueError as error:
                raise _refused(f"{name}: {error}") from None
        self.mean = np.asarray(mean, float)
        self.frequency = np.array(frequency, float)
        if self.frequency.ndim != 1 or not np.isfinite(self.frequency).all():
            raise _refused(f"frequency: needs a list of finite numbers, got {frequency!r:.60}")
        self.cos, self.sin = self._amplitudes("cos", cos), self._amplitudes("sin", sin)

    def _amplitudes(self, name: str, given: Any) -> list[np.ndarray]:
        found = list(given) if np.iterable(given) else [given] * self.frequency.size
        if len(found) != self.frequency.size:
            raise _refused(f"{name}: needs {self.frequency.size} amplitudes, one of each frequency, got {len(found)}")
        return [np.asarray(amplitude, float) for amplitude in found]

    def on(self, shape: Shape) -> Self:
        """Return this sum of waves with mean and amplitudes broadcast to the array shape `shape`. Raises ValueError if
        that is not possible."""
        cos, sin = ([np.broadcast_to(a, shape) for a in of] for of in (self.cos, self.sin))
        return type(self)(np.broadcast_to(self.mean, shape), self.frequency, cos, sin)

    @property
    def amplitudes(self) -> list[np.ndarray]:
        """The M amplitudes of the cosines, then the M amplitudes of the sines, each an array that broadcasts to the
        shape of the points x."""
        return [*self.cos, *self.sin]

    def at(self, t: float) -> np.ndarray:
        """Return the quantity at the time t (in L / c_ref), an array of the shape to which mean and amplitudes
        broadcast. Terms are added in a fixed order, so that the value at a point does not depend on which other points
        are computed."""
        turns = self.frequency * t
        angle = 2 * np.pi * (turns - np.rint(turns))
        found: np.ndarray = np.zeros(np.broadcast_shapes(self.mean.shape, *(a.shape for a in self.amplitudes)))
        for amplitude, weight in zip(self.amplitudes, [*np.cos(angle), *np.sin(angle)], strict=True):
            found += amplitude * weight
        found += self.mean
        return found

    def least(self) -> np.ndarray:
        """Return a lower bound of the quantity over all times, an array over the points x: the mean minus the
        amplitudes of all waves."""
        swings = [np.hypot(c, s) for c, s in zip(self.cos, self.sin, strict=True)]
        return np.asarray(self.mean - sum(swings), float)

    def same_as(self, other: object) -> bool:
        """Return whether `other` is a sum of waves with exactly the same mean, frequencies and amplitudes."""
        if not isinstance(other, Waves) or self.frequency.size != other.frequency.size:
            return False
        own, others = ((w.mean, w.frequency, *w.amplitudes) for w in (self, other))
        return all(np.array_equal(a, b) for a, b in zip(own, others, strict=True))


# A quantity at places of one shape.
Quantity: TypeAlias = np.ndarray | Waves


def swings(values: Sequence[Quantity]) -> bool:
    """Return whether any of the quantities `values` is a `Waves` (a sum of waves in time), and so depends on time."""
    return any(isinstance(value, Waves) for value in values)


def at(values: Sequence[Quantity], t: float) -> list[np.ndarray]:
    """Return the quantities `values` at the time t (in L / c_ref) as arrays. A `Waves` (a sum of waves in time) is
    evaluated, an array is returned unchanged."""
    return [value.at(t) if isinstance(value, Waves) else value for value in values]
