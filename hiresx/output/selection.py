"""What is written of a field: whole blocks, ranges of nodes, planes, lines; and which nodes the device must give for
it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import cut, derived
from hiresx.output.differences import Metrics
from hiresx.rhs.gas import primitive

Box = tuple[slice, slice, slice]

# The 6th-order central difference reaches three nodes to each side; the one-sided ones at a face take seven nodes.
_REACH, _EDGE = 3, 7
# Variables are computed in slabs, so that what is on the way to them takes little memory: of so many layers of nodes
# (those that gradients want beside them are then a fifth), and of so many nodes (or Python's own time would count).
_LAYERS, _NODES = 32, 1 << 16
# Metrics are kept from output to output while those of a source take no more bytes than this.
_KEPT = 1 << 30


@dataclass(eq=False)
class Source:
    """A box of nodes [k, j, i] of block number `block`, and how the values wanted are taken from an array of it.

    `x`, `y`, `z`: coordinates in the box. `take`: from (bk, bj, bi) to any shape; `interpolates`: by arithmetic.
    """

    block: int
    box: Box
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    take: Callable[[np.ndarray], np.ndarray]
    interpolates: bool
    _metrics: dict[tuple[int, int], Metrics] = field(default_factory=dict, repr=False)

    def evaluate(
        self, names: Sequence[str], q: np.ndarray, gamma: float, dtype: np.dtype, workers: int
    ) -> list[np.ndarray]:
        """The variables `names`, as `dtype` (float64 where they are interpolated), of the conservative variables
        q (5, bk, bj, bi), by `workers` threads."""
        shape = self.x.shape
        axis = next((d for d in range(3) if shape[d] > 1), 0)
        found = [np.empty(shape, np.float64 if self.interpolates else dtype) for _ in names]
        local = all(derived.VARIABLES[name].local for name in names)
        length = max(_LAYERS, -(-_NODES * shape[axis] // self.x.size))

        def slab(first: int) -> None:
            last = min(first + length, shape[axis])
            low, high = (first, last) if local else _widened(first, last, shape[axis])
            part, out, inside = (
                (*(slice(None),) * axis, slice(*ends))
                for ends in ((low, high), (first, last), (first - low, last - low))
            )
            state = primitive(gamma, q[(slice(None), *part)].astype(np.float64, copy=False))
            x, y, z = self.x[part], self.y[part], self.z[part]
            flow = derived.Flow(x, y, z, state, gamma, metrics=lambda: self._known_metrics(low, high, x, y, z))
            for values, name in zip(found, names, strict=True):
                values[out] = derived.evaluate([name], flow)[name][inside]

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


@dataclass(eq=False)
class Piece:
    """One block of what is written: its name, the coordinates x, y, z (nk, nj, ni) of its points, and where the values
    come from. With several sources they are put together in `order`. `gaps`: see `cut.line`."""

    name: str
    sources: Sequence[Source]
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    order: np.ndarray | None = None
    gaps: tuple[int, ...] = ()

    def evaluate(
        self, names: Sequence[str], states: Sequence[np.ndarray], gamma: float, dtype: np.dtype, workers: int
    ) -> dict[str, np.ndarray]:
        """The variables `names` (nk, nj, ni) as `dtype`, of the conservative variables of each source."""
        parts = [
            source.evaluate(names, q, gamma, dtype, workers) for source, q in zip(self.sources, states, strict=True)
        ]
        found = {}
        for name, of_sources in zip(names, zip(*parts, strict=True), strict=True):
            values = of_sources[0]
            if self.order is not None:
                values = np.concatenate([part.ravel() for part in of_sources])[self.order]
            found[name] = values.reshape(self.x.shape).astype(dtype, copy=False)
        return found


class Values(Mapping):
    """The variables `names` of type `dtype`, by name, all computed by `evaluate` when the first is asked for.

    Of those that share a list `known`, the one asked last holds its values, the others compute them anew; without one
    each holds its own.
    """

    def __init__(
        self,
        names: Sequence[str],
        dtype: np.dtype,
        evaluate: Callable[[], dict[str, np.ndarray]],
        known: "list[Values] | None" = None,
    ):
        self.dtype = np.dtype(dtype)
        self._names, self._evaluate, self._known = tuple(names), evaluate, known
        self._values: dict[str, np.ndarray] | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        if self._values is None:
            if self._known is not None:
                for other in self._known:
                    other._values = None
                self._known[:] = [self]
            self._values = self._evaluate()
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def whole(blocks: Sequence[Any]) -> list[Piece]:
    """Every node of `blocks` (anything with name, x, y, z)."""
    return [_nodes(n, block, [(0, size, 1) for size in block.x.shape], margin=False) for n, block in enumerate(blocks)]


def subset(spec: Any, blocks: Sequence[Any], variables: Sequence[str]) -> list[Piece]:
    """The part of `blocks` that `spec` (hiresx.case.outputs.Subset) describes, for these variables.

    Raises HiresxError naming the subset for blocks that are not there, ranges beyond a block, and planes and lines that
    do not meet the grid.
    """
    place = f'output.subset "{spec.name}"'
    names = [block.name for block in blocks]
    for name in spec.blocks or ():
        if name not in names:
            raise HiresxError(f'{place}: there is no block "{name}"', f"blocks: {', '.join(names)}")
    chosen = [(n, block) for n, block in enumerate(blocks) if spec.blocks is None or block.name in spec.blocks]
    margin = not all(derived.VARIABLES[name].local for name in variables)
    if spec.range is not None:
        return [_nodes(n, block, _ranges(spec.range, block, place), margin) for n, block in chosen]
    dimensions = max(sum(n > 1 for n in block.x.shape) for block in blocks)
    grids = [{axis: getattr(block, axis) for axis in "xyz"} for _, block in chosen]
    try:
        if spec.plane is not None:
            return _plane(spec.plane, chosen, grids, dimensions, margin)
        return [_line(spec.line, chosen, grids, dimensions, margin)]
    except HiresxError as error:
        raise HiresxError(f"{place}: {error.message}", error.mend) from None


def describe(spec: Any) -> str:
    """What a subset is, in a few words."""
    if spec.range is not None:
        ranges = (f"{axis} = [{', '.join(map(str, nodes))}]" for axis, nodes in spec.range.items())
        return f"nodes {', '.join(ranges) or 'of whole blocks'}"
    kind, fixed = ("plane", spec.plane) if spec.plane is not None else ("line", spec.line)
    return f"{kind} {', '.join(f'{axis} = {value:g}' for axis, value in fixed.items())}"


def _ranges(spec: Mapping[str, tuple], block: Any, place: str) -> list[tuple[int, int, int]]:
    """(first, last + 1, stride) in the order of an array's axes."""
    found = []
    for axis, size in zip("kji", block.x.shape, strict=True):
        first, last, stride = (*spec.get(axis, (0, "end")), 1)[:3]
        last = size if last == "end" else last + size * (last < 0)
        start = first + size * (first < 0)
        if not 0 <= start < last <= size:
            raise HiresxError(
                f'{place}: range.{axis} = [{first}, {spec[axis][1]}] holds no nodes of block "{block.name}", which has '
                f"{size} along {axis}",
                f"give [first, last + 1] between 0 and {size}, or name the blocks it is meant for: blocks = [...]",
            )
        found.append((start, last, stride))
    return found


def _nodes(number: int, block: Any, ranges: list[tuple[int, int, int]], margin: bool) -> Piece:
    box, inside = [], []
    for (first, last, stride), size in zip(ranges, block.x.shape, strict=True):
        low, high = _widened(first, last, size) if margin else (first, last)
        box.append(slice(low, high))
        inside.append(slice(first - low, last - low, stride))
    index = tuple(inside)
    source = _source(number, block, tuple(box), lambda values: values[index], interpolates=False)
    return Piece(block.name, [source], *(np.ascontiguousarray(c[index]) for c in (source.x, source.y, source.z)))


def _plane(fixed: Mapping[str, float], chosen: list, grids: list, dimensions: int, margin: bool) -> list[Piece]:
    if dimensions < 3:
        raise HiresxError(
            f"a plane needs a three-dimensional field, this one has {dimensions} dimension(s)",
            'take "line" in two dimensions, or "range"',
        )
    ((axis, value),) = fixed.items()
    pieces, sheets = [], {}
    for n, samples in cut.plane_samples(grids, axis, value):
        number, block = chosen[n]
        sheets[n] = sheets.get(n, 0) + 1
        # A block can meet a plane more than once.
        name = block.name if sheets[n] == 1 else f"{block.name}@{sheets[n]}"
        at = [samples(grids[n][a])[None] for a in "xyz"]
        pieces.append(Piece(name, [_sampled(number, block, samples, margin)], *at))
    return pieces


def _line(fixed: Mapping[str, float], chosen: list, grids: list, dimensions: int, margin: bool) -> Piece:
    wanted = dimensions - 1
    if wanted < 1 or len(fixed) != wanted or (dimensions == 2 and "z" in fixed):
        raise HiresxError(
            f"line fixes {', '.join(fixed)}: that is no line in {dimensions} dimension(s)",
            {1: 'take "range"', 2: "fix one of x and y"}.get(dimensions, "fix two of x, y and z"),
        )
    *planes, (axis, value) = fixed.items()
    if planes:
        first = cut.plane_samples(grids, *planes[0])
    else:
        first = [(n, _every_node(np.squeeze(grid["x"]).shape)) for n, grid in enumerate(grids)]
    flat = [{a: sheet(grids[n][a]) for a in "xyz"} for n, sheet in first]
    parts, order, gaps = cut.line_samples(flat, axis, value)
    sources, at = [], {a: [] for a in "xyz"}
    for m, crossing in parts:
        n, sheet = first[m]
        samples = crossing.of(sheet)
        sources.append(_sampled(*chosen[n], samples, margin))
        for a in "xyz":
            at[a].append(samples(grids[n][a]))
    coordinates = (np.concatenate(at[a])[order][None, None] for a in "xyz")
    return Piece("line", sources, *coordinates, order=order, gaps=tuple(int(n) for n in gaps))


def _every_node(shape: tuple[int, ...]) -> cut.Samples:
    return cut.Samples(np.arange(np.prod(shape)).reshape(1, *shape), np.ones((1, *shape)))


def _sampled(number: int, block: Any, samples: cut.Samples, margin: bool) -> Source:
    """The source of `samples` of a block, with their nodes counted in its box."""
    known = np.isfinite(samples.weights)
    nodes = np.where(known, samples.nodes, samples.nodes[known][0])
    at = np.unravel_index(nodes, block.x.shape)
    box = []
    for index, size in zip(at, block.x.shape, strict=True):
        first, last = int(index.min()), int(index.max()) + 1
        box.append(slice(*(_widened(first, last, size) if margin else (first, last))))
    local = [index - part.start for index, part in zip(at, box, strict=True)]
    inside = cut.Samples(np.ravel_multi_index(local, [part.stop - part.start for part in box]), samples.weights)
    return _source(number, block, tuple(box), inside, interpolates=True)


def _source(number: int, block: Any, box: Box, take: Callable, interpolates: bool) -> Source:
    return Source(number, box, block.x[box], block.y[box], block.z[box], take, interpolates)


def _widened(first: int, last: int, size: int) -> tuple[int, int]:
    """The nodes from which derivatives at the nodes first..last-1 follow as they would from all `size`."""
    low, high = max(first - _REACH, 0), min(last + _REACH, size)
    if low == 0:
        high = max(high, min(_EDGE, size))
    if high == size:
        low = min(low, max(size - _EDGE, 0))
    return low, high
