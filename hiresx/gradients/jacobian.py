"""The derivative of a steady flow's residual with respect to its state, as a sparse matrix, and those of sums over
nodes, by differences.

Nodes are shifted together whose influences do not meet; the place of a change tells its cause: A. R. Curtis, M. J. D.
Powell & J. K. Reid, IMA Journal of Applied Mathematics 13 (1974) 117. At first few nodes are shifted together, those
that are far from each other in the graph of grid lines. This gives the nodes on which each result depends, and from
these follow larger groups, of which the differences are computed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.gradients import numbers
from hiresx.gradients.flow import SteadyFlow
from hiresx.grid.blocks import slices
from hiresx.output.watch.watched_surface import Shares
from hiresx.time.ode_system import Vector

# A result depends on nodes at most so many steps along grid lines away: 10 at corners of curved walls, as measured.
# Where that does not suffice, the next is tried.
REACHES = (10, 16)
# Shifts, over the largest value of the variable: to see what changes, and for central differences.
PROBE, SHIFT = 1e-4, 1e-6
# A variable counts in shifts at least as this share of the largest one: a component of the momentum may be 0.
LEAST = 0.1

# Results at each place, (m, n), of one kind after another, from a state (variables, nodes).
Results = Callable[[np.ndarray], list[np.ndarray]]


def scipy(part: str) -> Any:
    """scipy.`part`. Raises HiresxError where SciPy is missing or broken."""
    return optional.import_required(f"scipy.{part}", "adjoint derivatives need SciPy", "pip install 'hiresx[post]'")


class SparseLinearisation:
    """A `flow` of one rank about its state x. `jacobian`: df/dx, a sparse matrix of SciPy (unknowns, unknowns). f is a
    change of the conserved variables by an explicit step (`SteadyFlow`). With a vortex in the far field its circulation
    is one more unknown, the last one, and its equation is that it is the circulation of the lift. `gradients`: dF/dx of
    the numbers `wanted`, by full name, (unknowns,). Unknowns are ordered by `flat`: variables one after another.

    Raises HiresxError where SciPy is missing, for numbers that are no sums over walls, and for a flow in which results
    depend on nodes far away."""

    def __init__(self, flow: SteadyFlow, x: Vector, wanted: Sequence[str]):
        self._flow, self._system, self._solver = flow, flow.system, flow.simulation.solver
        self._sparse = scipy("sparse")
        sizes = [int(np.prod(block.size)) for block in self._solver.decomposition.blocks]
        variables = self._system.gather(x).size // sum(sizes)
        self._order = np.concatenate(
            [
                variables * begin + np.arange(variables * size).reshape(variables, size)
                for begin, size in zip(np.cumsum([0, *sizes]), sizes, strict=False)
            ],
            axis=1,
        )
        self._at, self._change = self._system.vector(), self._system.vector()
        self._number_nodes()
        at = self.flat(x).reshape(self._order.shape)
        largest = np.abs(at).max(axis=1)
        self._scales = np.maximum(largest, LEAST * largest.max())
        self._derive(at, wanted)
        flow.put(x)

    def flat(self, x: Vector) -> np.ndarray:
        """Return a vector of the flow as an array of unknowns."""
        values: np.ndarray = self._system.gather(x)[self._order].ravel()
        return values

    def fill(self, values: np.ndarray, x: Vector) -> None:
        """Set a vector of the flow from an array of unknowns."""
        whole = np.empty(self._order.size)
        whole[self._order] = values[: self._order.size].reshape(self._order.shape)
        self._system.scatter(whole, x)

    def _number_nodes(self) -> None:
        """Find the numbers of all nodes in the padded arrays of each part, -1 at ghosts of physical faces, and which
        nodes are neighbours along grid lines, by an exchange of halos."""
        variables, nodes = self._order.shape
        self.fill(np.tile(np.arange(1.0, nodes + 1), variables), self._at)
        pairs, self._numbers = [], []
        for state, array in zip(self._solver.states, self._at.arrays, strict=True):
            self._solver.backend.copy(state.array("update"), array)
        self._solver.halo.start_field("update")
        self._solver.halo.finish_field("update")
        for state in self._solver.states:
            found = np.rint(self._solver.backend.to_host(state.array("update"))[0]).astype(int) - 1
            self._numbers.append(found)
            own = state.interior(np.arange(found.size).reshape(found.shape)).ravel()
            for stride, size in zip(state.strides, state.size, strict=True):
                for beside in (own - stride, own + stride) if size > 1 else ():
                    pairs.append(np.stack([found.ravel()[own], found.ravel()[beside]]))
        row, column = np.concatenate(pairs, axis=1)
        self._neighbours = self._matrix(row[column >= 0], column[column >= 0], nodes)
        self._neighbours += self._neighbours.T + self._sparse.eye_array(nodes, dtype=bool)

    def _matrix(self, row: np.ndarray, column: np.ndarray, rows: int) -> Any:
        """The matrix of true and false, (rows, nodes), with these entries."""
        shape = (rows, self._order.shape[1])
        return self._sparse.coo_array((np.ones(len(row), bool), (row, column)), shape).tocsr()

    def _near(self, reach: int) -> Any:
        """Which nodes are at most `reach` steps apart, or on outflows, of which each takes means over its face."""
        near = self._neighbours
        for _ in range(reach - 1):
            near = near @ self._neighbours
        faces = [
            condition.state.interior(self._numbers[n])[slices(condition.patch.range)].ravel()
            for condition in self._solver.conditions
            if condition.patch.condition.kernel == "outflow"
            for n, state in enumerate(self._solver.states)
            if state is condition.state
        ]
        if faces:
            face = np.unique(np.concatenate(faces))
            near = near + self._matrix(np.repeat(face, len(face)), np.tile(face, len(face)), near.shape[0])
        return near.tocsr()

    # ---- what is differentiated

    def _derive(self, at: np.ndarray, wanted: Sequence[str]) -> None:
        """Compute the matrices."""
        flow, vortices = self._flow, self._flow.vortices
        flow.circulation = vortices[0].circulation if vortices else None
        nodes, unknowns = np.arange(at.shape[1]), at.size
        self._put(at)
        sums = self._sums(wanted)
        places = [nodes, *(self._numbers_of(s.states, s.places) for s in sums)]
        residual, *of_sums = self._differentiate(lambda state: self._results(state, wanted), at, places)
        gradients = {}
        for one, matrix, place in zip(sums, of_sums, places[1:], strict=True):
            for n, name in enumerate(one.values):
                gradients[name] = np.asarray(matrix[n * len(place) : (n + 1) * len(place)].sum(axis=0)).ravel()
        self.jacobian = residual
        if vortices:
            self._add_circulation(at, gradients.pop(""), unknowns)
            gradients = {name: np.append(gradient, 0.0) for name, gradient in gradients.items()}
        flow.circulation = None
        self.gradients = gradients

    def _put(self, state: np.ndarray) -> None:
        self.fill(state.ravel(), self._at)
        self._flow.put(self._at)

    def _residual(self, state: np.ndarray) -> np.ndarray:
        """f of the state that was put."""
        self._flow.change(self._at, self._change)
        return self.flat(self._change).reshape(state.shape)

    def _sums(self, wanted: Sequence[str]) -> list[Shares]:
        """What nodes add to the numbers `wanted`, and under an empty name to the circulation, in the state that was
        put."""
        found = numbers.shares(self._flow.simulation, wanted)
        for vortex in self._flow.vortices:
            own = vortex.shares(self._solver)
            found.append(own._replace(values={"": own.values["circulation"]}))
        return found

    def _results(self, state: np.ndarray, wanted: Sequence[str]) -> list[np.ndarray]:
        """f, and what nodes add to sums, in a state."""
        self._put(state)
        sums = [np.stack(list(s.values.values())) for s in self._sums(wanted)]
        return [self._residual(state), *sums]

    def _numbers_of(self, states: np.ndarray, places: np.ndarray) -> np.ndarray:
        return np.array([self._numbers[s].ravel()[place] for s, place in zip(states, places, strict=True)], int)

    def _add_circulation(self, at: np.ndarray, gradient: np.ndarray, unknowns: int) -> None:
        """Add the unknown circulation, and the equation that it is that of the lift, to `jacobian`."""
        circulation, found = self._flow.circulation or 0.0, []
        for sign in (1, -1):
            self._flow.circulation = circulation + sign * SHIFT
            self._put(at)
            found.append(self._residual(at).ravel())
        self._flow.circulation = circulation
        by_circulation = ((found[0] - found[1]) / (2 * SHIFT)).reshape(unknowns, 1)
        self.jacobian = self._sparse.block_array(
            [
                [self.jacobian, self._sparse.csr_array(by_circulation)],
                [self._sparse.csr_array(-gradient[None]), [[1.0]]],
            ]
        ).tocsr()

    # ---- by differences

    def _differentiate(self, results: Results, at: np.ndarray, places: Sequence[np.ndarray]) -> list[Any]:
        """Return the derivatives of `results`, whose nodes are `places`, as matrices (m n, unknowns)."""
        depends = self._dependencies(results, at, np.concatenate(places))
        ends, (variables, nodes) = np.cumsum([0, *map(len, places)]), at.shape
        entries: list[list[tuple[np.ndarray, ...]]] = [[] for _ in places]
        counts = [0] * len(places)
        for group, cause in _groups(depends):
            for variable, scale in enumerate(SHIFT * self._scales):
                beside = []
                for sign in (1, -1):
                    state = at.copy()
                    state[variable, group] += sign * scale
                    beside.append(results(state))
                for kind, (above, below) in enumerate(zip(*beside, strict=True)):
                    here = cause[ends[kind] : ends[kind + 1]]
                    changed = np.flatnonzero(here >= 0)
                    counts[kind] = len(above)
                    for n, change in enumerate((above - below)[:, changed] / (2 * scale)):
                        entries[kind].append((change, n * len(here) + changed, variable * nodes + here[changed]))
        found = []
        for kind, of_kind in enumerate(entries):
            value, row, column = (np.concatenate(part) for part in zip(*of_kind, strict=True))
            shape = (counts[kind] * len(places[kind]), variables * nodes)
            matrix = self._sparse.coo_array((value, (row, column)), shape).tocsr()
            matrix.eliminate_zeros()
            found.append(matrix)
        return found

    def _dependencies(self, results: Results, at: np.ndarray, places: np.ndarray) -> Any:
        """Return on which nodes each of the results, at the nodes `places`, depends. Raises HiresxError where these are
        not near, nor on the same outflow."""
        before, random = results(at), np.random.default_rng(0)
        for reach in REACHES:
            rows, columns, lost = [], [], 0
            for group, cause in _groups(self._near(reach)[places]):
                state = at.copy()
                state[:, group] += PROBE * self._scales[:, None] * random.uniform(0.5, 1.0, (len(at), len(group)))
                pairs = zip(results(state), before, strict=True)
                changed = np.flatnonzero(np.concatenate([(after != own).any(axis=0) for after, own in pairs]))
                lost += int((cause[changed] < 0).sum())
                rows.append(changed)
                columns.append(cause[changed])
            if not lost:
                return self._matrix(np.concatenate(rows), np.concatenate(columns), len(places))
        raise HiresxError(
            f"the residual at {lost} nodes depends on nodes more than {reach} steps away: the adjoint method does not "
            "take conditions that couple distant nodes, other than outflows and the vortex of a far field",
            "leave out --adjoint",
        )


def _groups(depends: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield groups of nodes of which no two influence the same result, with the node of the group that influences each
    result, or -1. `depends` (results, nodes): whether a result depends on a node."""
    meets, by_node = (depends.T @ depends).tocsr(), depends.tocsc()
    group = np.full(depends.shape[1], -1)
    for node in range(len(group)):
        taken = group[meets.indices[meets.indptr[node] : meets.indptr[node + 1]]]
        free = np.ones(len(taken) + 1, bool)
        free[taken[(taken >= 0) & (taken < len(free))]] = False
        group[node] = free.argmax()
    for n in range(group.max() + 1):
        nodes = np.flatnonzero(group == n)
        influences = by_node[:, nodes].tocoo()
        cause = np.full(depends.shape[0], -1)
        cause[influences.row] = nodes[influences.col]
        yield nodes, cause
