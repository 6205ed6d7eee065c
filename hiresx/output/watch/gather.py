"""Some nodes of the flow on the host, wherever the blocks lie and whoever computes them."""

import numpy as np

from hiresx.equations import equations
from hiresx.equations.gas import Gas
from hiresx.solver import Solver


class Take:
    """The state at nodes of this rank's parts, given by `states` (n,), indexes in `solver.states`, and their `places`
    (n,) in the padded arrays of these. Only these nodes are copied from the device, every one once."""

    def __init__(self, solver: Solver, states: np.ndarray, places: np.ndarray):
        self._backend, self._gas = solver.backend, Gas.of(solver.case)
        self._variables = equations(solver.case).variables
        self._parts = []
        self._order = np.empty(len(states), dtype=np.int64)
        start = 0
        for n in np.unique(states):
            here = states == n
            unique, inverse = np.unique(places[here], return_inverse=True)
            q = solver.states[n].q
            state = solver.states[n]
            self._parts.append((state, q.reshape(q.shape[0], -1), self._backend.to_device(unique.astype(np.int64))))
            self._order[here] = start + inverse
            start += len(unique)

    def __call__(self) -> dict[str, np.ndarray]:
        """rho, u, v, w, p and scalars of the nodes, float64 (n,), in the order in which they were given."""
        parts = [state.numbers(self._backend.to_host(q.take(places, axis=1))) for state, q, places in self._parts]
        q = np.concatenate(parts or [np.empty((self._variables, 0))], axis=1)
        return {name: values[self._order] for name, values in self._gas.primitive(q).items()}


class Gather:
    """The flow at nodes of whole blocks, on all ranks: each copies those of its own parts. Collective."""

    def __init__(self, solver: Solver, blocks: np.ndarray, nodes: np.ndarray):
        """`blocks` (n,) and `nodes` (3, n), index triples (i, j, k) in these."""
        self._comm = solver.comm
        sizes = np.array([block.size for block in solver.decomposition.blocks], dtype=np.int64)
        start = np.cumsum([0, *sizes.prod(axis=1)])
        (ni, nj, _), (i, j, k) = sizes[blocks].T, nodes
        _, first, inverse = np.unique(start[blocks] + (k * nj + j) * ni + i, return_index=True, return_inverse=True)
        states, places = _own(solver, blocks[first], nodes[:, first])
        mine = np.flatnonzero(states >= 0)
        self._take = Take(solver, states[mine], places[mine])
        # the nodes of rank 0, then those of rank 1, ...
        by_rank = self._comm.allgather(mine)
        self._variables = equations(solver.case).variables
        self._counts = [self._variables * len(found) for found in by_rank]
        place = np.empty(len(first), dtype=np.int64)
        place[np.concatenate(by_rank)] = np.arange(len(first))
        self._order = place[inverse]

    def __call__(self) -> dict[str, np.ndarray]:
        """rho, u, v, w, p and scalars of the nodes, float64 (n,), in the order in which they were given."""
        state = self._take()
        if self._comm.mpi_comm is not None:
            rows = np.empty((sum(self._counts) // self._variables, self._variables))
            self._comm.mpi_comm.Allgatherv(np.stack(list(state.values()), axis=1), [rows, self._counts])
            state = dict(zip(state, rows.T, strict=True))
        return {name: values[self._order] for name, values in state.items()}


def _own(solver: Solver, blocks: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per node the index in `solver.states` of what holds it, -1 where that is another rank's, and its place there."""
    states, places = np.full(len(blocks), -1), np.zeros(len(blocks), dtype=np.int64)
    for n, state in enumerate(solver.states):
        low, high = np.array(state.part.box).T[:, :, None]
        here = (blocks == state.part.whole) & ((nodes >= low) & (nodes < high)).all(axis=0)
        states[here] = n
        places[here] = state.origin + np.array(state.strides) @ (nodes[:, here] - low)
    return states, places
