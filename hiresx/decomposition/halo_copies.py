"""Copies of ghost nodes of connected faces: their sources and targets."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.decomposition.patches import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, direction, side
from hiresx.grid.connections import IDENTITY
from hiresx.grid.motions import IntMatrix

LARGEST = int(np.iinfo(np.int32).max)

# Rows along i begin at multiples of this many numbers. If one row then begins at a sector (32 bytes) of a GPU's
# second-level cache, all rows do. Otherwise a warp moves 9 sectors instead of 8, in FP32 5 instead of 4.
ROW = 8


class StridedBox(NamedTuple):
    """Flat indexes of the nodes of a box, a linear function of the indexes along three directions, of which the first
    runs fastest. `sizes`: the numbers of nodes along these directions. `first`: the flat index of the first node.
    `steps`: the differences of the flat indexes from node to node along each direction."""

    sizes: Size
    first: int
    steps: Size

    @property
    def nodes(self) -> int:
        """Number of nodes of the box."""
        return prod(self.sizes)

    def array(self) -> np.ndarray:
        """Return the flat indexes, int32 (nodes,)."""
        i, j, k = (np.arange(n) * step for n, step in zip(self.sizes, self.steps, strict=True))
        return ((k + self.first)[:, None, None] + j[:, None] + i).ravel().astype(np.int32)


@dataclass(frozen=True, eq=False)
class HaloList:
    """The nodes from which the ghosts of one connection are copied.

    `ghosts`, `donors`: flat indexes into the padded arrays (`padded_shape`) of `block` and `donor`. `direction`: the
    direction (0, 1, 2) of the connected face of `block`. `donor_direction`, `sign`: the flux of `block` through this
    face is `sign` times the flux of the donor along `donor_direction`. `rotation`: the matrix that rotates vectors of
    the donor into the axes of the block; None if no rotation is needed.
    """

    donor: int
    block: int
    connection: int
    face: str
    ghosts: StridedBox
    donors: StridedBox
    direction: int
    donor_direction: int
    sign: int
    rotation: tuple[tuple[float, float, float], ...] | None = None

    @property
    def destination(self) -> np.ndarray:
        """The ghosts, int32 (n,), as flat indexes in ascending order."""
        return self.ghosts.array()

    @property
    def source(self) -> np.ndarray:
        """For each ghost the node from which it is copied, int32 (n,), as a flat index."""
        return self.donors.array()


def padding(block: Block, halo: int) -> tuple[int, int, int]:
    """Return the numbers of ghost layers (hi, hj, hk) that the arrays of a block have on each side: `halo`, or 0 in
    directions with a single node."""
    return _padding(block.size, halo)


@lru_cache(maxsize=4096)
def _padding(size: Size, halo: int) -> Size:
    return triple(halo if n > 1 else 0 for n in size)


def padded_shape(block: Block, halo: int) -> tuple[int, int, int]:
    """Return the shape (nk + 2 hk, nj + 2 hj, ni + 2 hi) of an array of a block with ghost nodes. hi, hj and hk are
    `halo`, or 0 in directions with a single node. The last direction with more than one node is enlarged to a multiple
    of 8; the additional entries are not used."""
    return _padded_shape(block.size, halo)


@lru_cache(maxsize=4096)
def _padded_shape(size: Size, halo: int) -> Size:
    nk, nj, ni = triple(n + 2 * h for n, h in zip(reversed(size), reversed(_padding(size, halo)), strict=True))
    return nk, nj, ni if ni == 1 else -(-ni // ROW) * ROW


def halo_lists(decomposition: Decomposition, mine: Collection[int] | None = None) -> list[HaloList]:
    """Return, for each connection between blocks, the list of ghost nodes and of the nodes whose values they receive,
    ordered by (donor, block, connection). `decomposition`: the blocks after their division among the ranks. `mine`:
    indexes of blocks. If it is not None, only the lists are returned that fill ghosts of these blocks, or copy from
    their nodes; the list of a connection does not depend on `mine`.

    All stencils run along one grid direction. Therefore no ghost value beside an edge or a corner is ever read, and the
    lists do not contain such ghosts. Raises HiresxError for a block whose arrays with ghosts have more nodes than an
    int32 can count."""
    halo = decomposition.stencil.halo
    for block in decomposition.blocks:
        if prod(padded_shape(block, halo)) > LARGEST:
            raise HiresxError(
                f"block '{block.name}' of {' x '.join(map(str, block.size))} nodes has more than {LARGEST} with its "
                "ghost layers",
                "cut it into several blocks",
            )
    lists = []
    for n, connection in enumerate(decomposition.connections):
        if mine is not None and connection.block not in mine and connection.donor not in mine:
            continue
        block, donor = decomposition.blocks[connection.block], decomposition.blocks[connection.donor]
        c = connection
        ghosts, donors = _ends(c.face, c.range, c.matrix, c.offset, block.size, donor.size, halo)
        lists.append(
            HaloList(
                donor=connection.donor,
                block=connection.block,
                connection=n,
                face=connection.face,
                ghosts=ghosts,
                donors=donors,
                direction=direction(connection.face),
                donor_direction=connection.donor_direction,
                sign=connection.sign,
                rotation=getattr(connection, "rotation", None),
            )
        )
    return sorted(lists, key=lambda entry: (entry.donor, entry.block, entry.connection))


@lru_cache(maxsize=4096)
def _ends(
    face: str, range_: Range, matrix: IntMatrix, offset: Size, size: Size, donor: Size, halo: int
) -> tuple[StridedBox, StridedBox]:
    """Return `ghosts` and `donors` of the list of a connection between blocks of two sizes."""
    d, n = direction(face), size[direction(face)]
    ends = [of if e != d else (-halo, 0) if side(face) < 0 else (n, n + halo) for e, of in enumerate(range_)]
    # i fastest, as in memory: kernels that follow the list then read and write in order
    found = []
    for of, turn, first in ((size, IDENTITY, (0, 0, 0)), (donor, matrix, offset)):
        _, nj, ni = _padded_shape(of, halo)
        strides = (1, ni, ni * nj)
        steps = triple(sum(row[e] * s for row, s in zip(turn, strides, strict=True)) for e in range(3))
        begin = sum((o + h) * s for o, h, s in zip(first, _padding(of, halo), strides, strict=True))
        begin += sum(lo * step for (lo, _), step in zip(ends, steps, strict=True))
        found.append(StridedBox(triple(hi - lo for lo, hi in ends), begin, steps))
    return found[0], found[1]


def flat_index(index: np.ndarray | Sequence[np.ndarray], block: Block, halo: int) -> np.ndarray:
    """Convert node indexes (i, j, k) of a block to flat indexes into its array with ghosts (`padded_shape`). `index`:
    an array (3, n), or three arrays that broadcast; 0 is the first node, and ghosts before it are negative. `halo`:
    number of ghost layers."""
    return _flat(index, block.size, halo)


def flat_box(lines: Sequence[np.ndarray], block: Block, halo: int) -> np.ndarray:
    """Return the flat indexes, int32 (nk, nj, ni), of all combinations of given node indexes, into the array of a block
    with `halo` ghost layers (`padded_shape`). `lines`: the node indexes along i (ni,), j (nj,) and k (nk,); 0 is the
    first node that is no ghost, and ghosts before it are negative."""
    (hi, hj, hk), (_, nj, ni) = _padding(block.size, halo), _padded_shape(block.size, halo)
    i, j, k = ((line + h).astype(np.int32) for line, h in zip(lines, (hi, hj, hk), strict=True))
    return (k[:, None] * nj + j)[:, :, None] * ni + i


def _flat(index: np.ndarray | Sequence[np.ndarray], size: Size, halo: int) -> np.ndarray:
    hi, hj, hk = _padding(size, halo)
    _, nj, ni = _padded_shape(size, halo)
    return (((index[2] + hk) * nj + index[1] + hj) * ni + index[0] + hi).astype(np.int32)
