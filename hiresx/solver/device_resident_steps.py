"""Device-resident steps: recorded steps that a device takes without the host, which synchronizes from time to time."""

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.device.dependency_graph import RecordingProgram
from hiresx.device.interface import Call
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.conditions import Conditions
from hiresx.solver.flow_system import FlowSystem
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.step_size import StepSize
from hiresx.time.integrator import Integrator
from hiresx.time.step_recording import Sampler, StepOutcome, StepRecording

# Spare steps are launched for the case that the step size shrinks by up to this factor.
SPARE = 1.02


class DeviceResidentSteps:
    """Time steps that are recorded once and then executed by the device without the host. `integrator`: the time
    integrator. `system`: the flow system, whose tasks (functions that launch kernels) make up a step. `size`: the
    choice of the size of the step. `blocks`, `ghosts`, `conditions`: the blocks of this rank, the exchanges of their
    ghosts, and their boundary conditions."""

    def __init__(
        self,
        case: Case,
        blocks: LocalBlocks,
        ghosts: Ghosts,
        conditions: Conditions,
        size: StepSize,
        system: FlowSystem,
        integrator: Integrator,
    ):
        self._case, self._blocks, self._conditions, self._size = case, blocks, conditions, size
        self._system, self._integrator = system, integrator
        self._ghosts, self._halo = ghosts, ghosts.halo
        self._agreed: bool | None = None
        self._radii: np.ndarray | None = None  # of the state at the end of recorded steps
        self._recorded: dict[bool, StepRecording] = {}  # by whether the halo exchange overlaps with computation
        self._beside: list[Callable[[], None]] = []  # work of the host during the next steps of the device
        self._ahead: Callable[[], None] | None = None  # launches that read the state after the next steps
        self._failed: Exception | None = None
        self.sampler: Sampler | None = None

    @property
    def possible(self) -> bool:
        """Whether the device can take steps without the host: no part of a step needs the host, and a failed step can
        be undone. Collective if the device can exchange data with other ranks. The host is needed
        - for ranks with which the device cannot exchange data, or that have no points;
        - for profiles that change in time, poles, local time steps, time integrators that iterate, and a filter that is
          not applied in every step;
        - for an entropic pressure. It is computed by sweeps that start from the result of the previous ones. After a
          failed step the device skips the remaining steps, but would still run their sweeps, which change it."""
        b, program = self._blocks, self._blocks.program
        if b.comm.size > 1 and self._halo.memory is None:
            return False
        device = isinstance(program, RecordingProgram) and "choose_step" in program.signatures
        steady = not self._case.time.local and self._conditions.steady and self._system.steps_alike
        alone = b.comm.size == 1 or not (self._ghosts.patched.any or self._ghosts.mirrored.between_ranks)
        here = bool(b.states) and device and alone and steady
        here = (
            here
            and self._integrator.keeps_start
            and not (self._integrator.iterates or b.layout.has("entropic_pressure"))
        )
        if b.comm.size == 1:
            return here
        if self._agreed is None:
            # Agreed once: at the first step, profiles that never change have been detected.
            self._agreed = bool(b.comm.min([float(here)])[0])
        return self._agreed

    def forget(self) -> None:
        """Discard the recorded steps, because the launches of a step have changed. The next steps are recorded anew."""
        self._recorded.clear()

    def beside(self, work: Callable[[], None]) -> None:
        """Run the function `work` on the host during the next time steps that the device makes, or at once if the host
        makes the steps."""
        if self.possible:
            self._beside.append(work)
        else:
            work()

    def take_samples_of(self, sampler: Sampler) -> Callable[[], None] | None:
        """Let the device take the samples of `sampler` between steps, and return a function that stops this. Return
        None, and change nothing, if the host makes the steps, or if the device already takes the samples of another
        sampler."""
        if not self.possible or self.sampler is not None:
            return None
        self.sampler = sampler

        def end() -> None:
            self.sampler = None

        return end

    def ahead(self, launch: Callable[[], None]) -> None:
        """Register the function `launch`, which launches kernels on the state after the next recorded steps. It is
        called once, when these steps have been launched and before the host waits for them, so that the device is not
        idle in between. The kernels must not change data on which the flow depends. If a step fails, `seen_ahead` is
        false afterwards, and the results of the kernels must be discarded. The device may make fewer steps than were
        launched."""
        self._ahead = launch

    @property
    def seen_ahead(self) -> bool:
        """Whether the kernels that the function passed to `ahead` launched have read the current state."""
        return self._size.state_cache.seen_ahead

    def __call__(self, count: int, time: float, until: float, factor: float) -> Callable[[], StepOutcome]:
        """Launch `count` steps from `time`, or as many as lead to `until`, of `factor` times the step of the case. The
        returned function waits for the device to complete them."""
        recorded = self._recorded.get(self._ghosts.overlap)
        if recorded is None:
            recorded = self._recorded[self._ghosts.overlap] = self._record()
        spec, size = self._case.time, self._size
        fixed = None if spec.dt is None else factor * spec.dt
        limits = (0.0, 0.0) if fixed else (factor * (spec.cfl or 0.0), factor * spec.viscous_cfl)
        if fixed is not None or self._has_radii:
            # The device skips steps after `until`, but their launches still take time.
            wanted, left = size.case_step(factor), until - time
            if 0 < left < count * wanted:
                samples = 0.0 if self.sampler is None else left / self.sampler.every
                count = min(count, math.ceil(SPARE * left / wanted + samples))
        self._halo.assume_started()
        wait = recorded(count, time, until, fixed, *limits, self._has_radii, self.sampler)

        def complete() -> StepOutcome:
            cache = size.state_cache
            cache.invalidate_radii()
            self._work_ahead()
            taken = wait()
            size.forget()
            cache.radii = self._radii = taken.radii if fixed is None else None
            # Of a step that failed the solver discards this when it takes back the state.
            cache.seen_ahead = True
            return taken

        return complete

    def _work_ahead(self) -> None:
        launch, self._ahead = self._ahead, None
        try:
            if launch is not None:
                launch()
            while self._beside:
                self._beside.pop(0)()
        except Exception as error:
            self._failed = error

    def raise_failed(self) -> None:
        """Raise the error of a function given to `beside` that failed on the host during the last steps; do nothing if
        there is none. The steps themselves are complete."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    @property
    def _has_radii(self) -> bool:
        """True if the device has the radii of the current state, of all ranks."""
        known = self._size.state_cache.radii
        return known is not None and (self._halo.memory is None or known is self._radii)

    def _record(self) -> StepRecording:
        b = self._blocks
        assert isinstance(b.program, RecordingProgram)  # otherwise such steps would not be possible
        self._halo.assume_started()
        calls = self._system.launches()
        return StepRecording(b.backend, b.program, calls, *self._radii_found, b.states[0].dt, self._conditions.clock)

    @cached_property
    def _radii_found(self) -> tuple[list[Call], Any, np.ndarray]:
        """Return `radii`, `found` and `few` of `StepRecording`. All recordings share them: one continues with the radii
        that another one left."""
        size = self._size
        few = size.few
        if self._halo.memory is None:
            return list(size.calls), size.found, few
        calls, found, few = self._halo.memory.radii(size.found, few)
        return [*size.calls, *calls], found, few
