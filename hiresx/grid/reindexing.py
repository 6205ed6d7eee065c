"""Changes of the indexes of a grid: directions permuted, reversed or coarsened. Regions, connections and periods are
changed accordingly."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.grid.blocks import AXES, FACES, Block, Range, RawBlock, direction, side
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.motions import Motion, Vector
from hiresx.grid.stored_coordinates import Nodes, StoredCoordinates


@dataclass(frozen=True)
class Reindexing:
    """A change of a block's indexes. The new direction d is the old direction `order[d]`, from its last node to its
    first if `reverse[d]`, with every `step[d]`-th node. The old directions in `thin` become directions with a single
    node, which is node 0."""

    order: tuple[int, int, int] = (0, 1, 2)
    reverse: tuple[bool, bool, bool] = (False, False, False)
    step: tuple[int, int, int] = (1, 1, 1)
    thin: tuple[int, ...] = ()

    @property
    def still(self) -> bool:
        """Whether all indexes remain the same."""
        return self == Reindexing()

    def matrix(self, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear map from new to old indexes: an integer matrix M (3, 3) and a vector c (3,) with old index
        = M @ new index + c. `size`: (ni, nj, nk) of the block before the change."""
        m, c = np.zeros((3, 3), dtype=int), np.zeros(3, dtype=int)
        for d, old in enumerate(self.order):
            if old in self.thin:
                m[old, d] = 1
                continue
            m[old, d] = -self.step[d] if self.reverse[d] else self.step[d]
            c[old] = size[old] - 1 if self.reverse[d] else 0
        return m, c

    def array(self, values: Nodes) -> Nodes:
        """Return node values of a block, an array [k, j, i], rearranged in the order of the new indexes."""
        if isinstance(values, StoredCoordinates) and (self.order, self.step, self.thin) == ((0, 1, 2), (1, 1, 1), ()):
            return values.reverse_axes(self.reverse[::-1])
        cut = [slice(0, 1) if old in self.thin else slice(None) for old in (2, 1, 0)]
        turned = values[tuple(cut)].transpose([2 - self.order[d] for d in (2, 1, 0)])
        steps = [slice(None, None, -1 if self.order[d] not in self.thin and self.reverse[d] else 1) for d in (2, 1, 0)]
        return np.ascontiguousarray(turned[tuple(steps)][tuple(slice(None, None, self.step[d]) for d in (2, 1, 0))])

    def face(self, name: str) -> str | None:
        """Return the name of a block face after the change of indexes; None if only one node is left in the direction
        normal to the face. `name`: the old name, such as "imin"."""
        old = direction(name)
        if old in self.thin:
            return None
        d = self.order.index(old)
        return FACES[2 * d + ((side(name) > 0) != self.reverse[d])]

    def range(self, range_: Range, size: tuple[int, int, int]) -> Range:
        """Return half-open index ranges after the change of indexes. They contain those nodes of `range_` that are
        kept. `size`: (ni, nj, nk) of the block before the change."""
        result = []
        for d, old in enumerate(self.order):
            lo, hi = range_[old]
            if old in self.thin:
                result.append((0, 1))
                continue
            if self.reverse[d]:
                lo, hi = size[old] - hi, size[old] - lo
            result.append((-(-lo // self.step[d]), (hi - 1) // self.step[d] + 1))
        return triple(result)


def reindex(grid: Grid, by: Sequence[Reindexing]) -> Grid:
    """Return the grid with the indexes of every block permuted, reversed or coarsened. `by`: the change of the indexes
    of each block. Regions, connections and periods are changed accordingly. Regions and connections on faces are
    removed if a single node is left in the direction normal to the face (`Reindexing.thin`)."""
    sizes = [block.size for block in grid.blocks]
    blocks = [_block(block, r) for block, r in zip(grid.blocks, by, strict=True)]
    connections = [
        _connection(c, by[c.block], by[c.donor], sizes[c.block], sizes[c.donor])
        for c in grid.connections
        if by[c.block].face(c.face) is not None
    ]
    period: list[dict[str, Vector | Motion]] = []
    for known, r in zip(grid.period, by, strict=True):
        period.append({})
        for axis, moved in known.items():
            old = AXES.index(axis)
            if old not in r.thin:
                d = r.order.index(old)
                period[-1][AXES[d]] = _inverse(moved) if r.reverse[d] else moved
    return Grid(tuple(blocks), tuple(connections), tuple(period))


def _block(block: Block, r: Reindexing) -> Block:
    if r.still:
        return block
    regions = {
        name: tuple((new, r.range(range_, block.size)) for face, range_ in parts if (new := r.face(face)) is not None)
        for name, parts in block.regions.items()
    }
    return RawBlock(block.name, *triple(r.array(c) for c in block.coordinates), regions, block.rounding)


def _connection(c: Connection, own: Reindexing, donor: Reindexing, size: Size, donor_size: Size) -> Connection:
    m, o = own.matrix(size)
    n, p = donor.matrix(donor_size)
    matrix, offset = np.array(c.matrix), np.array(c.offset)
    # old donor index = matrix (m i + o) + offset = n i' + p
    inverse = np.linalg.inv(n.astype(float))
    new = np.rint(inverse @ matrix @ m).astype(int)
    shift = np.rint(inverse @ (matrix @ o + offset - p)).astype(int)
    if own.thin:
        new[2, :2], new[:2, 2], new[2, 2], shift[2] = 0, 0, 1, 0
    return replace(
        c,
        face=own.face(c.face) or c.face,
        range=own.range(c.range, size),
        matrix=triple(map(triple, new.tolist())),
        offset=triple(shift.tolist()),
    )


def _inverse(moved: Vector | Motion) -> Vector | Motion:
    return moved.inverse if isinstance(moved, Motion) else triple(-m for m in moved)
