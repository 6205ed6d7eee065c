"""The flow at selected nodes, gathered on the host from the devices and ranks that compute them."""

import numpy as np

from hiresx.equations import equations
from hiresx.equations.gas import Gas
from hiresx.output.watch.node_numbers import NodeNumbers
from hiresx.solver import Solver


class Take:
    """Reader of the flow at n nodes that this rank computes. `states` (n,): for each node the index in `solver.states`
    of the box of nodes that contains it. `places` (n,): its flat index in the arrays of this box with ghosts. Only
    these nodes are copied from the device, each once."""

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
        parts = [state.from_storage(self._backend.to_host(q.take(places, axis=1))) for state, q, places in self._parts]
        q = np.concatenate(parts or [np.empty((self._variables, 0))], axis=1)
        return {name: values[self._order] for name, values in self._gas.primitive(q).items()}


class SampledNodes:
    """A set of n nodes of whole blocks, each listed once, and the ranks that compute them. `ids` (n,): the numbers of
    the nodes in the numbering of all blocks (`NodeNumbers`), in ascending order. `mine` (m,): the positions in `ids` of
    the m nodes of this rank. `states` (m,), `places` (m,): for each node of this rank the index in `solver.states` of
    the box that contains it, and its flat index in the arrays of this box with ghosts. All ranks must construct this
    object."""

    def __init__(self, solver: Solver, blocks: np.ndarray, nodes: np.ndarray):
        """`blocks` (m,) and `nodes` (3, m), index triples (i, j, k) in these; those that are given twice count once."""
        self._comm = solver.comm
        ids = NodeNumbers(solver.decomposition.blocks).of(blocks, nodes)
        # `inverse`: the position of each node in `ids`
        self.ids, first, self.inverse = np.unique(ids, return_index=True, return_inverse=True)
        states, places = _own(solver, blocks[first], nodes[:, first])
        self.mine = np.flatnonzero(states >= 0)
        self.states, self.places = states[self.mine], places[self.mine]
        # the nodes of rank 0, then those of rank 1, ...
        by_rank = self._comm.allgather(self.mine)
        self._counts = [len(found) for found in by_rank]
        self._order = np.empty(len(first), dtype=np.int64)
        self._order[np.concatenate(by_rank)] = np.arange(len(first))

    def together(self, values: np.ndarray) -> np.ndarray:
        """Gather the values of all ranks at the nodes of this set, and return them on all ranks as a float64 array (m,
        n), with the n nodes in ascending order of their numbers `ids`. `values`: m values at each node of this rank, an
        array (m, nodes of this rank). All ranks must call this method."""
        return self.gather_by_rank(values)[:, self._order]

    def gather_by_rank(self, values: np.ndarray) -> np.ndarray:
        """Gather the values of all ranks at the nodes of this set, and return them on all ranks as an array (m, n),
        with the nodes of rank 0 first, then the nodes of rank 1, and so on. `values`: m values at each node of this
        rank, an array (m, nodes of this rank). All ranks must call this method."""
        if self._comm.mpi_comm is None:
            return values
        rows = np.empty((len(self.ids), len(values)))
        counts = [len(values) * count for count in self._counts]
        self._comm.mpi_comm.Allgatherv(np.ascontiguousarray(values.T), [rows, counts])
        return rows.T

    @property
    def before(self) -> int:
        """Number of those nodes of this set that belong to ranks with lower numbers than this rank."""
        return sum(self._counts[: self._comm.rank])


class Gather:
    """The flow at selected nodes of whole blocks, on all ranks. Each rank reads the nodes that it computes. `blocks`:
    the number of the block of each node. `nodes`: its indexes i, j, k. All ranks must construct this object."""

    def __init__(self, solver: Solver, blocks: np.ndarray, nodes: np.ndarray):
        """See `SampledNodes`."""
        self._nodes = SampledNodes(solver, blocks, nodes)
        self._take = Take(solver, self._nodes.states, self._nodes.places)

    def __call__(self) -> dict[str, np.ndarray]:
        """rho, u, v, w, p and scalars of the nodes, float64 (n,), in the order in which they were given."""
        state = self._take()
        found = self._nodes.together(np.stack(list(state.values())))
        return dict(zip(state, found[:, self._nodes.inverse], strict=True))


def _own(solver: Solver, blocks: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per node the index in `solver.states` of what holds it, -1 where that is another rank's, and its place there."""
    states, places = np.full(len(blocks), -1), np.zeros(len(blocks), dtype=np.int64)
    for n, state in enumerate(solver.states):
        low, high = np.array(state.part.box).T[:, :, None]
        here = (blocks == state.part.whole) & ((nodes >= low) & (nodes < high)).all(axis=0)
        states[here] = n
        places[here] = state.origin + np.array(state.strides) @ (nodes[:, here] - low)
    return states, places
