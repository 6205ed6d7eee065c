"""The points of an output whose values one process computes: the points in the boxes of nodes that this process has.

Derivatives at a node take three nodes to each side along grid lines, or seven at the face of a block. Where a block is
divided between processes, these nodes are ghost nodes, so that values do not depend on the division. A point between
nodes of several processes belongs to the process that has the first of these nodes; the others send it the values at
their nodes (see `LocalSamples`)."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from hiresx.base.arrays import triple, weighted_mean
from hiresx.decomposition import Part
from hiresx.equations.gas import Gas
from hiresx.equations.stencil import DIFFERENCE_NODES as NODES
from hiresx.equations.stencil import DIFFERENCE_REACH as REACH
from hiresx.output.fields import derived
from hiresx.output.fields.differences import Metrics
from hiresx.output.fields.selection import NodeBlock, SampledBlock
from hiresx.output.saved.places import IndexBox, IndexPoints, LocalRegion

# [k, j, i]
Slices = tuple[slice, slice, slice]

# Variables are computed in slabs, so that intermediate results take little memory. Smallest number of layers of a slab
# (the layers beside it that gradients need are then a fifth of it), and smallest number of its nodes (for fewer, the
# overhead of Python would count).
_LAYERS, _NODES = 32, 1 << 16
# Metrics are cached between outputs if those of a source take no more bytes than this.
_KEPT = 1 << 30


class LocalState(NamedTuple):
    """The flow at the nodes of a box: the conservative variables `q` (variables, bk, bj, bi), and further `fields` (bk,
    bj, bi) by name, such as turbulence variables."""

    q: np.ndarray
    fields: Mapping[str, np.ndarray] = MappingProxyType({})


@dataclass(eq=False)
class PartBox:
    """A box of nodes of a block whose values this process has. `state`: index of the process's state arrays that
    contain the box, including ghost nodes at cuts. `box`: its half-open index ranges (i, j, k) in the whole block. `x`,
    `y`, `z` (bk, bj, bi): coordinates in the box. `take`: a function that selects the values to write from an array
    (bk, bj, bi); its result may have any shape. `margin`: whether variables need gradients; the box then includes the
    nodes that the differences read."""

    state: int
    box: Slices
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    take: Callable[[np.ndarray], np.ndarray]
    margin: bool = True
    _metrics: dict[tuple[int, int], Metrics] = field(default_factory=dict, repr=False)

    def evaluate(
        self, names: Sequence[str], held: LocalState, gas: Gas, dtype: np.dtype, workers: int
    ) -> list[np.ndarray]:
        """Compute the variables `names` at the nodes of this box, and return for each an array of type `dtype`. It has
        those values that the attribute `take` (a function) selects from the values in the whole box. `held`: the
        conservative variables and further fields in the box. `gas`: the gas of the case. `workers`: number of threads
        that compute."""
        shape = self.x.shape
        axis = next((d for d in range(3) if shape[d] > 1), 0)
        found = [np.empty(shape, dtype) for _ in names]
        length = max(_LAYERS, -(-_NODES * shape[axis] // self.x.size))

        def slab(first: int) -> None:
            last = min(first + length, shape[axis])
            low, high = _widen(first, last, shape[axis]) if self.margin else (first, last)
            part, out, inside = (
                (*(slice(None),) * axis, slice(*ends))
                for ends in ((low, high), (first, last), (first - low, last - low))
            )
            # Ghosts beyond edges have no meaning and are not used.
            with np.errstate(all="ignore"):
                state = gas.primitive(held.q[(slice(None), *part)].astype(np.float64, copy=False))
                state |= {name: array[part].astype(np.float64) for name, array in held.fields.items()}
                # Variables of the state are used as they are.
                more = [name for name in names if name not in state]
                if more:
                    x, y, z = self.x[part], self.y[part], self.z[part]
                    flow = derived.FlowState(x, y, z, state, gas.gamma, lambda: self._known_metrics(low, high, x, y, z))
                for values, name in zip(found, names, strict=True):
                    value = derived.evaluate([name], flow)[name] if name in more else state[name]
                    values[out] = value[inside]

        starts = range(0, shape[axis], length)
        if workers > 1 and len(starts) > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(slab, starts))
        else:
            for first in starts:
                slab(first)
        return [self.take(values) for values in found]

    def _known_metrics(self, low: int, high: int, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Metrics:
        if (low, high) in self._metrics:
            return self._metrics[low, high]
        metrics = Metrics(x, y, z)
        if 9 * self.x.nbytes <= _KEPT:
            self._metrics[low, high] = metrics
        return metrics


class LocalBoxes:
    """The nodes of an output block that this process computes, for an output of whole blocks or ranges of nodes.
    `piece`: the output block. `blocks`: the whole blocks of the grid. `own`: the boxes of nodes that this process
    computes. `margin`: whether variables need gradients."""

    waits = False

    def __init__(self, piece: NodeBlock, blocks: Sequence[Any], own: Sequence[Part], margin: bool):
        self.sources: list[PartBox] = []
        self._places: list[tuple[IndexBox, tuple[np.ndarray, ...]]] = []
        block = blocks[piece.block]
        for n, part in enumerate(own):
            if part.whole != piece.block:
                continue
            ends = [_intersect(nodes, box) for nodes, box in zip(piece.ranges, reversed(part.box), strict=True)]
            if any(low >= high for low, high in ends):
                continue
            chosen = [range(*nodes)[low:high] for nodes, (low, high) in zip(piece.ranges, ends, strict=True)]
            source = _source(n, block, [(nodes[0], nodes[-1] + 1) for nodes in chosen], margin)
            index = tuple(
                slice(nodes[0] - box.start, nodes[-1] + 1 - box.start, nodes.step)
                for nodes, box in zip(chosen, source.box, strict=True)
            )
            source.take = itemgetter(index)
            self.sources.append(source)
            self._places.append(
                (IndexBox(piece.shape, triple(ends)), triple(source.take(c) for c in (source.x, source.y, source.z)))
            )

    def regions(
        self, names: Sequence[str], states: Sequence[LocalState], gas: Gas, dtype: np.dtype, workers: int
    ) -> tuple[list[LocalRegion], None]:
        """Return the output variables `names` at the nodes of the output that this process computes, as objects for the
        writers of files. The second result is None, since no value of another process is needed. `states`: the flow in
        each box of the attribute `sources`, in the same order. `gas`: the gas of the case. `dtype`: type of the
        results. `workers`: number of threads."""
        found = [s.evaluate(names, held, gas, dtype, workers) for s, held in zip(self.sources, states, strict=True)]
        return [
            LocalRegion(place, x, y, z, dict(zip(names, values, strict=True)))
            for (place, (x, y, z)), values in zip(self._places, found, strict=True)
        ], None


class LocalSamples:
    """The points of an output plane or line `piece` whose values this process computes, and the values that it
    exchanges for them with other processes. A value at a point is a weighted mean of values at nodes, which may lie on
    several processes.

    `blocks`: the whole blocks of the grid. `parts`: the boxes of nodes of all `ranks` processes. `own`: the boxes of
    this process, which has the number `rank`. `margin`: whether variables need gradients. The values at the nodes of
    this process are numbered first. The values from other processes follow, by rank, and for each rank in the order of
    the points and of their nodes. Sender and receiver derive this order from `piece` and `parts`."""

    def __init__(
        self, piece: SampledBlock, blocks: Sequence[Any], parts: Sequence[Part], own: Sequence[Part], rank: int,
        ranks: int, margin: bool,
    ):  # fmt: skip
        self.sources: list[PartBox] = []
        slots = np.full(piece.nodes.shape, -1)
        self._count = 0
        for n, part in enumerate(own):
            self._add_part(n, part, piece, blocks, slots, margin)
        mine = slots[0] >= 0
        theirs = ~mine & (slots >= 0).any(axis=0)
        lacking = mine & (slots < 0).any(axis=0)
        # Whether points of this process need values of other processes, or other processes need values of this one.
        self.waits = bool(theirs.any() or lacking.any())
        self._send = [np.empty(0, np.int64)] * ranks
        if self.waits:
            self._send = self._outgoing(piece, blocks, parts, slots, np.flatnonzero(theirs), ranks)
            self._await(piece, blocks, parts, slots, np.flatnonzero(lacking), ranks)
        self._ready, self._late = (
            _Points(piece, blocks, slots, np.flatnonzero(chosen)) for chosen in (mine & ~lacking, lacking)
        )

    def _add_part(
        self, n: int, part: Part, piece: SampledBlock, blocks: Sequence[Any], slots: np.ndarray, margin: bool
    ) -> None:
        here = np.flatnonzero(piece.blocks == part.whole)
        if not here.size:
            return
        block = blocks[part.whole]
        inside = _inside(part, np.unravel_index(piece.nodes[:, here], block.x.shape))
        if not inside.any():
            return
        wanted, place = np.unique(piece.nodes[:, here][inside], return_inverse=True)
        rows, columns = np.nonzero(inside)
        slots[rows, here[columns]] = self._count + place
        self._count += wanted.size
        at = np.unravel_index(wanted, block.x.shape)
        source = _source(n, block, [(int(index.min()), int(index.max()) + 1) for index in at], margin)
        local = [index - box.start for index, box in zip(at, source.box, strict=True)]
        source.take = itemgetter(tuple(local))
        self.sources.append(source)

    @staticmethod
    def _outgoing(
        piece: SampledBlock,
        blocks: Sequence[Any],
        parts: Sequence[Part],
        slots: np.ndarray,
        points: np.ndarray,
        ranks: int,
    ) -> list[np.ndarray]:
        """Return, for each rank, the positions of the values that it needs from this process."""
        owner = _owners(piece.blocks[points], piece.nodes[0, points], blocks, parts)
        own_slots = slots[:, points]
        return [own_slots.T[(own_slots >= 0).T & (owner == r)[:, None]] for r in range(ranks)]

    def _await(
        self, piece: SampledBlock, blocks: Sequence[Any], parts: Sequence[Part], slots: np.ndarray, points: np.ndarray,
        ranks: int,
    ) -> None:  # fmt: skip
        """Assign positions to the values that other processes send."""
        order, row = np.nonzero(slots[:, points].T < 0)
        which = points[order]
        owner = _owners(piece.blocks[which], piece.nodes[row, which], blocks, parts)
        by_rank = np.argsort(owner, kind="stable")
        slots[row[by_rank], which[by_rank]] = self._count + np.arange(by_rank.size)

    def regions(
        self, names: Sequence[str], states: Sequence[LocalState], gas: Gas, dtype: np.dtype, workers: int
    ) -> tuple[list[LocalRegion], np.ndarray | None]:
        """Return the output variables `names` at those points of the output that are interpolated only from nodes of
        this process, as objects for the writers of files. The second result is an array (variables, nodes) of the
        values at all nodes of this process, from which values for other points follow, or None if no process needs it.
        `states`: the flow in each box of the attribute `sources`, in the same order. `gas`: the gas of the case.
        `dtype`: type of the results. `workers`: number of threads."""
        values = np.empty((len(names), self._count))
        first = 0
        for source, held in zip(self.sources, states, strict=True):
            found = source.evaluate(names, held, gas, np.dtype("f8"), workers)
            values[:, first : first + found[0].size] = found
            first += found[0].size
        return self._ready.regions(names, values, dtype), values if self.waits else None

    def values_for_ranks(self, values: np.ndarray | None) -> list[np.ndarray]:
        """Return the values that the caller must send from this process to each rank: one array (variables, nodes) for
        each rank, empty if that rank needs none. `values` (variables, nodes): the second result of `regions`, which may
        be None."""
        return [values[:, places] if places.size and values is not None else np.empty((0, 0)) for places in self._send]

    def late_regions(
        self, names: Sequence[str], values: np.ndarray | None, received: Sequence[np.ndarray], dtype: np.dtype
    ) -> list[LocalRegion]:
        """Return the output variables `names` at those points of the output whose interpolation needs values of other
        ranks, as objects for the writers of files; an empty list if there are none. `values`: the second result of
        `regions`. `received`: for each rank an array (variables, nodes) with the values that it sent. `dtype`: type of
        the results."""
        if not self._late.count:
            return []
        return self._late.regions(names, np.concatenate([values, *(r for r in received if r.size)], axis=1), dtype)


class _Points:
    """Some points of a `SampledBlock`: the positions of their nodes in an array of values, and their coordinates."""

    def __init__(self, piece: SampledBlock, blocks: Sequence[Any], slots: np.ndarray, points: np.ndarray):
        self.count = points.size
        self._place = IndexPoints(points)
        self._slots, self._weights = slots[:, points], piece.weights[:, points]
        self._missing = piece.missing[points] if piece.incomplete else None
        self._coordinates = triple(np.empty(self.count) for _ in "xyz")
        nodes, of = piece.nodes[:, points], piece.blocks[points]
        for n in np.unique(of):
            here = of == n
            for axis, found in zip("xyz", self._coordinates, strict=True):
                found[here] = weighted_mean(np.ravel(getattr(blocks[n], axis)), nodes[:, here], self._weights[:, here])

    def regions(self, names: Sequence[str], values: np.ndarray, dtype: np.dtype) -> list[LocalRegion]:
        if not self.count:
            return []
        found = {
            name: weighted_mean(of_nodes, self._slots, self._weights).astype(dtype)
            for name, of_nodes in zip(names, values, strict=True)
        }
        return [LocalRegion(self._place, *self._coordinates, found, self._missing)]


def _intersect(nodes: tuple[int, int, int], box: tuple[int, int]) -> tuple[int, int]:
    """Intersect the `nodes` (first, last + 1, stride) with the range `box`: the first and the last + 1 of those
    within."""
    first, _, stride = nodes
    low, high = (min(max(-(-(end - first) // stride), 0), len(range(*nodes))) for end in box)
    return low, high


def _source(n: int, block: Any, ends: Sequence[tuple[int, int]], margin: bool) -> PartBox:
    """Return the nodes `ends` of part number `n`, with those that derivatives need."""
    box = triple(
        slice(*(_widen(first, last, size) if margin else (first, last)))
        for (first, last), size in zip(ends, block.x.shape, strict=True)
    )
    return PartBox(n, box, block.x[box], block.y[box], block.z[box], lambda values: values, margin)


def _widen(first: int, last: int, size: int) -> tuple[int, int]:
    """Return the nodes from which derivatives at the nodes first..last-1 equal those computed from all `size` nodes."""
    low, high = max(first - REACH, 0), min(last + REACH, size)
    if low == 0:
        high = max(high, min(NODES, size))
    if high == size:
        low = min(low, max(size - NODES, 0))
    return low, high


def _inside(part: Part, at: Sequence[np.ndarray]) -> np.ndarray:
    """Return a mask of the nodes `at` (indexes k, j, i) that are in `part`."""
    found = np.ones(np.shape(at[0]), dtype=bool)
    for index, (low, high) in zip(at, reversed(part.box), strict=True):
        found = found & (index >= low) & (index < high)
    return found


def _owners(numbers: np.ndarray, nodes: np.ndarray, blocks: Sequence[Any], parts: Sequence[Part]) -> np.ndarray:
    """Return the ranks that have `nodes` of the blocks `numbers`."""
    found = np.full(nodes.shape, -1)
    for number in np.unique(numbers):
        here = np.flatnonzero(numbers == number)
        at = np.unravel_index(nodes[here], blocks[number].x.shape)
        for part in parts:
            if part.whole == number:
                found[here[_inside(part, at)]] = part.rank
    return found
