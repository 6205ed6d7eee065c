"""Recorded time steps: the launches of whole steps, with the step size chosen on the device, so that the host
synchronizes only from time to time."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from hiresx.device.interface import Call, Calls, Program
from hiresx.time.reduction import FEW
from hiresx.time.step_clock import MOST_SAMPLES, DeviceClock, StepClock, new_clock

# The largest number of steps launched before the host synchronizes.
STEPS = 32


class StepState(IntEnum):
    """The result of a sequence of recorded steps. GOING: all steps were made. ARRIVED: the last one ended at `until` or
    close to it. DEAD: the step after the last one led to a state with a density or pressure that is not positive.
    STUCK: the flow permits no step."""

    GOING = 0
    ARRIVED = 1
    DEAD = 2
    STUCK = 3


class StepOutcome:
    """The outcome of recorded steps. `state`: the reason for which they ended. `count`: the number of steps made.
    `time`: the time reached. `began`: the time at which the last step began. `dt`: the size of the last step. If
    `state` is DEAD, `dt` is the size of the failed step, and the integrator's first array besides the state contains
    the flow before it. `radii`: the spectral radii of the current state. `samples`: for each sample that the device
    took, the number of steps before it and its time. `clock`: a copy of the device's clock after the steps."""

    def __init__(self, clock: np.ndarray):
        self.state, self.count = StepState(int(clock[DeviceClock.STATE])), int(clock[DeviceClock.STEPS])
        self.time, self.began, self.dt = (
            float(clock[at]) for at in (DeviceClock.TIME, DeviceClock.BEGAN, DeviceClock.DT)
        )
        self.radii = clock[[DeviceClock.INVISCID, DeviceClock.VISCOUS]].copy()
        passed = clock[DeviceClock.PASSED :].reshape(-1, 2)[: int(clock[DeviceClock.SAMPLES])]
        self.samples = [(int(steps), float(time)) for time, steps in passed]


class Sampler(Protocol):
    """Interface of an object that receives samples which the device takes without the host."""

    @property
    def every(self) -> float:
        """Time between two samples, in L / c_ref."""

    @property
    def next(self) -> float:
        """Time of the next sample, in L / c_ref."""

    @property
    def room(self) -> int:
        """Number of further samples of the flow for which the device has memory."""

    @property
    def slot(self) -> int:
        """Index of the first free sample in the memory of the device."""

    def record_samples(self, samples: Sequence[tuple[int, float]]) -> None:
        """Tell this object which samples the device has taken. `samples`: for each the number of steps of the run up to
        it, and its time in L / c_ref."""


class StepRecording:
    """Recorded steps of one process. All blocks share the time step `dt`, an array (1,). `calls`: the launches of a
    whole step. `radii`: launches that write the spectral radii into `found` (blocks, 2, FEW): for each block the
    inviscid and then the viscous radii of its `few` threads, of which there are at most FEW. `clock`: the clock on the
    device."""

    def __init__(
        self,
        backend: Any,
        program: Program,
        calls: Calls,
        radii: Sequence[Call],
        found: Any,
        few: np.ndarray,
        dt: Any,
        clock: StepClock,
    ):
        self._backend, self._dt, self._clock = backend, dt, clock
        counts = backend.to_device(few)

        def choose(last: bool) -> Call:
            return program.call(
                "choose_step", (1, 1, 1), blocks=len(few), few=counts, radii=found, last=int(last),
                clock=clock.array, dt=dt,
            )  # fmt: skip

        assert found.shape[1:] == (2, FEW)
        self._choose, self._close = program.prepare([choose(False)]), program.prepare([choose(True)])
        # The device skips steps that must not be made.
        self._step = program.prepare([*calls, *radii], guard=dt)
        self._fixed_step = program.prepare(calls, guard=dt)
        self._radii = program.prepare(radii)

    def __call__(
        self,
        count: int,
        time: float,
        until: float,
        fixed: float | None,
        cfl: float,
        viscous_cfl: float,
        known: bool,
        sampler: Sampler | None,
    ) -> Callable[[], StepOutcome]:
        """Launch `count` steps from `time`, none past `until`, of `fixed` size or by these limits. `known`: whether
        `found` contains the radii of the current state. Steps end at the samples of `sampler`, but continue after them.
        The returned function waits for the device to complete the steps."""
        clock = new_clock()
        clock[[DeviceClock.TIME, DeviceClock.BEGAN, DeviceClock.UNTIL]] = time, time, until
        clock[[DeviceClock.CFL, DeviceClock.VISCOUS_CFL, DeviceClock.FIXED]] = cfl, viscous_cfl, fixed or 0.0
        if sampler is not None:
            places = [DeviceClock.EVERY, DeviceClock.SAMPLE, DeviceClock.ROOM, DeviceClock.SLOT]
            clock[places] = sampler.every, sampler.next, min(sampler.room, MOST_SAMPLES), sampler.slot
        self._clock.set(clock)
        if fixed is None and not known:
            self._radii()
        step = self._step if fixed is None else self._fixed_step
        for _ in range(count):
            self._choose()
            step()
        self._close()
        wait = self._backend.fetch(self._clock.array)

        def complete() -> StepOutcome:
            taken = StepOutcome(wait())
            self._clock.set_known(taken.time, taken.dt)
            return taken

        return complete
