"""One block cut along i into several."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from hiresx.errors import HiresxError
from hiresx.grid.blocks import MINIMUM_NODES, Block, Range, direction, face_range
from hiresx.grid.connections import Connection, Grid

Period = dict[str, tuple[float, float, float]]


def even_starts(nodes: int, blocks: int) -> list[int]:
    """First nodes of `blocks` pieces of a line of `nodes` nodes, as long as each other to one node.

    Raises HiresxError when a piece would be shorter than the stencil.
    """
    if nodes < MINIMUM_NODES * blocks:
        raise HiresxError(
            f"grid.blocks = {blocks}: {nodes} nodes along i give no {blocks} blocks of {MINIMUM_NODES} nodes or more",
            f"give at most {nodes // MINIMUM_NODES} blocks, or more nodes",
        )
    return [nodes * n // blocks for n in range(blocks)]


def cut_along_i(
    block: Block,
    starts: Sequence[int],
    names: Sequence[str],
    connections: Iterable[Connection] = (),
    period: Period | None = None,
) -> Grid:
    """Grid of the pieces of `block` that begin at the nodes `starts` (the first is 0), called `names`.

    Each node goes to one piece, and neighbouring pieces are connected. `connections`: of the block with itself; they
    and the block's regions are cut to the pieces. `period`: that of the block, and of every piece.
    """
    pieces = list(zip(starts, [*starts[1:], block.size[0]], strict=True))
    blocks, joined = [], []
    for (a, b), name in zip(pieces, names, strict=True):
        coordinates = (c[:, :, a:b] for c in (block.x, block.y, block.z))
        blocks.append(Block(name, *coordinates, _regions(block, a, b)))
    for p, (left, right) in enumerate(pairwise(blocks)):
        n = left.size[0]
        joined += [
            Connection(p, "imax", face_range("imax", left.size), p + 1, offset=(-n, 0, 0)),
            Connection(p + 1, "imin", face_range("imin", right.size), p, offset=(n, 0, 0)),
        ]
    for connection in connections:
        joined += _pieces_of(connection, pieces)
    return Grid(tuple(blocks), tuple(joined), tuple(dict(period or {}) for _ in blocks))


def _regions(block: Block, a: int, b: int) -> dict[str, tuple[tuple[str, Range], ...]]:
    regions = {}
    for name, parts in block.regions.items():
        cut = [(face, _clipped(range_, 0, a, b)) for face, range_ in parts]
        kept = tuple((face, ((i[0] - a, i[1] - a), j, k)) for face, (i, j, k) in cut if i[0] < i[1])
        if kept:
            regions[name] = kept
    return regions


def _pieces_of(connection: Connection, pieces: Sequence[tuple[int, int]]) -> Iterable[Connection]:
    """A connection of the block with itself as connections between its pieces."""
    normal = direction(connection.face)
    # The direction of the block that runs along i of the donor, and which way.
    along = next(e for e in range(3) if connection.matrix[0][e])
    sense, shift = connection.matrix[0][along], connection.offset[0]
    for p, (a, b) in enumerate(pieces):
        own = _clipped(connection.range, 0, a, b)
        if own[0][0] >= own[0][1]:
            continue
        for q, (first, last) in enumerate(pieces):
            if along == normal:
                # All three layers have their donors in one piece: none is shorter than the stencil.
                lo, hi = own[normal]
                behind = lo - 1 if connection.face.endswith("min") else hi
                range_ = own if first <= sense * behind + shift < last else None
            else:
                ends = sorted((sense * (first - shift), sense * (last - 1 - shift)))
                range_ = _clipped(own, along, ends[0], ends[1] + 1)
                range_ = range_ if range_[along][0] < range_[along][1] else None
            if range_ is not None:
                (lo, hi), j, k = range_
                offset = [o + a * connection.matrix[e][0] for e, o in enumerate(connection.offset)]
                offset[0] -= first
                yield replace(connection, block=p, range=((lo - a, hi - a), j, k), donor=q, offset=tuple(offset))


def _clipped(range_: Range, d: int, lo: int, hi: int) -> Range:
    return tuple((max(r[0], lo), min(r[1], hi)) if e == d else tuple(r) for e, r in enumerate(range_))
