"""The local blocks: the parts of the grid that this rank computes, with their fields on its device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Domain
from hiresx.decomposition.held_arrays import Later, Piece
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED, equations
from hiresx.equations.gas import Gas, conservative
from hiresx.grid.blocks import Range
from hiresx.rhs.metrics import compute_metrics
from hiresx.solver.choices import check_reference, configuration


class LocalBlocks:
    """Kernels, fields and metrics of the parts that `domain` gives this rank: `states`, one of each, in which the part
    `index` of all ranks is number `place[index]`. `extended`: their coordinates with ghosts, by index. `work`: reals of
    work memory per padded point; `registers`: of the time integrator. Collective; raises HiresxError as
    `hiresx.solver.Solver`.
    """

    def __init__(self, case: Case, backend: Backend, domain: Domain, work: int, registers: int):
        self.backend, self.comm, self.gas = backend, domain.comm, Gas.of(case)
        self.decomposition, self.cut = domain.whole, domain.cut
        self.configuration = configuration(case)
        check_reference(self.configuration, self.cut)
        self.program = self._compiled()
        system, storage = equations(case), self.configuration.storage
        names = [block.name for block in domain.grid.blocks]
        with self.comm.together():
            self.states = [
                BlockState(
                    backend,
                    self.cut,
                    n,
                    names[self.cut.parts[n].whole],
                    storage,
                    work,
                    case.time.local,
                    *(registers, system, self.configuration.reference),
                )
                for n in domain.mine
            ]
            for state in self.states[1:] if not case.time.local else ():
                state.dt = self.states[0].dt  # one for all
            self.extended = {s.index: domain.coordinates(s.part) for s in self.states}
            for state in self.states:
                compute_metrics(backend, self.program, state, self.extended[state.index], self.cut.patches)
        self.place = {state.index: n for n, state in enumerate(self.states)}

    def _compiled(self) -> Program:
        """The kernels. One rank of each host compiles them, the others then find them in the cache."""
        program: Program | None = None
        for turn in (True, False):
            with self.comm.together():
                if self.comm.local.root == turn:
                    program = self.backend.compile(self.configuration)
        assert program is not None  # compiled in one of the turns
        return program

    def set_state(
        self, n: int, rho: Any, u: Any, v: Any, w: Any, p: Any, scalars: Mapping[str, Any] | None = None
    ) -> None:
        """Set the nodes of `states[n]` from primitive arrays broadcastable to its (nk, nj, ni). Passive `scalars` that
        are not named keep their values."""
        shape, scalars = self.states[n].block.x.shape, scalars or {}
        kept = self.primitives(n) if any(name not in scalars for name in self.gas.scalars) else {}
        carried = [scalars.get(name, kept.get(name)) for name in self.gas.scalars]
        values = [np.broadcast_to(np.asarray(a, float), shape) for a in (rho, u, v, w, p, *carried)]
        state = self.states[n]
        self._put(state, *state.kept(np.stack(conservative(self.gas.gamma, *values))))

    def primitives(self, n: int) -> dict[str, np.ndarray]:
        """rho, u, v, w, p and the passive scalars of `states[n]`, float64 (nk, nj, ni)."""
        state = self.states[n]
        q = state.numbers(self._held(state.q, state))
        if state.carry is not None:
            q += self._held(state.carry, state)
        return self.gas.primitive(q)

    def pieces(self) -> Iterator[Piece]:
        """Of each part its conservative state (n, nk, nj, ni) as a piece of q.<whole block>, as the run's precision
        keeps it, and what that carries along as one of carry.<whole block>."""
        for state in self.states:
            shape = (len(state.q), *reversed(state.size))
            for name, array in _arrays(state).items():
                piece = Later(shape, array.dtype, partial(self._held, array, state))
                yield Piece(f"{name}.{state.part.whole}", state.part.box, piece)

    def read(self, read: Callable[[str, Range], np.ndarray]) -> list[dict[str, np.ndarray]]:
        """What was in pieces, for `take`. Raises ValueError for an array of another shape or type."""
        found = []
        for state in self.states:
            shape = (len(state.q), *reversed(state.size))
            arrays = {name: read(f"{name}.{state.part.whole}", state.part.box) for name in _arrays(state)}
            for name, values in arrays.items():
                if values.shape != shape or values.dtype != state.q.dtype:
                    raise ValueError(f"{name} is {values.dtype} {values.shape}, not {state.q.dtype} {shape}")
            found.append(arrays)
        return found

    def take(self, found: Sequence[dict[str, np.ndarray]]) -> None:
        """The states that were in pieces."""
        for state, arrays in zip(self.states, found, strict=True):
            self._put(state, **arrays)

    def alive_before(self) -> bool:
        """Whether the state with which the last step began was one."""
        alive = True
        for state in self.states:
            q0 = state.interior(self.backend.to_host(state.q0))
            rho, *momentum, e = (state.numbers(q0) if state.storage.carries else q0)[: len(GAS_CONSERVED)]
            with np.errstate(all="ignore"):
                alive = alive and bool((rho > 0).all() and (e - sum(m * m for m in momentum) / (2 * rho) > 0).all())
        return alive

    def back(self) -> None:
        """The nodes as they were when the last step began, but for what a precision carries along."""
        for state in self.states:
            self._put(state, state.interior(self.backend.to_host(state.q0)))

    def _held(self, array: Any, state: BlockState) -> np.ndarray:
        return np.ascontiguousarray(state.interior(self.backend.to_host(array)))

    def _put(self, state: BlockState, q: np.ndarray, carry: np.ndarray | float = 0.0) -> None:
        for name, array in _arrays(state).items():
            padded = self.backend.to_host(array)
            state.interior(padded)[...] = {"q": q, "carry": carry}[name]
            self.backend.copy(array, self.backend.to_device(padded))


def _arrays(state: BlockState) -> dict[str, Any]:
    """What of a block goes from one step to the next."""
    return {"q": state.q} | ({} if state.carry is None else {"carry": state.carry})
