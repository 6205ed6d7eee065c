"""Whole time steps as one list of launches, with the step chosen on the device, so that the host looks now and then."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from hiresx.device.interface import Call, Calls, Program
from hiresx.time.reduction import FEW
from hiresx.time.step_clock import MOST_SAMPLES, DeviceClock, StepClock, new_clock

# Steps launched at most before the host looks.
STEPS = 32


class StepState(IntEnum):
    """How it stands with the steps: all taken; the last one ended at `until` or close to it; the flow did not survive
    the one after the last; it allows none."""

    GOING = 0
    ARRIVED = 1
    DEAD = 2
    STUCK = 3


class StepOutcome:
    """What came of steps: `count` of them, the `time` they reached and where the last of them `began`, `dt` of the last
    or, `DEAD`, of the one that failed, whose first state is in q0; `radii` of the state as it is; `samples` that the
    device came to by itself: how many steps were taken before each, and its time."""

    def __init__(self, clock: np.ndarray):
        self.state, self.count = StepState(int(clock[DeviceClock.STATE])), int(clock[DeviceClock.STEPS])
        self.time, self.began, self.dt = (
            float(clock[at]) for at in (DeviceClock.TIME, DeviceClock.BEGAN, DeviceClock.DT)
        )
        self.radii = clock[[DeviceClock.INVISCID, DeviceClock.VISCOUS]].copy()
        passed = clock[DeviceClock.PASSED :].reshape(-1, 2)[: int(clock[DeviceClock.SAMPLES])]
        self.samples = [(int(steps), float(time)) for time, steps in passed]


class Sampler(Protocol):
    """Who takes samples that the device comes to by itself: `every` so much time, the `next` one at that time; there is
    `room` for so many, the first of them in the place `slot`."""

    @property
    def every(self) -> float: ...
    @property
    def next(self) -> float: ...
    @property
    def room(self) -> int: ...
    @property
    def slot(self) -> int: ...
    def record_samples(self, samples: Sequence[tuple[int, float]]) -> None:
        """These were taken, after so many steps of the run and at these times."""


class StepRecording:
    """Steps of `calls`, the launches of a whole one, of one process whose blocks share `dt` (1), by `clock`.

    `radii`: launches that bring the spectral radii into `found` (blocks, 2, FEW), of each block its `few` threads'.
    """

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
        # The device leaves steps out that are not to be taken.
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
        beside: Callable[[], None],
        sampler: Sampler | None,
    ) -> StepOutcome:
        """`count` steps from `time` on, none past `until`: of `fixed` size, or by these limits. `known`: whether the
        radii of the state are in `found`. Waits for the device once, and does `beside` before it waits. Steps do not
        pass the samples of `sampler` either, but go on behind them."""
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
        beside()
        taken = StepOutcome(self._backend.to_host(self._clock.array))
        self._clock.set_known(taken.time, taken.dt)
        return taken
