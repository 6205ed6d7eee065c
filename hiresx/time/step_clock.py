"""The clock of kernels: the time and size of the current step, set by the host or by the device itself."""

from enum import IntEnum
from typing import Any

import numpy as np

from hiresx.device.interface import Backend


class DeviceClock(IntEnum):
    """Indexes of the entries of the device's clock (kernels/clock.h), in units of one double."""

    TIME = 0
    UNTIL = 1
    STATE = 2
    DT = 3
    STEPS = 4
    CFL = 5
    VISCOUS_CFL = 6
    FIXED = 7
    INVISCID = 8
    VISCOUS = 9
    UNDER_WAY = 10
    BEGAN = 11
    NEAR = 12
    EVERY = 13
    SAMPLE = 14
    AT_SAMPLE = 15
    BEGINS = 16
    ROOM = 17
    SLOT = 18
    SAMPLES = 19
    PASSED = 20


# The largest number of samples that the device takes before the host synchronizes. Their times and steps follow
# `PASSED`.
MOST_SAMPLES = 16


def new_clock() -> np.ndarray:
    """Return a device clock of zeros, a one-dimensional float64 array in the layout of `DeviceClock`, with space for
    the times of samples behind it."""
    return np.zeros(DeviceClock.PASSED + 2 * MOST_SAMPLES)


class StepClock:
    """The clock that kernels read: the time and the size of the current step. `array`: the device array of the clock,
    in the layout of `DeviceClock`."""

    def __init__(self, backend: Backend):
        self._backend = backend
        self.array: Any = backend.to_device(new_clock())
        self._known_values: tuple[float, float] | None = None

    def put(self, time: float, dt: float) -> None:
        """Set the current step on the device: it begins at `time` and has the size `dt`, both in L / c_ref."""
        if (time, dt) != self._known_values:
            clock = new_clock()
            clock[[DeviceClock.TIME, DeviceClock.DT]] = time, dt
            self.set(clock)
            self._known_values = time, dt

    def put_sample(self, time: float, dt: float, begins: float, slot: int) -> None:
        """Set the current step on the device, which begins at `time` and has the size `dt` (both in L / c_ref), and
        mark this time as the time of a sample. `slot`: the position at which the sample is stored. The sampling
        interval ends at this time; the next one starts at `begins`."""
        clock = new_clock()
        places = [DeviceClock.TIME, DeviceClock.DT, DeviceClock.BEGINS, DeviceClock.SLOT]
        clock[places] = time, dt, begins, slot
        clock[[DeviceClock.AT_SAMPLE, DeviceClock.SAMPLES]] = 1.0
        self.set(clock)

    def set_known(self, time: float, dt: float) -> None:
        """Record on the host that the clock on the device is at `time`, after a step of size `dt`, both in L /
        c_ref."""
        self._known_values = time, dt

    def set(self, clock: np.ndarray) -> None:
        """Copy `clock`, a one-dimensional float64 array in the layout of `DeviceClock`, to the device, before steps
        whose size the device chooses."""
        self._backend.copy(self.array, self._backend.to_device(clock))
        self._known_values = None
