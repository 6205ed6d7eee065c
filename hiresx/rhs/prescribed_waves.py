"""Prescribed values that are sums of waves (`hiresx.case.wave_sums`), which the device evaluates at each time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hiresx.case.wave_sums import Quantity, Waves, at, swings
from hiresx.device.interface import Backend
from hiresx.errors import HiresxError

# A second time, in L / c_ref, at which a function that returns waves is evaluated: it must return the same waves.
OTHER_TIME = 0.37


class FaceWaves:
    """Prescribed values at a face that are sums of waves. `values`: arrays or waves of one shape, which are the
    primitive variables of a gas or one passive scalar. `target`: the device array of their result, the conservative
    state (5, ...) or the scalar. Nodes without waves are not changed in `target` and need no memory. If there are M
    frequencies in all, each of the other nodes needs 2 M reals for each quantity that has waves, and 5 reals (1 for a
    scalar) for the mean."""

    def __init__(self, backend: Backend, values: Sequence[Quantity], target: Any):
        waves = {n: value for n, value in enumerate(values) if isinstance(value, Waves)}
        frequencies = list(dict.fromkeys(float(f) for value in waves.values() for f in value.frequency))
        shape = target.shape[1:] if len(values) > 1 else target.shape
        amplitudes = np.zeros((len(waves), 2, len(frequencies), *shape))
        for of_value, value in zip(amplitudes, waves.values(), strict=True):
            for f, cos, sin in zip(value.frequency, value.cos, value.sin, strict=True):
                m = frequencies.index(float(f))
                of_value[0, m] += cos
                of_value[1, m] += sin
        moved = np.flatnonzero(amplitudes.any(axis=(0, 1, 2)))
        self.points, self.frequencies = int(moved.size), len(frequencies)
        self._target, self._waving = target, sum(1 << n for n in waves)
        if not self.points:
            return
        mean = np.stack([v.mean if isinstance(v, Waves) else v for v in values])
        real = target.dtype
        self._at = backend.to_device(moved.astype(np.int32))
        self._mean = backend.to_device(_rows(mean, moved, 1).astype(real))
        self._amplitudes = backend.to_device(_rows(amplitudes, moved, 3).astype(real))
        self._frequency = backend.to_device(np.array(frequencies))
        self._weights = backend.zeros((2 * len(frequencies),), str(real))

    def launch(self, launch: Callable[..., None], clock: Any, share: float) -> None:
        """Compute the prescribed values, mean plus waves, at the nodes with waves of this face, and write them to the
        array `target` of the constructor, from which the boundary condition reads them. `launch`: the function that
        launches a kernel (`Program.launch`). `clock`: a device array with the time at the start of the step and the
        size of the step; the waves are those of that time plus the fraction `share` of the size."""
        launch(
            "wave_weights", (self.frequencies, 1, 1), frequencies=self.frequencies, share=share,
            frequency=self._frequency, clock=clock, weights=self._weights,
        )  # fmt: skip
        own = {
            "points": self.points, "terms": 2 * self.frequencies, "at": self._at, "mean": self._mean,
            "amplitudes": self._amplitudes, "weights": self._weights, "target": self._target,
        }  # fmt: skip
        if len(self._mean) == 1:
            launch("scalar_waves", (self.points, 1, 1), **own)
        else:
            apart = int(np.prod(self._target.shape[1:]))
            launch("gas_waves", (self.points, 1, 1), **own, waving=self._waving, apart=apart)


def _rows(values: np.ndarray, moved: np.ndarray, leading: int) -> np.ndarray:
    """Convert (..., all places) to (..., places with waves), contiguous in memory."""
    rows = values.reshape(*values.shape[:leading], -1)[..., moved]
    return np.ascontiguousarray(rows)


class InTime:
    """Values at `places` of a function f(x, y, z, t) of the case that may depend on the time. `known`: whether the
    function need not be called again, because it is `steady` or it returned waves. `fixed`: whether the values are
    constant in time. `where`: the name of the boundary for messages."""

    def __init__(
        self,
        function: Callable[..., Sequence[Quantity]],
        places: Sequence[np.ndarray],
        steady: bool,
        where: str = "a boundary",
    ):
        self._function, self._places, self._steady, self._where = function, places, steady, where
        self._waves: Sequence[Quantity] | None = None
        self.known = False
        self.fixed = steady

    @classmethod
    def together(cls, several: Sequence["InTime"]) -> "InTime":
        """Return one object that evaluates the function at the points of all objects in `several`, flattened and
        concatenated in this order. All objects must have the same function."""
        first = several[0]
        places = [np.concatenate([np.ravel(one._places[d]) for one in several]) for d in range(len(first._places))]
        return cls(first._function, places, first._steady, first._where)

    def values(self, t: float) -> list[np.ndarray]:
        """Return the values of the function at time `t` (in L / c_ref), a list with an array for each quantity that it
        returns. The arrays broadcast to the shape of the coordinates of the points."""
        if self._waves is not None:
            return at(self._waves, t)
        found = self._function(*self._places, t)
        if not self._steady and swings(found):
            self._check(found, t)
            self._waves = found
            self.fixed = not any(isinstance(value, Waves) and value.frequency.size for value in found)
        self.known = self._steady or self._waves is not None
        return at(found, t)

    def on_device(self, backend: Backend, target: Any) -> FaceWaves | None:
        """Return an object that computes the values on the device and writes them to the device array `target` at any
        time; None if the function has not returned waves, if its values are constant in time, or if there are no
        points. The copy of the waves in host memory is freed."""
        if self._waves is None or self.fixed:
            return None
        found, self._waves = FaceWaves(backend, self._waves, target), None
        return found if found.points else None

    def _check(self, found: Sequence[Quantity], t: float) -> None:
        for a, b in zip(found, self._function(*self._places, t + OTHER_TIME), strict=True):
            same = a.same_as(b) if isinstance(a, Waves) else not isinstance(b, Waves) and np.array_equal(a, b)
            if not same:
                raise HiresxError(
                    f"the function of {self._where} gives waves, but others at another time",
                    "let mean, frequencies and amplitudes depend on the place alone, and give arrays where they cannot",
                )
