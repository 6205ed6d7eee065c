"""Blocks that are cut into parts: the connections and conditions of each part follow from those of its block."""

from collections.abc import Iterator, Sequence

from hiresx.base.arrays import triple
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.grid import Block
from hiresx.grid.blocks import intersection
from hiresx.grid.cutting import check_cover, cut_connections, cuts, within
from hiresx.grid.stored_coordinates import part_of


def split(decomposition: Decomposition, parts: Sequence[Part]) -> Decomposition:
    """Divide the blocks of a decomposition into `parts` (boxes of nodes with their ranks), and return them as the
    blocks of a new decomposition, in the same order. Connections and boundary conditions of the parts follow from those
    of the blocks. The coordinates of the new blocks are views of the old ones.

    Every node of a block must be in exactly one part. The ghosts of a part at a cut are the nodes of the adjacent part,
    so that results do not depend on the cuts. Raises HiresxError if the parts do not contain each node exactly once, or
    if a part is so thin that the ghosts of its neighbour would come from two parts."""
    blocks = decomposition.blocks
    pieces, halo = [(part.whole, part.box) for part in parts], decomposition.stencil.halo
    check_cover(blocks, pieces)
    count = [sum(part.whole == b for part in parts) for b in range(len(blocks))]
    return Decomposition(
        tuple(_block(blocks[p.whole], p, n, count[p.whole]) for n, p in _number_parts(parts)),
        (*cuts(blocks, pieces, halo), *cut_connections(blocks, decomposition.connections, pieces, halo)),
        tuple(_patches(decomposition, parts)),
        tuple(parts),
        decomposition.stencil,
        decomposition.axisymmetric,
        decomposition.pushes,
    )


def _number_parts(parts: Sequence[Part]) -> Iterator[tuple[int, Part]]:
    """Yield each part with its number among the parts of its block."""
    count: dict[int, int] = {}
    for part in parts:
        count[part.whole] = count.get(part.whole, -1) + 1
        yield count[part.whole], part


def _block(block: Block, part: Part, number: int, count: int) -> Block:
    if count == 1:
        return block
    nodes = (part_of(c, part.slices) for c in (block.x, block.y, block.z))
    return Block(f"{block.name}.{number}", *triple(nodes), rounding=block.rounding)


def _patches(decomposition: Decomposition, parts: Sequence[Part]) -> Iterator[Patch]:
    of_block: dict[int, list[int]] = {}
    for n, part in enumerate(parts):
        of_block.setdefault(part.whole, []).append(n)
    for place, patch in enumerate(decomposition.patches):
        for n in of_block[patch.block]:
            range_ = intersection(parts[n].box, patch.range)
            if range_ is not None:
                yield Patch(n, patch.face, within(parts[n].box, range_), patch.condition, place)
