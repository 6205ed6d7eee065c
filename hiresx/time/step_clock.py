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
    """Return a host array of zeros with the layout of the clock on the device: float64, first the entries that
    `DeviceClock` numbers, then space for the times of samples."""
    return np.zeros(DeviceClock.PASSED + 2 * MOST_SAMPLES)


class StepClock:
    """The clock that kernels read: the time and the size of the current step. `array`: the device array of the clock,
    in the layout of `DeviceClock`."""

    def __init__(self, backend: Backend):
        self._backend = backend
        self.array: Any = backend.to_device(new_clock())
        self._known_values: tuple[float, float] | None = None

    def put(self, time: float, dt: float) -> None:
        """Write the current step to the clock on the device: it begins at `time` and has the size `dt`, both in L /
        c_ref."""
        if (time, dt) != self._known_values:
            clock = new_clock()
            clock[[DeviceClock.TIME, DeviceClock.DT]] = time, dt
            self.set(clock)
            self._known_values = time, dt

    def put_sample(self, time: float, dt: float, begins: float, slot: int) -> None:
        """Write the step that has just ended at `time` to the clock on the device, with its size `dt`, and mark that a
        sample is taken at this time. `begins`: the time at which the sampling interval after it starts. `slot`: the
        index at which the device stores the sample. Times are in L / c_ref."""
        clock = new_clock()
        places = [DeviceClock.TIME, DeviceClock.DT, DeviceClock.BEGINS, DeviceClock.SLOT]
        clock[places] = time, dt, begins, slot
        clock[[DeviceClock.AT_SAMPLE, DeviceClock.SAMPLES]] = 1.0
        self.set(clock)

    def set_known(self, time: float, dt: float) -> None:
        """Tell this object, without a copy, that the clock on the device already contains the start `time` and the size
        `dt` of a step, both in L / c_ref."""
        self._known_values = time, dt

    def set(self, clock: np.ndarray) -> None:
        """Copy the host array `clock`, in the layout of `new_clock`, to the clock on the device."""
        self._backend.write(self.array, clock)
        self._known_values = None
