"""Conservation at the ends of levels of refinement: the defect of the sums is removed at the nodes where a level ends.

The sum of the rates on the unrefined grid, with those under levels, telescopes to the fluxes through its boundaries.
The rates weighted for integrals over all levels have another sum. In smooth flow, the difference is of the order of the
error of the scheme. It is a weighted sum of rates at the nodes of levels and under them, and each rate is 0 in uniform
flow. The difference is distributed over the nodes near the ends of the level. Nodes with larger rates of change take a
larger share, but no more than their density and pressure allow (docs/refinement.md, "Levels that conserve").
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.level_donors import Injection, coincident_boxes
from hiresx.decomposition.level_quadrature import LevelWeights, covered_cells
from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.quadrature import SHARED, block_weights, ends
from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED
from hiresx.grid.blocks import Range, direction, intersection, layer, slices
from hiresx.grid.patched import PATCHED
from hiresx.rhs.terms import Task
from hiresx.solver.block_states import LocalBlocks

# Number of nodes behind the end of a level over which its defect is distributed. The defect arises within the same
# distance: the weights of the last six nodes of the coarser level are not 1. With 8 nodes, the defect of a blast
# affected only cold gas, whose pressure became negative.
RING = 12
# Least fraction of its volume with which a node counts in integrals so that it takes a part of the defect. Near ends
# some nodes do not count at all.
LEAST = 0.25
# The threads of the first and of the second pass of a sum on a device, and the least number of entries of a list for
# each.
THREADS, FEW, FEWEST = 65536, 256, 16


@dataclass(frozen=True, eq=False)
class _List:
    """The nodes of a part that count in the defect of a `group` of levels: indexes into its padded arrays and the
    weights of their rates. The first `ends` of them take the defect of a stage. The first `able` of them take the
    changes of integrals when tiles change."""

    state: BlockState
    group: int
    nodes: np.ndarray
    weights: np.ndarray
    ends: int
    able: int


class _Sums(NamedTuple):
    """Sums by group, (groups, rows) on the device: what this rank has, and those of all ranks."""

    own: Any
    whole: Any


class _Launches(NamedTuple):
    """Launches that distribute defects over nodes: the sums, the amounts that nodes cannot take, and the change of the
    rates or the state."""

    sums: Callable[[], None]
    rest: Callable[[], None]
    change: Callable[[], None]


class LevelConservation:
    """The part of a stage that makes levels of refinement conservative: it corrects the rates of change `r` at nodes
    near the ends of levels, so that the integrals of the conserved variables over all levels change by boundary fluxes
    and sources alone. This is done separately for each group of levels that are connected or cover each other.
    `weights`: the quadrature weights of these integrals. `blocks`: the blocks of this rank. Collective."""

    def __init__(self, blocks: LocalBlocks):
        self._blocks, self._variables = blocks, blocks.equations.variables
        with blocks.comm.together():
            self.weights = LevelWeights(blocks.decomposition, kept=True)
            groups = _groups(blocks.decomposition)
        self._lists = _lists(blocks, groups, self.weights)
        self._groups = max(groups.values(), default=-1) + 1
        self._able = float(blocks.comm.sum([float(sum(one.able for one in self._lists))])[0]) > 0
        with blocks.comm.together():
            # After the defect follow the sums by which it is distributed (kernels/level_ends.h): three norms and three
            # even shares of the gas, a norm of every scalar, and the amounts that both kinds of shares can take, seven
            # each.
            scalars = self._variables - len(GAS_CONSERVED)
            self._sums, self._rest = self._zeros(self._variables + 20 + scalars), self._zeros(self._variables)
            self._of_rates = self._launches("level_ends", lambda one: one.ends)

    def task(self) -> Task:
        """Return the task that corrects the rates `r` such that levels of refinement conserve mass, momentum and
        energy, as a pair: its name, and a function of the number of the stage. It must follow the tasks that compute
        `r`."""
        return "conservation", self._take_back

    def _take_back(self, stage: int) -> None:
        self._of_rates.sums()
        self._over_ranks(self._sums)
        self._of_rates.rest()
        self._over_ranks(self._rest)
        self._of_rates.change()

    def add(self, integrals: np.ndarray, dt: float) -> bool:
        """Change the state at nodes of finer levels so that the integrals of the conserved variables over the whole
        grid change by `integrals` (variables,), in the scales of the case. Nodes with larger present rates of change
        take a larger share, but no more than their density and pressure allow. `dt`: the time step in L / c_ref, which
        must be the one that is set on the device (`StepSize.put`). Returns True if the state was changed, and False if
        no node of a finer level can take a change. Collective."""

        def all_levels(values: np.ndarray) -> None:
            values[:] = values.sum(axis=0)

        def in_a_step(values: np.ndarray) -> None:
            all_levels(values)
            values[:, : self._variables] = -integrals / dt

        if self._able:
            with self._blocks.comm.together():
                launches = self._launches("level_states", lambda one: one.able)
            launches.sums()
            self._over_ranks(self._sums, in_a_step)
            launches.rest()
            self._over_ranks(self._rest, all_levels)
            launches.change()
        return self._able

    def _over_ranks(self, sums: _Sums, change: Callable[[np.ndarray], None] | None = None) -> None:
        backend, comm = self._blocks.backend, self._blocks.comm
        if comm.size > 1 or change is not None:
            values = comm.sum(backend.to_host(sums.own).astype(float))
            if change is not None:
                change(values)
            backend.copy(sums.whole, backend.to_device(values.astype(str(sums.whole.dtype))))

    def _zeros(self, rows: int) -> _Sums:
        blocks = self._blocks
        own, other = (blocks.backend.zeros((self._groups, rows), blocks.configuration.real) for _ in range(2))
        return _Sums(own, own if blocks.comm.size == 1 else other)

    def _launches(self, kernel: str, takers: Callable[[_List], int]) -> _Launches:
        """Return the launches that distribute defects over the first `takers` nodes of each list. `kernel`: the last
        kernel."""
        program, real = self._blocks.program, self._blocks.configuration.real
        sums: list[list[Call]] = [[], [], []]
        rest: list[list[Call]] = [[], [], []]
        change: list[Call] = []
        found = [(one, self._arguments(one)) for one in self._lists]
        for group in range(self._groups):
            own = [(one, given) for one, given in found if one.group == group]
            of_lists = [
                ("level_sums", len(one.nodes), {**given, "count": len(one.nodes), "ends": takers(one)})
                for one, given in own
            ]
            self._add_sums(sums, self._sums.own[group], of_lists)
            parts: list[tuple[str, int, dict[str, Any]]] = []
            for one, given in own:
                if not (count := takers(one)):
                    continue
                given |= {"sums": self._sums.whole[group], "dt": one.state.dt, "ends": count}
                given["parts"] = self._blocks.backend.zeros((count, self._variables), real)
                parts.append(("level_parts", count, given))
            self._add_sums(rest, self._rest.own[group], parts)
            for _, count, given in parts:
                change.append(self._call(kernel, (count, 1, 1), {**given, "left": self._rest.whole[group]}))
        return _Launches(program.prepare(sums), program.prepare(rest), program.prepare([change]))

    def _arguments(self, one: _List) -> dict[str, Any]:
        to_device, state = self._blocks.backend.to_device, one.state
        return {
            "nodes": to_device(one.nodes.astype(np.int32)), "weights": to_device(one.weights.astype(state.real)),
            "sv": state.variable_stride, "q": state.q, "r": state.r, "jacobian": state.jacobian,
        }  # fmt: skip

    def _add_sums(self, to: list[list[Call]], result: Any, lists: Sequence[tuple[str, int, dict[str, Any]]]) -> None:
        """Add the launches that sum lists to `result`, in three passes. `lists`: kernel, entries, arguments of each."""
        if not lists:
            return
        backend, program, rows = self._blocks.backend, self._blocks.program, len(result)
        shapes = [self._shape(count) for _, count, _ in lists]
        starts = np.cumsum([0, *(threads for threads, *_ in shapes)]).tolist()
        few = min(FEW, starts[-1])
        partial, less = (backend.zeros((rows, n), self._blocks.configuration.real) for n in (starts[-1], few))
        for (kernel, _, given), shape, (start, end) in zip(lists, shapes, pairwise(starts), strict=True):
            threads, first, apart, height = shape
            to[0].append(
                self._call(kernel, (threads, 1, 1), {
                    **given, "first": first, "apart": apart, "height": height, "columns": starts[-1],
                    "partial": partial[:, start:end],
                })
            )  # fmt: skip
        for calls, values, threads, into in ((to[1], partial, few, less), (to[2], less, 1, result)):
            given = {"count": values.shape[1], "threads": threads, "how": 0, "values": values, "result": into}
            calls.append(program.call("reduce", (threads, rows, 1), **given))

    def _call(self, kernel: str, extent: tuple[int, int, int], given: dict[str, Any]) -> Call:
        """A launch with those of the arguments that the kernel has."""
        names = {name for _, name in self._blocks.program.signatures[kernel].arguments}
        return self._blocks.program.call(kernel, extent, **{name: given[name] for name in names & set(given)})

    def _shape(self, count: int) -> tuple[int, int, int, int]:
        """Return the threads of a sum, the first entry of each thread as a multiple of its number, and the distance and
        the number of its entries. Neighbouring threads of a GPU read neighbouring entries; a thread of a CPU reads
        consecutive entries."""
        threads = min(-(-count // FEWEST), THREADS if self._blocks.backend.name != "cpu" else FEW)
        height = -(-count // threads)
        return (threads, height, 1, height) if self._blocks.backend.name == "cpu" else (threads, 1, threads, height)


def _groups(whole: Decomposition) -> dict[int, int]:
    """Return the number of the group of each whole block of a finer level."""
    levels = whole.levels
    assert levels is not None
    group = {n: n for n, tile in enumerate(levels.tiles) if tile.level > 0}

    def join(a: int, b: int) -> None:
        kept, gone = group[a], group[b]
        group.update({n: kept for n, of in group.items() if of == gone})

    for c in whole.connections:
        if c.block in group and c.donor in group:
            join(c.block, c.donor)
    for n in group:
        tile = levels.tiles[n]
        below: Range = triple((lo // 2, -(-hi // 2)) for lo, hi in tile.box)
        for m in levels.of(tile.level - 1, tile.base) if tile.level > 1 else ():
            if intersection(below, levels.tiles[m].box) is not None:
                join(m, n)
    numbers = {of: n for n, of in enumerate(sorted(set(group.values())))}
    return {n: numbers[of] for n, of in group.items()}


def _lists(blocks: LocalBlocks, groups: dict[int, int], weights: LevelWeights) -> list[_List]:
    """Return the lists of all parts of this rank. Collective."""
    comm, whole, cut = blocks.comm, blocks.decomposition, blocks.cut
    assert whole.levels is not None
    states = {state.index: state for state in blocks.states}
    with comm.together():
        volumes, masses = {}, {}
        for n, state in states.items():
            volumes[n] = np.ones(state.shape)
            state.interior(volumes[n])[...] = 1 / state.interior(blocks.backend.to_host(state.jacobian))
            counted = np.zeros(state.shape)
            state.interior(counted)[...] = weights.nodes[state.part.whole][slices(state.part.box)]
            masses[n] = counted * volumes[n]
        found = coincident_boxes(whole, cut).injections()
        covered = [e for e in found if e.block in states]
    given = _given(blocks, found, [masses[e.block].ravel()[e.to] for e in covered])
    lists: list[_List] = []
    with comm.together():
        for e in covered:
            masses[e.block].ravel()[e.to] = 0
        for e, mass in given:
            np.add.at(masses[e.donor].ravel(), e.source, mass)
        for n, state in states.items():
            if state.part.whole in groups:
                counted = masses[n] / volumes[n]
                # 2 for nodes that take the defect, 1 for nodes that could take it, 0 for all others that count.
                takes = np.zeros(state.shape, int)
                state.interior(takes)[...] = _takers(whole, state.part.whole)[slices(state.part.box)]
                takes[counted <= LEAST] = 0
                nodes = [np.flatnonzero((counted != 0) & (takes == kind)) for kind in (2, 1, 0)]
                at, first, other = np.concatenate(nodes), len(nodes[0]), len(nodes[1])
                lists.append(_List(state, groups[state.part.whole], at, counted.ravel()[at], first, first + other))
        for e in covered:
            state = states[e.block]
            if state.part.whole not in groups:
                under = np.zeros(state.shape)
                state.interior(under)[...] = block_weights(whole, state.part.whole, state.part.box, kept=True)
                of = groups[cut.parts[e.donor].whole]
                lists.append(_List(state, of, e.to, -under.ravel()[e.to], 0, 0))
    return [one for one in lists if len(one.nodes)]  # in a level that lies wholly under another one no node counts


def _given(
    blocks: LocalBlocks, found: Sequence[Injection], own: Sequence[np.ndarray]
) -> list[tuple[Injection, np.ndarray]]:
    """Return the numbers of the nodes `to` of each injection whose donor this rank has. `own`: the numbers of all nodes
    of the blocks of each rank. Collective."""
    comm, owner = blocks.comm, [part.rank for part in blocks.cut.parts]
    places = [n for n, e in enumerate(found) if owner[e.block] == comm.rank]
    if comm.mpi_comm is None:
        return [(found[n], values) for n, values in zip(places, own, strict=True)]
    out: list[list[tuple[int, np.ndarray]]] = [[] for _ in range(comm.size)]
    for n, values in zip(places, own, strict=True):
        out[owner[found[n].donor]].append((n, values))
    return [(found[n], values) for theirs in comm.mpi_comm.alltoall(out) for n, values in theirs]


def _takers(whole: Decomposition, n: int) -> np.ndarray:
    """Return for the nodes (nk, nj, ni) of a whole block 1 if they may take a part of a defect, and 2 if they do so in
    every stage: those near the faces of the boxes of cells over which integrals are closed, at the ends of its level
    and between these boxes. Nodes of conditions, and nodes that another block has, too, are 0: their values are
    prescribed, or must be the same in both blocks."""
    levels, block = whole.levels, whole.blocks[n]
    assert levels is not None
    tile = levels.tiles[n]
    space, found = levels.spaces[tile.level, tile.base], np.ones(block.x.shape, int)
    for cells in {box for boxes, _ in covered_cells(levels, tile.level, tile.base) for box in boxes}:
        for d in block.active:
            size, wrap = space.size[d], space.wrapped[d]
            turns = wrap is not None and wrap.step == size
            for end, (first, last) in zip((2 * c for c in cells[d]), ((0, RING), (1 - RING, 1)), strict=True):
                if end in (0, size if turns else size - 1) and (not turns or cells[d] == (0, size // 2)):
                    continue
                at = [np.arange(2 * lo, 2 * hi + 1) for lo, hi in cells]
                at[d] = np.arange(end + first, end + last)
                own = []
                for e, (lo, hi) in enumerate(tile.box):
                    nodes = at[e] % space.size[e] - lo
                    own.append(nodes[(nodes >= 0) & (nodes < hi - lo)])
                found[np.ix_(*reversed(own))] = 2
    for patch in whole.patches:
        if patch.block == n and patch.condition.type != PATCHED:
            found[slices(patch.range)] = 0
    for face in block.faces:
        across = found[_face(face, block.size)]
        across *= ends(whole, n, face) != SHARED
    return found


def _face(face: str, size: tuple[int, int, int]) -> tuple[Any, ...]:
    """Return the index of the nodes of a face, [k, j, i] without its direction."""
    at: list[Any] = [slice(None)] * 3
    at[2 - direction(face)] = layer(face, size)[0]
    return tuple(at)
