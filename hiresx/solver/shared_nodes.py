"""Nodes that several blocks hold: the values of all are made equal from time to time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.wall_seams import holds
from hiresx.device.state import BlockState
from hiresx.solver.block_states import LocalBlocks
from hiresx.time.linearised import Steady

if TYPE_CHECKING:
    from hiresx.solver.solver import Solver

# Steps after which the values are made equal. Differences of round-off grow by some tens of per cent in so many.
EVERY = 128


class SharedNodes:
    """The nodes of connections with shared nodes. Every block that holds one computes it, where blocks are turned in
    another order of sums. In flow without viscosity nonlinear weights can amplify the difference of round-off until the
    values are two. Every `EVERY` steps the other blocks get the value of the first one. Newton's method towards steady
    flow takes too few steps for that.

    Collective. Connections that turn vectors are left out; tiles of levels of refinement share no nodes.
    """

    def __init__(self, blocks: LocalBlocks):
        self._blocks = blocks
        copies, originals = _copies(blocks.decomposition)
        self._sources, place = np.unique(originals, return_inverse=True)
        whole = blocks.decomposition
        self._taken = [(state, *_here(state, whole, self._sources)) for state in blocks.states]
        self._given = []
        for state in blocks.states:
            which, places = _here(state, whole, copies)
            self._given.append((state, place.ravel()[which], places))

    @property
    def any(self) -> bool:
        """True if there are such nodes, on any rank."""
        return bool(len(self._sources))

    def before_steps(self, solver: "Solver", count: int = 1) -> int:
        """Make the values equal where that is due before the next step. Returns how many of `count` steps come before
        it is due again. Collective."""
        if not self.any or isinstance(solver.integrator, Steady):
            return count
        if solver.steps and solver.steps % EVERY == 0:
            solver.settle()
            self.equalise()
            solver.complete_state(given=False)
        return min(count, EVERY - solver.steps % EVERY)

    def equalise(self) -> None:
        """Give the values of the first block to the others. Collective."""
        backend, comm = self._blocks.backend, self._blocks.comm
        found = [
            (which, backend.to_host(_flat(state).take(backend.to_device(places), axis=1)))
            for state, which, places in self._taken
            if len(which)
        ]
        table: np.ndarray | None = None
        for theirs in comm.allgather(found):
            for which, values in theirs:
                if table is None:
                    table = np.zeros((len(values), len(self._sources)), values.dtype)
                table[:, which] = values
        for state, which, places in self._given:
            if len(which) and table is not None:
                _flat(state)[:, backend.to_device(places)] = backend.to_device(np.ascontiguousarray(table[:, which]))


def _flat(state: BlockState) -> np.ndarray:
    flat: np.ndarray = state.q.reshape(state.q.shape[0], -1)
    return flat


def _offsets(decomposition: Decomposition) -> np.ndarray:
    """The number of nodes in all blocks ahead of each."""
    return np.cumsum([0, *(int(np.prod(block.size)) for block in decomposition.blocks)])


def _numbers(size: Sequence[int], nodes: np.ndarray) -> np.ndarray:
    """Numbers of nodes (3, n) in their block."""
    i, j, k = nodes.astype(np.int64)
    return np.asarray((k * size[1] + j) * size[0] + i)


def _copies(decomposition: Decomposition) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all nodes that copy another one, and of that one: of the first of the blocks that hold it."""
    blocks, offsets = decomposition.blocks, _offsets(decomposition)
    ends: list[list[np.ndarray]] = [[], []]
    for c in decomposition.connections if decomposition.levels is None else ():
        first = np.array([[lo] for lo, _ in c.range])
        if c.rotation is not None or c.over_a_pole or not holds(blocks[c.donor], c.donors(first)):
            continue
        nodes = np.stack(np.meshgrid(*(np.arange(*r) for r in c.range), indexing="ij")).reshape(3, -1)
        donors = c.donors(nodes)
        if nodes.size and holds(blocks[c.donor], donors):
            ends[0].append(offsets[c.block] + _numbers(blocks[c.block].size, nodes))
            ends[1].append(offsets[c.donor] + _numbers(blocks[c.donor].size, donors))
    if not ends[0]:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    numbers, at = np.unique(np.concatenate([*ends[0], *ends[1]]), return_inverse=True)
    one, other = np.split(at.ravel(), 2)
    first = np.arange(len(numbers))
    while True:  # where edges meet, a node may be known to its original by way of others
        before = first.copy()
        np.minimum.at(first, one, first[other])
        np.minimum.at(first, other, first[one])
        first = first[first]
        if np.array_equal(before, first):
            break
    copy = first != np.arange(len(numbers))
    return numbers[copy], numbers[first[copy]]


def _here(state: BlockState, whole: Decomposition, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the nodes `numbers` are in the part of `state`, and their places in its padded arrays."""
    b, offsets = state.part.whole, _offsets(whole)
    ni, nj = whole.blocks[b].size[:2]
    mine = np.flatnonzero((numbers >= offsets[b]) & (numbers < offsets[b + 1]))
    own = numbers[mine] - offsets[b]
    index = np.stack([own % ni, own // ni % nj, own // (ni * nj)])
    box = np.array(state.part.box)
    inside = ((index >= box[:, :1]) & (index < box[:, 1:])).all(axis=0)
    local = index[:, inside] - np.reshape(state.first, (3, 1))
    return mine[inside], state.origin + np.array(state.strides) @ local
