"""The time step of the local blocks: from the case or from spectral radii, and its place on the device."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from hiresx.case import Case
from hiresx.device.interface import Call
from hiresx.equations import GAS_CONSERVED
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.state_cache import StateCache
from hiresx.time.reduction import FEW, Reduction, norm_reals
from hiresx.time.step_rule import largest_step, step_towards


class StepSize:
    """`state_cache`: of the current state, with its radii if computed. `reductions`: one per local block; the launches
    `calls` write their radii into `found`. `limits`: further launches for local time steps."""

    def __init__(self, case: Case, blocks: LocalBlocks, known: StateCache, limits: Sequence[Call]):
        self._case, self._blocks, self.state_cache = case, blocks, known
        backend, program = blocks.backend, blocks.program
        self._limit_steps = program.prepare(limits)
        self.found = backend.zeros((len(blocks.states), 2, FEW), blocks.configuration.real)
        # All norms lie one behind the other, so that they go to the host in one copy.
        ends = np.cumsum([0, *(norm_reals(s.size) for s in blocks.states)]).tolist()
        self._norms, self._norms_of = backend.zeros((ends[-1],), blocks.configuration.real), [*pairwise(ends)]
        self.reductions = [
            Reduction(backend, program, s, self.found[n], self._norms[a:b])
            for n, (s, (a, b)) in enumerate(zip(blocks.states, self._norms_of, strict=True))
        ]
        self.calls = [call for r in self.reductions for call in r.radii_calls(case.gas.reynolds)]
        self._launch = program.prepare(self.calls)
        # where in `found` the radii of each block lie (blocks, 2, FEW); those of blocks with fewer repeat the last
        few = np.array([reduction.few for reduction in self.reductions], dtype=int).reshape(-1, 1, 1)
        places = np.arange(2)[:, None] * few + np.minimum(np.arange(FEW), few - 1)
        self._places = places + 2 * FEW * np.arange(len(few)).reshape(-1, 1, 1)
        self._on_device: float | None = None

    @cached_property
    def _seek_norms(self) -> Callable[[], None]:
        return self._blocks.program.prepare([call for r in self.reductions for call in r.norm_calls()])

    def choose(self, factor: float, left: float, own: float | None = None) -> float:
        """Return the step towards a time that is `left` away. The step is at most `factor` times that of the case or,
        if it is given, of the step `own` that the integrator chose. Collective."""
        wanted = self.case_step(factor) if own is None else factor * own
        return min(wanted, left) if own is None and self._case.time.dt is not None else step_towards(left, wanted)

    def case_step(self, factor: float) -> float:
        """Return `factor` times the step of the case: fixed, or by its CFL numbers over all blocks of all ranks.
        Collective."""
        time = self._case.time
        if time.dt is not None:
            return factor * time.dt
        inviscid_radius, viscous_radius = map(
            float, self.radii() if self.state_cache.radii is None else self.state_cache.radii
        )
        assert time.cfl is not None  # or dt is given
        return largest_step(factor * time.cfl, factor * time.viscous_cfl, inviscid_radius, viscous_radius)

    def fill_local(self, factor: float) -> None:
        """Set the time step of every point to `factor` times its own."""
        time = self._case.time
        assert time.cfl is not None  # or there are no local steps
        self.fill_by(factor * time.cfl, factor * time.viscous_cfl)

    def fill_by(self, cfl: float, viscous_cfl: float) -> None:
        """Set the time step of every point by these CFL numbers."""
        for reduction in self.reductions:
            reduction.local_steps(self._case.gas.reynolds, cfl, viscous_cfl)
        self._limit_steps()

    def radii(self, launched: bool = False) -> np.ndarray:
        """Return the largest inviscid and viscous spectral radius of all blocks of all ranks. `launched`: whether
        `calls` were already made for the current state. Collective."""
        if not launched:
            self._launch()
        found = self._blocks.backend.to_host(self.found).reshape(-1)[self._places].astype(float)
        # a NaN stays a NaN in the maximum
        return self._blocks.comm.max(found.max(axis=(0, 2), initial=0.0))

    def put(self, dt: float) -> None:
        """Set the time step of kernels to `dt`, but where each point has its own."""
        if dt == self._on_device or self._blocks.layout.local_steps:
            return
        value = self._blocks.backend.to_device(np.full(1, dt, self._blocks.configuration.real))
        for state in self._blocks.states[:1]:  # all blocks have the same one
            self._blocks.backend.copy(state.dt, value)
        self._on_device = dt

    def forget(self) -> None:
        """Forget the step on the device, which has changed."""
        self._on_device = None

    def norms(self) -> tuple[np.ndarray, float, float]:
        """Return the root mean square of dq/dt over all points (5), the least density and the least pressure.
        Collective."""
        self._seek_norms()
        norms = self._blocks.backend.to_host(self._norms)
        found = [r.norms(norms[a:b]) for r, (a, b) in zip(self.reductions, self._norms_of, strict=True)]
        none = np.zeros(len(GAS_CONSERVED))
        sums = self._blocks.comm.sum(np.sum([none, *(f[0] for f in found)], axis=0))
        density, pressure = self._blocks.comm.min(np.min([[np.inf, np.inf], *(f[1:] for f in found)], axis=0))
        return np.sqrt(sums / self._blocks.decomposition.points), float(density), float(pressure)

    @property
    def bytes(self) -> int:
        """Memory of the reductions, in bytes."""
        return sum(r.bytes for r in self.reductions)
