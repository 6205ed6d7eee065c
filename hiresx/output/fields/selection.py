"""Selections of the grid for output: whole blocks, ranges of nodes, planes, lines.

One process determines them from the whole blocks, and can send them to the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.errors import HiresxError
from hiresx.output.fields import cut

# Fraction of a cell within which a point counts as lying in its face.
_IN_FACE = 1e-9
# (first, last + 1, stride)
Nodes = tuple[int, int, int]


@dataclass(frozen=True)
class NodeBlock:
    """A range of nodes of a block of the grid, which is written as one block called `name`. `block`: index of the block
    of the grid. `ranges`: along k, j and i the first node, the last node + 1 and the stride."""

    name: str
    block: int
    ranges: tuple[Nodes, Nodes, Nodes]

    gaps = ()
    # Whether some points are missing; they are NaN in a file.
    incomplete = False
    kinds = None

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Number of selected nodes, (nk, nj, ni)."""
        return triple(len(range(*nodes)) for nodes in self.ranges)


@dataclass(frozen=True, eq=False)
class SampledBlock:
    """Points between nodes that are written as one block `name` of the `shape` (nk, nj, ni), with p = nk nj ni points.

    The value at a point is a weighted mean of m nodes. `blocks` (p,): the number of the block in which the point lies.
    `nodes` (m, p): flat indexes of the nodes in that block. `weights` (m, p): their weights. `missing` (p,): whether
    the point lies outside the grid; such a point has the nodes of another point. `gaps`: the indexes of the points
    before which a line leaves the grid. `kinds` (nk - 1, nj - 1, ni - 1; at least 1 each): the kind of each cell
    between the points, for grids with levels of refinement (`level_cells.cell_kinds`)."""

    name: str
    shape: tuple[int, int, int]
    blocks: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray
    missing: np.ndarray
    gaps: tuple[int, ...] = ()
    kinds: np.ndarray | None = None

    @cached_property
    def incomplete(self) -> bool:
        """Whether some points lie outside the grid and thus have no value."""
        return bool(self.missing.any())


Piece = NodeBlock | SampledBlock


def whole(blocks: Sequence[Any]) -> list[Piece]:
    """Return the selection of all nodes of all blocks, as a list with a `NodeBlock` for each block. `blocks`: objects
    with name, x, y, z."""
    return [NodeBlock(block.name, n, triple((0, size, 1) for size in block.x.shape)) for n, block in enumerate(blocks)]


def subset(
    spec: Any,
    blocks: Sequence[Any],
    of_grid: Sequence[str] | None = None,
    kinds: Callable[[], Sequence[np.ndarray]] | None = None,
) -> list[Piece]:
    """Return the points of the grid that a table [[output.subset]] of a case selects, as a list of ranges of nodes and
    of points between nodes. `spec`: the table (hiresx.case.outputs.Subset). `blocks`: the blocks of all levels of
    refinement, objects with name, x, y, z. Ranges select nodes of the named blocks only; planes and lines also cut the
    finer blocks in them. `of_grid`: for each block the name of the unrefined block in which it lies; None without
    levels. `kinds`: a function that returns which cells of each block are hidden under finer ones
    (`level_cells.cell_kinds`). Raises HiresxError, which names the subset, for blocks that do not exist, ranges beyond
    a block, and planes and lines that do not meet the grid."""
    place = f'output.subset "{spec.name}"'
    names = [block.name for block in blocks]
    for name in spec.blocks or ():
        if name not in names:
            raise HiresxError(f'{place}: there is no block "{name}"', f"blocks: {', '.join(names)}")
    wanted, of_grid = spec.blocks or of_grid or names, of_grid or names
    if spec.range is not None:
        ranged = [(n, block) for n, block in enumerate(blocks) if block.name in wanted]
        return [NodeBlock(block.name, n, _ranges(spec.range, block, place)) for n, block in ranged]
    chosen = [(n, block) for n, block in enumerate(blocks) if block.name in wanted or of_grid[n] in wanted]
    dimensions = max(sum(n > 1 for n in block.x.shape) for block in blocks)
    grids = [{axis: getattr(block, axis) for axis in "xyz"} for _, block in chosen]
    try:
        if spec.plane is not None:
            return _plane(spec.plane, chosen, grids, dimensions, None if kinds is None else kinds())
        return [_line(spec.line, chosen, grids, dimensions)]
    except HiresxError as error:
        raise HiresxError(f"{place}: {error.message}", error.hint) from None


def describe(spec: Any) -> str:
    """Return a short description of a subset of the fields, such as "plane z = 0". `spec`: the table [[output.subset]]
    of the case (`hiresx.case.outputs.Subset`)."""
    if spec.range is not None:
        ranges = (f"{axis} = [{', '.join(map(str, nodes))}]" for axis, nodes in spec.range.items())
        return f"nodes {', '.join(ranges) or 'of whole blocks'}"
    kind, fixed = ("plane", spec.plane) if spec.plane is not None else ("line", spec.line)
    return f"{kind} {', '.join(f'{axis} = {value:g}' for axis, value in fixed.items())}"


def _ranges(spec: Mapping[str, tuple[int, int]], block: Any, place: str) -> tuple[Nodes, Nodes, Nodes]:
    """Return the ranges in the order of an array's axes."""
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
    return triple(found)


def _plane(
    fixed: Mapping[str, float],
    chosen: list[tuple[int, Any]],
    grids: list[Any],
    dimensions: int,
    kinds: Sequence[np.ndarray] | None,
) -> list[Piece]:
    if dimensions < 3:
        raise HiresxError(
            f"a plane needs a three-dimensional field, this one has {dimensions} dimension(s)",
            'take "line" in two dimensions, or "range"',
        )
    ((axis, value),) = fixed.items()
    pieces: list[Piece] = []
    sheets: dict[int, int] = {}
    for n, samples in cut.plane_samples(grids, axis, value):
        number, block = chosen[n]
        sheets[n] = sheets.get(n, 0) + 1
        # A block can meet a plane more than once.
        name = block.name if sheets[n] == 1 else f"{block.name}@{sheets[n]}"
        piece = _sampled_block(name, (1, *samples.nodes.shape[1:]), [(number, samples)])
        if kinds is not None:
            piece = replace(piece, kinds=_kinds_of_sheet(samples, block.x.shape, kinds[number]))
        pieces.append(piece)
    return pieces


def _kinds_of_sheet(samples: cut.WeightedPlaces, shape: tuple[int, ...], kinds: np.ndarray) -> np.ndarray:
    """Return the kinds of the cells between samples (a, b) of a block (nk, nj, ni), an array (1, a - 1, b - 1). A cell
    has the kind, from `kinds`, of the cell of the block that contains its middle."""
    nodes = np.stack(np.unravel_index(samples.nodes, shape))
    at = (nodes * samples.weights).sum(axis=1)
    middles = 0.25 * (at[:, :-1, :-1] + at[:, :-1, 1:] + at[:, 1:, :-1] + at[:, 1:, 1:])
    # A point in a face between cells belongs to the cell behind it, on every level.
    behind = np.floor(np.nan_to_num(middles) + _IN_FACE).astype(int)
    cells = [np.minimum(index, n - 1) for index, n in zip(behind, kinds.shape, strict=True)]
    return kinds[tuple(cells)][None]


def _line(fixed: Mapping[str, float], chosen: list[tuple[int, Any]], grids: list[Any], dimensions: int) -> Piece:
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
    crossings, order, gaps = cut.line_samples(flat, axis, value)
    parts = [(chosen[first[m][0]][0], crossing.of(first[m][1])) for m, crossing in crossings]
    return _sampled_block("line", (1, 1, len(order)), parts, order, tuple(int(n) for n in gaps))


def _every_node(shape: tuple[int, ...]) -> cut.WeightedPlaces:
    return cut.WeightedPlaces(np.arange(np.prod(shape)).reshape(1, *shape), np.ones((1, *shape)))


def _sampled_block(
    name: str,
    shape: tuple[int, int, int],
    parts: Sequence[tuple[int, cut.WeightedPlaces]],
    order: np.ndarray | slice = slice(None),
    gaps: tuple[int, ...] = (),
) -> SampledBlock:
    """Return the combined samples of `parts` (number of block, samples). `order` selects the samples to keep."""
    flat = [(n, samples.nodes, samples.weights) for n, samples in parts]
    flat = [(n, nodes.reshape(len(nodes), -1), weights.reshape(len(nodes), -1)) for n, nodes, weights in flat]
    blocks = np.concatenate([np.full(nodes.shape[1], n) for n, nodes, _ in flat])[order]
    nodes, weights = (np.concatenate([part[m] for part in flat], axis=1)[:, order] for m in (1, 2))
    missing = ~np.isfinite(weights).all(axis=0)
    if missing.any():
        there = int(np.argmin(missing))
        blocks[missing] = blocks[there]
        nodes[:, missing], weights[:, missing] = nodes[:, there, None], weights[:, there, None]
    return SampledBlock(name, shape, blocks, nodes, weights, missing, gaps)
