"""Copies of ghost nodes of connected faces: their sources and targets."""

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.patches import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, direction

LARGEST = int(np.iinfo(np.int32).max)

# Numbers by multiples of which rows along i lie apart, so that all of them begin where a GPU's second cache has a
# sector (32 bytes) begin if one does: else a warp moves 9 sectors where 8 would do, in FP32 5 for 4.
ROW = 8


@dataclass(frozen=True, eq=False)
class HaloList:
    """Ghost nodes of one connection.

    `destination`, `source`: int32 (n,), flat indexes into the padded arrays (`padded_shape`) of
    `block` and `donor`, in ascending order of `destination`. `direction`: the direction (0, 1, 2) of the connected face
    of `block`. `donor_direction`, `sign`: this block's flux through its face's direction is `sign` times the donor's
    flux along `donor_direction`.
    `rotation`: the matrix that brings vectors from the donor's frame into the block's, None where the two are the same.
    """

    donor: int
    block: int
    connection: int
    face: str
    destination: np.ndarray
    source: np.ndarray
    direction: int
    donor_direction: int
    sign: int
    rotation: tuple[tuple[float, float, float], ...] | None = None


def padding(block: Block, halo: int) -> tuple[int, int, int]:
    """Ghost layers (hi, hj, hk) of a block's padded arrays: none in singleton directions."""
    return triple(halo if n > 1 else 0 for n in block.size)


def padded_shape(block: Block, halo: int) -> tuple[int, int, int]:
    """Shape (nk + 2 hk, nj + 2 hj, ni + 2 hi) of an array with ghosts. The last direction with more than one node is
    rounded up to whole `ROW`s; the surplus is not used."""
    nk, nj, ni = triple(n + 2 * h for n, h in zip(reversed(block.size), reversed(padding(block, halo)), strict=True))
    return nk, nj, ni if ni == 1 else -(-ni // ROW) * ROW


def halo_lists(decomposition: Decomposition, mine: Collection[int] | None = None) -> list[HaloList]:
    """One list per connection, ordered by (donor, block, connection): the ghost nodes behind the connected nodes, faces
    only. With `mine`, only the lists that fill ghosts of, or take nodes from, the blocks with these indexes; a list is
    the same whoever builds it.

    All stencils run along one grid direction, so no edge or corner ghost of a flow variable is ever read.
    Raises HiresxError for a block whose padded arrays have more nodes than an int32 counts.
    """
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
        # i fastest, as in memory: kernels that follow the list then read and write in order
        ghosts = connection.ghosts(halo, block.size).transpose(0, 3, 2, 1).reshape(3, -1)
        lists.append(
            HaloList(
                donor=connection.donor,
                block=connection.block,
                connection=n,
                face=connection.face,
                destination=flat_index(ghosts, block, halo),
                source=flat_index(connection.donors(ghosts), donor, halo),
                direction=direction(connection.face),
                donor_direction=connection.donor_direction,
                sign=connection.sign,
                rotation=getattr(connection, "rotation", None),
            )
        )
    return sorted(lists, key=lambda entry: (entry.donor, entry.block, entry.connection))


def flat_index(index: np.ndarray, block: Block, halo: int) -> np.ndarray:
    """Flat indexes into the padded array of index triples (3, n)."""
    (hi, hj, hk), (_, nj, ni) = padding(block, halo), padded_shape(block, halo)
    return (((index[2] + hk) * nj + index[1] + hj) * ni + index[0] + hi).astype(np.int32)
