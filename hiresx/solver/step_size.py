"""The time step of the local blocks: from the case or from spectral radii, and its place on the device."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from weakref import WeakKeyDictionary

import numpy as np

from hiresx.case import Case
from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.state_cache import StateCache
from hiresx.time.reduction import FEW, NORMS, Reduction
from hiresx.time.step_rule import largest_step, step_towards


class _Rows:
    """Results of reductions on the device, one row for each of at most `size` blocks. `found`, `norms`: the rows of the
    arguments `radii` and `norms` of `Reduction`. Solvers use them one after the other."""

    def __init__(self, backend: Backend, real: str, size: int):
        self.found = backend.zeros((size, 2, FEW), real)
        self.norms = backend.zeros((size, NORMS), real)
        # The next solver learns the rows of the blocks that stay; the memory of other blocks is free before.
        self._of: WeakKeyDictionary[BlockState, int] = WeakKeyDictionary()

    def assign(self, states: Sequence[BlockState]) -> list[int]:
        """Return the number of the row of each block. Blocks that had one keep it."""
        there = {state: self._of[state] for state in states if state in self._of}
        free = iter(sorted(set(range(len(self.found))).difference(there.values())))
        rows = [there[state] if state in there else next(free) for state in states]
        self._of = WeakKeyDictionary(zip(states, rows, strict=True))
        return rows

    def reduction(self, backend: Backend, program: Program, state: BlockState, row: int) -> Reduction:
        """Return the reductions of a block, with their results in a row."""
        return Reduction(backend, program, state, self.found[row], self.norms[row])


class StepSize:
    """The size of the time step. `state_cache`: data of the current state, with its spectral radii if computed.
    `reductions`: one for each local block; the launches `calls` write their spectral radii into the array `found`.
    `limits`: further launches for local time steps. `known`: the initial `state_cache`."""

    def __init__(self, case: Case, blocks: LocalBlocks, known: StateCache, limits: Sequence[Call]):
        self._case, self._blocks, self.state_cache = case, blocks, known
        backend, program = blocks.backend, blocks.program
        self._limit_steps = program.prepare(limits)
        # The launches for blocks that stay after a change of tiles write to the same rows as before.
        size = 1 << max(len(blocks.states) - 1, 0).bit_length()
        make = partial(_Rows, backend, blocks.configuration.real, size)
        results = blocks.kept(("rows of reductions", size), (), make)
        self._rows = results.assign(blocks.states)
        count = max(self._rows, default=-1) + 1
        self.found, self._norms = results.found[:count], results.norms[:count]
        self.reductions = [
            blocks.kept(
                ("reduction", id(results), row), (state,), partial(results.reduction, backend, program, state, row)
            )
            for state, row in zip(blocks.states, self._rows, strict=True)
        ]
        self.calls = [call for r in self.reductions for call in r.radii_calls(case.gas.reynolds)]
        self._launch = program.prepare(self.calls)
        # the positions in `found` of the radii of each block (blocks, 2, FEW); blocks with fewer radii repeat the last
        # one
        few = np.array([reduction.few for reduction in self.reductions], dtype=int).reshape(-1, 1, 1)
        places = np.arange(2)[:, None] * few + np.minimum(np.arange(FEW), few - 1)
        self._places = places + 2 * FEW * np.array(self._rows, int).reshape(-1, 1, 1)
        self._on_device: float | None = None

    @cached_property
    def _seek_norms(self) -> Callable[[], None]:
        return self._blocks.program.prepare([call for r in self.reductions for call in r.norm_calls])

    def choose(self, factor: float, left: float, own: float | None = None) -> float:
        """Return the size of the next time step, in L / c_ref. `left`: the time that remains until the step must end at
        the latest. `own`: the size that the time integrator asks for; None: the size that the case sets, by `time.dt`
        or the CFL numbers. `factor`: the number by which this size is multiplied: 1 or, after a failure of the run,
        less. All ranks must call this."""
        wanted = self.case_step(factor) if own is None else factor * own
        return min(wanted, left) if own is None and self._case.time.dt is not None else step_towards(left, wanted)

    def case_step(self, factor: float) -> float:
        """Return `factor` times the time step that the case sets, in L / c_ref: fixed, or by its CFL numbers over all
        blocks of all ranks. All ranks must call this."""
        time = self._case.time
        if time.dt is not None:
            return factor * time.dt
        inviscid_radius, viscous_radius = map(
            float, self.radii() if self.state_cache.radii is None else self.state_cache.radii
        )
        assert time.cfl is not None  # otherwise dt is given
        return largest_step(factor * time.cfl, factor * time.viscous_cfl, inviscid_radius, viscous_radius)

    def fill_local(self, factor: float) -> None:
        """Set the local time step of every node to `factor` times the step that the CFL numbers of the case allow
        there."""
        time = self._case.time
        assert time.cfl is not None  # otherwise there are no local steps
        self.fill_by(factor * time.cfl, factor * time.viscous_cfl)

    def fill_by(self, cfl: float, viscous_cfl: float, longest: float = math.inf) -> None:
        """Set the local time step of every node by the inviscid and the viscous CFL number `cfl` and `viscous_cfl`, but
        at most to `longest`, in L / c_ref."""
        for reduction in self.reductions:
            reduction.local_steps(self._case.gas.reynolds, cfl, viscous_cfl, longest)
        self._limit_steps()

    def radii(self, launched: bool = False) -> np.ndarray:
        """Return an array (2,) with the largest inviscid and the largest viscous spectral radius of all blocks of all
        ranks, in c_ref / L. `launched`: whether the kernels that compute them were already launched for the current
        state; otherwise they are launched. Waits for the device. All ranks must call this."""
        if not launched:
            self._launch()
        found = self._blocks.backend.to_host(self.found).reshape(-1)[self._places].astype(float)
        # a NaN stays a NaN in the maximum
        return self._blocks.comm.max(found.max(axis=(0, 2), initial=0.0))

    def put(self, dt: float) -> None:
        """Set the time step on the device to `dt` (in L / c_ref), unless each node has its own."""
        if dt == self._on_device or self._blocks.layout.local_steps:
            return
        for state in self._blocks.states[:1]:  # all blocks have the same step
            self._blocks.backend.write(state.dt, np.full(1, dt, self._blocks.configuration.real))
        self._on_device = dt

    def forget(self) -> None:
        """Discard the host's copy of the time step, because the device has changed the step."""
        self._on_device = None

    def seek_norms(self) -> None:
        """Launch the kernels that compute the norms of the right-hand side, and the copy of the norms to the host,
        behind time steps that the device still executes; the host does not wait. The method `norms` uses the result if
        it belongs to the current state."""
        self._seek_norms()
        self.state_cache.norms = self._blocks.backend.fetch(self._norms)

    def norms(self) -> tuple[np.ndarray, float, float]:
        """Return the root mean square of dq/dt over all nodes for each variable (5,), the least density and the least
        pressure. All ranks must call this."""
        if self.state_cache.norms is None:
            self._seek_norms()
            held = self._blocks.backend.to_host(self._norms)
        else:
            held = self.state_cache.norms()
        found = [reduction.norms(held[row]) for reduction, row in zip(self.reductions, self._rows, strict=True)]
        none = np.zeros(len(GAS_CONSERVED))
        sums = self._blocks.comm.sum(np.sum([none, *(f[0] for f in found)], axis=0))
        density, pressure = self._blocks.comm.min(np.min([[np.inf, np.inf], *(f[1:] for f in found)], axis=0))
        return np.sqrt(sums / self._blocks.decomposition.points), float(density), float(pressure)

    @property
    def few(self) -> np.ndarray:
        """How many partial maxima of the spectral radii the device stores for each row of the array `found` (rows, 2,
        FEW): int32 (rows,), at most FEW. It is 0 in rows that belong to no block."""
        few = np.zeros(len(self.found), np.int32)
        few[self._rows] = [reduction.few for reduction in self.reductions]
        return few

    @property
    def bytes(self) -> int:
        """Number of bytes on the device of the arrays for the computation of spectral radii and norms."""
        return sum(r.bytes for r in self.reductions)
