"""The derivative of the residual of a steady flow with respect to its state, as a sparse matrix, and the derivatives of
sums over nodes, by finite differences.

Nodes are shifted together if no result depends on two of them. The position of a change then tells which node causes
it: A. R. Curtis, M. J. D. Powell & J. K. Reid, IMA Journal of Applied Mathematics 13 (1974) 117. The results that
depend on a node are found first. In three dimensions all variables of a node are shifted at once; the nodes of one
evaluation are far from each other along grid lines. In plane flow there are two passes. The first one shifts tiles of
adjacent nodes, far from each other, and gives the tiles on which each result depends. The second pass shifts the nodes
of tiles one after the other, in larger groups of tiles. Then the differences are computed with still larger groups of
nodes. In three dimensions their products with random vectors are compared with differences along these vectors.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hiresx.equations import GAS_CONSERVED
from hiresx.errors import HiresxError
from hiresx.gradients import numbers
from hiresx.gradients.colouring import LineNeighbours, groups
from hiresx.gradients.flow import SteadyFlow
from hiresx.gradients.sparse_modules import scipy
from hiresx.grid.blocks import slices
from hiresx.output.watch.columns import dimension
from hiresx.output.watch.watched_surface import NodeContributions
from hiresx.time.ode_system import Vector

# A result depends on nodes at most so many steps along grid lines away, by dimensions of the grid: 10 at corners of
# curved walls, as measured in plane flows. Where that does not suffice, the next is tried. In three dimensions
# influences end 22 steps away where two walls meet, but few of them beyond 4 count.
REACHES = ((10, 16), (10, 16), (4, 6))
# Shifts, over the largest value of the variable: to see what changes, and for the differences.
PROBE, SHIFT = 1e-4, 1e-6
# A variable of the gas counts in shifts at least as this share of the largest one: a momentum may be 0.
LEAST = 0.1
# Influences below this share of the change of a node do not count, by dimensions of the grid. In plane flow it is
# round-off, for instance of a mean over an outflow. In three dimensions the limit 1e-5 would make three times as many
# groups.
COUNTS = (1e-11, 1e-11, 1e-3)
# In three dimensions: the number of random shifts of all nodes, and the share by which the changes of a result by
# opposite shifts differ if it has a kink. Its largest change and its largest difference are compared.
TRIALS, KINK = 3, 0.02
# In three dimensions products of the matrix with these shifts deviate from the changes at most by this share.
ACCURATE = 0.1
# Nodes along the edge of a tile, by dimensions of the grid.
TILE = (4, 3, 1)
# Influences from beyond the reach are left out below this share, by dimensions of the grid. In three dimensions the
# products alone tell whether the reach suffices.
FAR = (1e-2, 1e-2, np.inf)

# Results at each place of this rank, (m, n), of one kind after another, from a state (variables, nodes).
Results = Callable[[np.ndarray], list[np.ndarray]]
# A shift (variables, nodes) of the state, and the results with it and with the opposite one.
Trial = tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]


class SparseLinearisation:
    """The linearisation of a `flow` about its state x, as sparse matrices. `jacobian`: df/dx on rank 0, a sparse matrix
    of SciPy (`unknowns`, `unknowns`), None on others. f is a change of the conserved variables by an explicit step
    (`SteadyFlow`). With a vortex in the far field its circulation is one more unknown, the last one, and its equation
    is that it is the circulation of the lift. `gradients`: dF/dx of the forces `wanted`, by full name, (unknowns,).
    Unknowns are ordered by `flat`: variables one after another. `variables`: the number of variables. Each rank finds
    the rows of its own nodes. Collective.

    Raises HiresxError where SciPy is missing, and for a flow in which results depend on nodes far away. In
    three dimensions this is a flow whose differences in random directions are not near products with the matrix."""

    def __init__(self, flow: SteadyFlow, x: Vector, wanted: Sequence[str]):
        self._flow, self._system, self._solver = flow, flow.system, flow.simulation.solver
        self._comm = flow.comm
        with self._comm.together():
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
        self.variables, self.unknowns = variables, self._order.size + bool(flow.vortices)
        self._dimension = dimension(self._solver)
        self._at, self._change = self._system.vector(), self._system.vector()
        self._number_nodes()
        at = self.flat(x).reshape(self._order.shape)
        self._scales = np.abs(at).max(axis=1)
        gas = self._scales[: len(GAS_CONSERVED)]
        np.maximum(gas, LEAST * gas.max(), out=gas)
        self._scales[self._scales == 0.0] = 1.0  # a model of turbulence that is at rest
        self._derive(at, wanted)
        flow.put(x)

    def flat(self, x: Vector) -> np.ndarray:
        """Return the numbers of the vector x as an array (unknowns,) on every rank, in the order of the rows of the
        Jacobian: for one variable after the other its values at all nodes of the grid. All ranks must call this."""
        values: np.ndarray = self._system.gather(x)[self._order].ravel()
        return values

    def fill(self, values: np.ndarray, x: Vector) -> None:
        """Set the vector x from the array `values` (unknowns,), which has, for one variable after the other, its values
        at all nodes of the grid (the order of the rows of the Jacobian)."""
        whole = np.empty(self._order.size)
        whole[self._order] = values[: self._order.size].reshape(self._order.shape)
        self._system.scatter(whole, x)

    def _number_nodes(self) -> None:
        """Find the numbers of all nodes in the padded arrays of each part, -1 at ghosts of physical faces, those of
        this rank's own nodes, and which nodes of all ranks are neighbours along grid lines, by an exchange of halos."""
        variables, nodes = self._order.shape
        self.fill(np.tile(np.arange(1.0, nodes + 1), variables), self._at)
        pairs, self._numbers = [np.empty((2, 0), int)], []
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
        own_nodes = [s.interior(n).ravel() for s, n in zip(self._solver.states, self._numbers, strict=True)]
        self._own = np.concatenate([np.empty(0, int), *own_nodes])
        self._near = LineNeighbours(
            _table(np.concatenate(self._comm.allgather(np.hstack(pairs)), axis=1), nodes),
            self._outflows(),
            _tiles([block.size for block in self._solver.decomposition.blocks], TILE[self._dimension - 1]),
        )

    def _outflows(self) -> np.ndarray:
        """The nodes of all ranks on outflows, of which each takes means over its face. In three dimensions there are
        none: a mean over a face depends little on one node."""
        faces = [
            condition.state.interior(self._numbers[n])[slices(condition.patch.range)].ravel()
            for condition in self._solver.conditions
            if condition.patch.condition.kernel == "outflow" and self._dimension < 3
            for n, state in enumerate(self._solver.states)
            if state is condition.state
        ]
        found = [nodes for of_rank in self._comm.allgather(faces) for nodes in of_rank]
        return np.unique(np.concatenate([np.empty(0, int), *found]))

    # ---- what is differentiated

    def _derive(self, at: np.ndarray, wanted: Sequence[str]) -> None:
        """Compute the matrices."""
        flow, vortices = self._flow, self._flow.vortices
        flow.circulation = vortices[0].circulation if vortices else None
        self._put(at)
        with self._comm.together():
            sums = self._sums(wanted)
        places = [self._own, *(self._numbers_of(s.states, s.places) for s in sums)]
        residual, *of_sums = self._differentiate(lambda state: self._results(state, wanted), at, places)
        gradients = {}
        for one, matrix, place in zip(sums, of_sums, places[1:], strict=True):
            for n, name in enumerate(one.values):
                own = np.asarray(matrix[n * len(place) : (n + 1) * len(place)].sum(axis=0)).ravel()
                gradients[name] = self._comm.sum(own)
        self.jacobian = self._gather_rows(residual)
        if vortices:
            self._add_circulation(at, gradients.pop(""))
            gradients = {name: np.append(gradient, 0.0) for name, gradient in gradients.items()}
        flow.circulation = None
        self.gradients = gradients

    def _put(self, state: np.ndarray) -> None:
        self.fill(state.ravel(), self._at)
        self._flow.put(self._at)

    def _residual(self, state: np.ndarray) -> np.ndarray:
        """f at this rank's nodes, (variables, n), of the state that was put."""
        self._flow.change(self._at, self._change)
        pairs = zip(self._solver.states, self._change.arrays, strict=True)
        values = [s.interior(self._solver.backend.to_host(array)).reshape(len(state), -1) for s, array in pairs]
        return np.concatenate([np.empty((len(state), 0)), *values], axis=1)

    def _sums(self, wanted: Sequence[str]) -> list[NodeContributions]:
        """What nodes add to the numbers `wanted`, and under an empty name to the circulation, in the state that was
        put."""
        found = numbers.shares(self._flow.simulation, wanted)
        for vortex in self._flow.vortices:
            own = vortex.shares()
            found.append(own._replace(values={"": own.values["circulation"]}))
        return found

    def _results(self, state: np.ndarray, wanted: Sequence[str]) -> list[np.ndarray]:
        """f, and what nodes add to sums, in a state."""
        self._put(state)
        sums = [np.stack(list(s.values.values())) for s in self._sums(wanted)]
        return [self._residual(state), *sums]

    def _numbers_of(self, states: np.ndarray, places: np.ndarray) -> np.ndarray:
        return np.array([self._numbers[s].ravel()[place] for s, place in zip(states, places, strict=True)], int)

    def _gather_rows(self, own: Any) -> Any:
        """Return the whole matrix on rank 0, and None on others, from the rows of each rank's own nodes."""
        variables, nodes = self._order.shape
        rows = (nodes * np.arange(variables)[:, None] + self._own).ravel()
        parts = self._comm.gather((rows, own))
        if parts is None:
            return None
        whole = self._sparse.vstack([matrix for _, matrix in parts]).tocsr()
        return whole[np.argsort(np.concatenate([rows for rows, _ in parts]))]

    def _add_circulation(self, at: np.ndarray, gradient: np.ndarray) -> None:
        """Add the unknown circulation, and the equation that it is that of the lift, to `jacobian`."""
        circulation, found = self._flow.circulation or 0.0, []
        for sign in (1, -1):
            self._flow.circulation = circulation + sign * SHIFT
            self._put(at)
            self._flow.change(self._at, self._change)
            found.append(self.flat(self._change))
        self._flow.circulation = circulation
        if self.jacobian is None:
            return
        by_circulation = ((found[0] - found[1]) / (2 * SHIFT)).reshape(-1, 1)
        self.jacobian = self._sparse.block_array(
            [
                [self.jacobian, self._sparse.csr_array(by_circulation)],
                [self._sparse.csr_array(-gradient[None]), [[1.0]]],
            ]
        ).tocsr()

    # ---- by differences

    def _differentiate(self, results: Results, at: np.ndarray, places: Sequence[np.ndarray]) -> list[Any]:
        """Return the derivatives of this rank's `results` at the state `at`, as matrices (m n, unknowns). `places`: the
        nodes of each result; the first results are the residual. Raises HiresxError where the residual depends on
        distant nodes."""
        unshifted, random, off = results(at), np.random.default_rng(0), np.inf
        count = TRIALS if self._dimension == 3 else 0
        shifts = [SHIFT * self._scales[:, None] * random.uniform(-1, 1, at.shape) for _ in range(count)]
        trials = [(shift, results(at + shift), results(at - shift)) for shift in shifts]
        for reach in REACHES[self._dimension - 1]:
            depends, lost = self._dependencies(results, at, np.concatenate(places), reach)
            if lost:
                continue
            central = self._influences_of_kinks(depends, unshifted, trials)
            found = self._differences(results, at, places, unshifted, depends, central)
            off = self._deviation(found[0], trials)
            if off <= ACCURATE:
                return found
        what = (
            f"the residual at {lost} nodes depends on nodes more than {reach} steps away"
            if lost
            else f"the matrix of the linearised flow deviates by {off:.2g} from differences in random directions"
        )
        raise HiresxError(
            f"{what}: the adjoint method does not take conditions that couple distant nodes, other than outflows and "
            "the vortex of a far field",
            "leave out --adjoint",
        )

    def _differences(
        self,
        results: Results,
        at: np.ndarray,
        places: Sequence[np.ndarray],
        unshifted: list[np.ndarray],
        depends: Any,
        central: np.ndarray,
    ) -> list[Any]:
        """Return the derivatives of this rank's `results` at the state `at`, as matrices (m n, unknowns). `places`: the
        nodes of each result. `unshifted`: the results at that state. `depends` (results, nodes): see `_dependencies`.
        `central` (nodes,): true for nodes whose groups have central differences. Other groups have one-sided
        differences, which need half as many evaluations."""
        ends, (variables, nodes) = np.cumsum([0, *map(len, places)]), at.shape
        entries: list[list[tuple[np.ndarray, ...]]] = [[] for _ in places]
        counts = [0] * len(places)

        def results_at_shift(shifted: tuple[int, ...], group: np.ndarray, by: float) -> list[np.ndarray]:
            state = at.copy()
            state[np.ix_(np.array(shifted), group)] += by * self._scales[list(shifted), None]
            return results(state)

        sets = self._shifted_together(at)
        for group, cause in self._groups(depends, central):
            both = bool(central[group].any())
            for shifted in sets:
                after = results_at_shift(shifted, group, SHIFT)
                before = results_at_shift(shifted, group, -SHIFT) if both else unshifted
                for kind, (above, below) in enumerate(zip(after, before, strict=True)):
                    here = cause[ends[kind] : ends[kind + 1]]
                    changed = np.flatnonzero(here >= 0)
                    counts[kind] = len(above)
                    for n, change in enumerate((above - below)[:, changed]):
                        variable = n if kind == 0 and n in shifted else shifted[0]
                        slope = change / (SHIFT * self._scales[variable] * (2 if both else 1))
                        entries[kind].append((slope, n * len(here) + changed, variable * nodes + here[changed]))
        found = []
        for kind, of_kind in enumerate(entries):
            value, row, column = (np.concatenate(part) for part in zip(*of_kind, strict=True))
            shape = (counts[kind] * len(places[kind]), variables * nodes)
            matrix = self._sparse.coo_array((value, (row, column)), shape).tocsr()
            matrix.eliminate_zeros()
            found.append(matrix)
        return found

    def _shifted_together(self, at: np.ndarray) -> list[tuple[int, ...]]:
        """Return the sets of variables that are shifted in one evaluation. In plane flow without a velocity across the
        plane, the momentum across it is shifted with the density: other results than its own are even functions of it,
        and its own one depends on no other variable."""
        across = GAS_CONSERVED.index("rho_w")
        if self._dimension == 3 or at[across].any():
            return [(variable,) for variable in range(len(at))]
        return [(0, across), *((variable,) for variable in range(1, len(at)) if variable != across)]

    def _influences_of_kinks(self, depends: Any, unshifted: list[np.ndarray], trials: Sequence[Trial]) -> np.ndarray:
        """Return which nodes (nodes,) influence a result of any rank that has a kink at the state where the results are
        `unshifted`. Examples are nodes where a no-slip wall meets the far field. All nodes count in plane flow."""
        if self._dimension < 3:
            return np.ones(depends.shape[1], bool)
        slopes, jumps = np.zeros((2, depends.shape[0]))
        for _, after, before in trials:
            beside = list(zip(after, before, unshifted, strict=True))
            slope = np.concatenate([np.abs(a - b).max(axis=0) for a, b, _ in beside])
            jump = np.concatenate([np.abs(a + b - 2 * c).max(axis=0) for a, b, c in beside])
            slopes, jumps = np.maximum(slopes, slope), np.maximum(jumps, jump)
        found: np.ndarray = self._comm.sum(depends.T @ (jumps > KINK * slopes).astype(float)) > 0
        return found

    def _deviation(self, matrix: Any, trials: Sequence[Trial]) -> float:
        """Return the largest relative deviation of a product of the `matrix` df/dx of all ranks with the shift of one
        of the `trials` from the difference along this shift."""
        squares = []
        for shift, (after, *_), (before, *_) in trials:
            change = (after - before).ravel() / 2
            left = matrix @ shift.ravel() - change
            squares.append((left @ left, change @ change))
        off, size = self._comm.sum(np.ravel(squares)).reshape(-1, 2).T
        return float(np.sqrt(off / np.maximum(size, np.finfo(float).tiny)).max(initial=0.0))

    def _groups(self, depends: Any, first: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield groups of nodes of which no two influence the same result of any rank, with the node that influences
        each result of this rank, or -1. `first`: see `groups`."""
        of_ranks = self._comm.allgather(depends)
        begin = sum(matrix.shape[0] for matrix in of_ranks[: self._comm.rank])
        for group, cause in groups(self._sparse.vstack(of_ranks), first):
            yield group, cause[begin : begin + depends.shape[0]]

    def _dependencies(self, results: Results, at: np.ndarray, places: np.ndarray, reach: int) -> tuple[Any, int]:
        """Return on which nodes each of this rank's results, at the nodes `places`, depends, as a sparse matrix
        (results, nodes). Nodes are at most `reach` steps away or on the same outflow. The second number is how many
        results of all ranks depend on others."""
        before, random = results(at), np.random.default_rng(0)
        scales = [self._comm.max(np.abs(own).max(axis=1, initial=0.0)) for own in before]
        scales[0] = self._scales
        scales = [np.maximum(scale, np.finfo(float).tiny)[:, None] for scale in scales]

        def changes(nodes: np.ndarray) -> np.ndarray:
            """The largest change at each place where `nodes` are shifted, over the shift."""
            state = at.copy()
            state[:, nodes] += PROBE * self._scales[:, None] * random.uniform(0.5, 1.0, (len(at), len(nodes)))
            beside = zip(results(state), before, scales, strict=True)
            change = np.concatenate([(np.abs(a - b) / scale).max(axis=0) for a, b, scale in beside]) / PROBE
            return np.nan_to_num(change, nan=np.inf)

        def matrix(found: list[tuple[np.ndarray, np.ndarray]], columns: int) -> Any:
            row, column = (np.concatenate(part) for part in zip(*found, strict=True))
            return self._sparse.coo_array((np.ones(len(row), bool), (row, column)), (len(places), columns)).tocsr()

        counts, members = COUNTS[self._dimension - 1], self._near.members
        on_tiles: list[tuple[np.ndarray, np.ndarray]] = []
        on_nodes: list[tuple[np.ndarray, np.ndarray]] = []
        lost = 0
        for group, cause in self._near.distant_groups(reach):
            change = changes(np.concatenate([members[tile] for tile in group]))
            row = np.flatnonzero(change > counts)
            column = cause[places[row]]
            lost += int((change[row[column < 0]] > FAR[self._dimension - 1]).sum())
            on_tiles.append((row[column >= 0], column[column >= 0]))
        (lost,) = self._comm.sum([lost])
        if lost or TILE[self._dimension - 1] == 1:
            return matrix(on_tiles, len(members)), lost
        for group, cause in self._groups(matrix(on_tiles, len(members))):
            for n in range(max(len(members[tile]) for tile in group)):
                shifted = {int(tile): members[tile][n] for tile in group if len(members[tile]) > n}
                row = np.flatnonzero(
                    (changes(np.array(list(shifted.values()))) > counts) & np.isin(cause, list(shifted))
                )
                on_nodes.append((row, np.array([shifted[tile] for tile in cause[row]], int)))
        return matrix(on_nodes, at.shape[1]), lost


def _table(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """From `pairs` (2, n) of neighbours, of which the second may be -1, the neighbours of each node (nodes, m), filled
    up with the node itself."""
    pairs = pairs[:, pairs[1] >= 0]
    pairs = np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1)
    place = np.arange(pairs.shape[1]) - np.searchsorted(pairs[0], pairs[0])
    table = np.tile(np.arange(nodes)[:, None], (1, place.max(initial=0) + 1))
    table[pairs[0], place] = pairs[1]
    return table


def _tiles(sizes: Sequence[Sequence[int]], edge: int) -> np.ndarray:
    """Return the number of the tile of each node (nodes,). Tiles have `edge` nodes along each direction, or fewer at
    the ends of blocks. `sizes`: the numbers of nodes (i, j, k) of the blocks."""
    found, first = [np.empty(0, int)], 0
    for ni, nj, nk in sizes:
        shape = [-(-n // edge) for n in (nk, nj, ni)]
        places = np.indices((nk, nj, ni)).reshape(3, -1) // edge
        found.append(np.asarray(first + np.ravel_multi_index(tuple(places), shape)))
        first += int(np.prod(shape))
    return np.concatenate(found)
