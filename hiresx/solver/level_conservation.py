"""Conservation across the ends of levels of refinement: their defect is taken back at the nodes where a level ends.

The sum of the rates of the grid itself, those under levels included, telescopes to what passes its boundaries. With the
weights of integrals over all levels the rates add up to something else, in smooth flow by the error of the scheme. The
difference is a weighted sum of rates at the nodes of levels and under them, each 0 in uniform flow. The nodes near the
ends of a level take it back, more of it where rates of change are larger (docs/refinement.md, "Levels that conserve").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.level_donors import Injection, injections
from hiresx.decomposition.level_quadrature import LevelWeights, covered_cells
from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.quadrature import SHARED, block_weights, ends
from hiresx.device.interface import Backend, Call
from hiresx.device.state import BlockState
from hiresx.grid.blocks import Range, direction, intersection, layer, slices
from hiresx.grid.patched import PATCHED
from hiresx.rhs.terms import Task
from hiresx.solver.block_states import LocalBlocks

# Nodes behind the end of a level that take its defect: with fewer the pressure behind a shock that leaves the level is
# disturbed more (docs/make/conservative_levels.py).
RING = 8
# The least part of its volume for which a node that takes a share counts: near ends some count nothing in integrals.
LEAST = 0.25
# The threads of the first and of the second pass of a sum on a device, and the fewest entries of a list for each.
THREADS, FEW, FEWEST = 65536, 256, 16


@dataclass(frozen=True, eq=False)
class _List:
    """The nodes of a part that count in the defect of a `group` of levels: indexes into its padded arrays and the
    weights of their rates. The first `ends` of them take the defect back."""

    state: BlockState
    group: int
    nodes: np.ndarray
    weights: np.ndarray
    ends: int

    def masses(self, backend: Backend) -> np.ndarray:
        """What the first nodes count in integrals of dq/dt."""
        jacobian: np.ndarray = backend.to_host(self.state.jacobian).ravel()[self.nodes[: self.ends]].astype(float)
        return self.weights[: self.ends] / jacobian


class LevelConservation:
    """The task of a stage that removes the conservation errors of all groups of levels, once `r` is complete. A group
    consists of the levels that are connected to each other or cover each other. `weights`: the quadrature weights of
    integrals over all levels. Collective."""

    def __init__(self, blocks: LocalBlocks):
        self._blocks, self._variables = blocks, blocks.equations.variables
        with blocks.comm.together():
            self.weights = LevelWeights(blocks.decomposition, kept=True)
            groups = _groups(blocks.decomposition)
        found = _lists(blocks, groups, self.weights)
        self._ends = [(one, one.masses(blocks.backend)) for one in found if one.ends]
        count = max(groups.values(), default=-1) + 1
        masses = np.bincount(
            [one.group for one, _ in self._ends], [mass.sum() for _, mass in self._ends], count
        )  # fmt: skip
        self._masses = blocks.comm.sum(masses)
        with blocks.comm.together():
            backend, program = blocks.backend, blocks.program
            rows = self._variables + 1
            # What this rank has of the defects, which of some groups is nothing, and the defects of all ranks.
            self._own = backend.zeros((count, rows), blocks.configuration.real)
            self._defects = self._own if blocks.comm.size == 1 else backend.zeros(self._own.shape, str(self._own.dtype))
            sums: list[Call] = []
            totals: list[Call | list[Call]] = []
            back: list[Call] = []
            for group, (own_defect, defect) in enumerate(zip(self._own, self._defects, strict=True)):
                own = [one for one in found if one.group == group]
                if not own:
                    continue
                shapes = [self._shape(len(one.nodes)) for one in own]
                starts = np.cumsum([0, *(threads for threads, *_ in shapes)]).tolist()
                partial = backend.zeros((rows, starts[-1]), blocks.configuration.real)
                few = min(FEW, starts[-1])
                less = backend.zeros((rows, few), blocks.configuration.real)
                for one, shape, (start, end) in zip(own, shapes, pairwise(starts), strict=True):
                    sums_of_list, ends_of_list = self._calls(one, shape, partial[:, start:end], starts[-1], defect)
                    sums.append(sums_of_list)
                    back += ends_of_list
                for values, threads, result in ((partial, few, less), (less, 1, own_defect)):
                    totals.append(
                        program.call(
                            "reduce", (threads, rows, 1), count=values.shape[1], threads=threads, how=0, values=values,
                            result=result,
                        )
                    )  # fmt: skip
            self._sums, self._back = program.prepare([sums, *totals]), program.prepare([back])

    def task(self) -> Task:
        """Return the task, which follows those that fill `r`."""
        return "conservation", self._take_back

    def _take_back(self, stage: int) -> None:
        blocks = self._blocks
        self._sums()
        if blocks.comm.size > 1:
            summed = blocks.comm.sum(blocks.backend.to_host(self._own))
            blocks.backend.copy(self._defects, blocks.backend.to_device(summed))
        self._back()

    def add(self, integrals: np.ndarray) -> bool:
        """Change the state at the ends of all levels so that `integrals` are added to those of the conservative
        variables: half of them by the size of the present rates of change, half evenly. Returns false where no level
        ends. Collective."""
        to_host, variables = self._blocks.backend.to_host, self._variables
        sizes = []
        for one, masses in self._ends:
            r = to_host(one.state.r).reshape(variables, -1)[:, one.nodes[: one.ends]].astype(float)
            sizes.append(np.sqrt((r**2).sum(axis=0)) * one.weights[: one.ends] / masses)
        own = sum(float((size * masses).sum()) for size, (_, masses) in zip(sizes, self._ends, strict=True))
        total, mass = float(self._blocks.comm.sum([own])[0]), float(self._masses.sum())
        for size, (one, _) in zip(sizes, self._ends, strict=True):
            share = (size / total + 1 / mass) / 2 if total > 0 else np.full_like(size, 1 / mass)
            q = to_host(one.state.q)
            q.reshape(variables, -1)[:, one.nodes[: one.ends]] += integrals[:, None] * share
            self._blocks.backend.copy(one.state.q, self._blocks.backend.to_device(q))
        return mass > 0

    def _shape(self, count: int) -> tuple[int, int, int, int]:
        """The threads of a sum, the first entry of each as a multiple of its number, and the distance and the number of
        its entries. Neighbouring threads of a GPU read neighbouring entries, a thread of a CPU one after the other."""
        threads = min(-(-count // FEWEST), THREADS if self._blocks.backend.name != "cpu" else FEW)
        height = -(-count // threads)
        return (threads, height, 1, height) if self._blocks.backend.name == "cpu" else (threads, 1, threads, height)

    def _calls(
        self, one: _List, shape: tuple[int, int, int, int], partial: Any, columns: int, defect: Any
    ) -> tuple[Call, list[Call]]:
        """The launch that sums a list, and those that take the defect back at its nodes."""
        backend, state = self._blocks.backend, one.state
        threads, first, apart, height = shape
        nodes = backend.to_device(one.nodes.astype(np.int32))
        flow = {"nodes": nodes, "sv": state.variable_stride, "r": state.r}
        sums = self._blocks.program.call(
            "level_sums", (threads, 1, 1), **flow, weights=backend.to_device(one.weights.astype(state.real)),
            count=len(one.nodes), ends=one.ends, first=first, apart=apart, height=height, columns=columns,
            partial=partial,
        )  # fmt: skip
        if not one.ends:
            return sums, []
        mass = float(self._masses[one.group])
        back = self._blocks.program.call(
            "level_ends", (one.ends, 1, 1), **flow, mass=mass, jacobian=state.jacobian, defect=defect
        )
        return sums, [back]


def _groups(whole: Decomposition) -> dict[int, int]:
    """The number of the group of each whole block of a finer level."""
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
    """The lists of all parts of this rank. Collective."""
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
        found = injections(whole, cut, blocks.kept)
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
                takes = np.zeros(state.shape, bool)
                state.interior(takes)[...] = _near_ends(whole, state.part.whole)[slices(state.part.box)]
                takes &= counted > LEAST
                nodes = [np.flatnonzero(takes), np.flatnonzero((counted != 0) & ~takes)]
                at = np.concatenate(nodes)
                lists.append(_List(state, groups[state.part.whole], at, counted.ravel()[at], len(nodes[0])))
        for e in covered:
            state = states[e.block]
            if state.part.whole not in groups:
                under = np.zeros(state.shape)
                state.interior(under)[...] = block_weights(whole, state.part.whole, state.part.box, kept=True)
                of = groups[cut.parts[e.donor].whole]
                lists.append(_List(state, of, e.to, -under.ravel()[e.to], 0))
    return lists


def _given(
    blocks: LocalBlocks, found: Sequence[Injection], own: Sequence[np.ndarray]
) -> list[tuple[Injection, np.ndarray]]:
    """The numbers of the nodes `to` of each injection whose donor this rank has, from those that every rank has
    of the blocks, `own`. Collective."""
    comm, owner = blocks.comm, [part.rank for part in blocks.cut.parts]
    places = [n for n, e in enumerate(found) if owner[e.block] == comm.rank]
    if comm.mpi_comm is None:
        return [(found[n], values) for n, values in zip(places, own, strict=True)]
    out: list[list[tuple[int, np.ndarray]]] = [[] for _ in range(comm.size)]
    for n, values in zip(places, own, strict=True):
        out[owner[found[n].donor]].append((n, values))
    return [(found[n], values) for theirs in comm.mpi_comm.alltoall(out) for n, values in theirs]


def _near_ends(whole: Decomposition, n: int) -> np.ndarray:
    """Which nodes (nk, nj, ni) of a whole block lie near the faces of the boxes of cells over which integrals are
    closed, at the ends of its level and between these boxes. Nodes of conditions, and those that another block has too,
    do not count: their values are set, or must be the same in both."""
    levels, block = whole.levels, whole.blocks[n]
    assert levels is not None
    tile = levels.tiles[n]
    space, found = levels.spaces[tile.level, tile.base], np.zeros(block.x.shape, bool)
    for cells in covered_cells(levels, tile.level, tile.base):
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
                found[np.ix_(*reversed(own))] = True
    for patch in whole.patches:
        if patch.block == n and patch.condition.type != PATCHED:
            found[slices(patch.range)] = False
    for face in block.faces:
        across = found[_face(face, block.size)]
        across &= ends(whole, n, face) != SHARED
    return found


def _face(face: str, size: tuple[int, int, int]) -> tuple[Any, ...]:
    """The index of the nodes of a face, [k, j, i] without its direction."""
    at: list[Any] = [slice(None)] * 3
    at[2 - direction(face)] = layer(face, size)[0]
    return tuple(at)
