"""Blocks that are cut into boxes, and the connections of the boxes, which follow from those of the blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.plural import plural
from hiresx.equations.stencil import DIFFERENCE_REACH
from hiresx.errors import HiresxError
from hiresx.grid.blocks import (
    FACES,
    MINIMUM_NODES,
    Block,
    Range,
    common_boxes,
    direction,
    face_range,
    intersection,
    ranges_of,
    shared_boxes,
    shift_range,
    side,
    whole_box,
)
from hiresx.grid.connections import Connection, Grid

Period = dict[str, tuple[float, float, float]]
# (index of the block, half-open node ranges in it)
Piece = tuple[int, Range]


def even_starts(nodes: int, blocks: int) -> list[int]:
    """Return the indexes of the first nodes when a line of `nodes` nodes is divided into `blocks` parts whose lengths
    differ by one node at most. Raises HiresxError if a part would have fewer nodes than the stencil needs."""
    if nodes < MINIMUM_NODES * blocks:
        raise HiresxError(
            f"grid.blocks = {blocks}: {nodes} nodes along i give no {blocks} blocks of {MINIMUM_NODES} nodes or more",
            f"give at most {plural(nodes // MINIMUM_NODES, 'block')}, or more nodes",
        )
    return [nodes * n // blocks for n in range(blocks)]


def cut_along_i(
    block: Block,
    starts: Sequence[int],
    names: Sequence[str],
    connections: Sequence[Connection] = (),
    period: Period | None = None,
) -> Grid:
    """Divide `block` along the index i into several blocks, and return them as a grid. Each node belongs to one of the
    new blocks, and consecutive new blocks are connected. `starts`: the index i of the first node of each new block;
    starts[0] is 0. `names`: the names of the new blocks. `connections`: connections of the block with itself. They and
    the regions of the block are divided in the same way. `period`: the period of the block, which every new block gets.
    """
    whole = whole_box(block.size)
    pieces = [(0, (ends, *whole[1:])) for ends in pairwise([*starts, block.size[0]])]
    blocks = [
        Block(name, *triple(c[:, :, slice(*box[0])] for c in block.coordinates), _regions(block, box), block.rounding)
        for name, (_, box) in zip(names, pieces, strict=True)
    ]
    joined = (*cuts([block], pieces), *cut_connections([block], connections, pieces))
    return Grid(tuple(blocks), joined, tuple(dict(period or {}) for _ in blocks))


def _regions(block: Block, box: Range) -> dict[str, tuple[tuple[str, Range], ...]]:
    """Return the parts of the regions of a block that lie in `box`, in the indexes of the box."""
    regions = {}
    for name, parts in block.regions.items():
        met = [(face, intersection(range_, box)) for face, range_ in parts]
        kept = tuple((face, within(box, range_)) for face, range_ in met if range_ is not None)
        if kept:
            regions[name] = kept
    return regions


def check_cover(blocks: Sequence[Block], pieces: Sequence[Piece]) -> None:
    """Raise HiresxError unless every node of every block is in exactly one of the `pieces`, each given as (block
    number, half-open index ranges i, j, k)."""
    for b, block in enumerate(blocks):
        ends = np.array([box for whole, box in pieces if whole == b]).reshape(-1, 3, 2)
        inside = (ends[:, :, 0] >= 0).all() and (ends[:, :, 1] <= block.size).all()
        covered = int((ends[:, :, 1] - ends[:, :, 0]).prod(axis=1).sum()) == block.points
        if not (inside and covered and not any(_overlaps(ends[:n], ends[n]) for n in range(len(ends)))):
            raise HiresxError(
                f"{ends.tolist()} do not cover block '{block.name}' of {block.size} nodes once", "correct the cut"
            )


def _overlaps(others: np.ndarray, box: np.ndarray) -> bool:
    return bool((np.maximum(others[:, :, 0], box[:, 0]) < np.minimum(others[:, :, 1], box[:, 1])).all(axis=1).any())


def cuts(blocks: Sequence[Block], pieces: Sequence[Piece], layers: int = DIFFERENCE_REACH) -> list[Connection]:
    """Return the connections between neighbouring pieces of the same block. `pieces`: the boxes of nodes into which the
    blocks are divided, each as (block number, half-open index ranges i, j, k). A connection refers to pieces by their
    positions in this list. `layers`: number of ghost layers; the ghosts of a piece are nodes of the neighbouring
    pieces. Raises HiresxError for a neighbouring piece with fewer nodes than ghost layers."""
    found: list[Connection] = []
    for b in dict.fromkeys(b for b, _ in pieces):
        numbers = np.array([n for n, (whole, _) in enumerate(pieces) if whole == b])
        boxes = np.array([pieces[n][1] for n in numbers])
        size = np.array(blocks[b].size)
        # for each piece and face the ghosts behind it
        ghosts = np.repeat(boxes[:, None], len(FACES), axis=1)
        for d in range(3):
            ghosts[:, 2 * d, d] = boxes[:, d, :1] + [-layers, 0]
            ghosts[:, 2 * d + 1, d] = boxes[:, d, 1:] + [0, layers]
        inner = (boxes != np.stack([np.zeros(3, int), size], axis=-1)) & (size > 1)[:, None]
        own, face = np.nonzero(inner.reshape(-1, len(FACES)))
        pair, other, shared = shared_boxes(ghosts[own, face], boxes)
        own, face = own[pair], face[pair]
        every, d = np.arange(len(own)), face // 2
        for wrong in np.flatnonzero(np.diff(shared[every, d])[:, 0] != layers)[:1]:
            _refuse_layers(blocks[b], ranges_of(shared[[wrong]])[0], layers)
        offsets = boxes[own, :, 0] - boxes[other, :, 0]
        ranges = shared - boxes[own, :, :1]
        last = np.where(face % 2, np.diff(boxes[own, d])[:, 0] - 1, 0)
        ranges[every, d] = np.stack([last, last + 1], axis=-1)
        found += [
            Connection(n, FACES[f], range_, m, offset=(i, j, k))
            for n, f, range_, m, (i, j, k) in zip(
                numbers[own].tolist(), face.tolist(), ranges_of(ranges), numbers[other].tolist(), offsets.tolist(),
                strict=True,
            )
        ]  # fmt: skip
    return sorted(found, key=lambda connection: connection.block)


def cut_connections(
    blocks: Sequence[Block],
    connections: Sequence[Connection],
    pieces: Sequence[Piece],
    layers: int = DIFFERENCE_REACH,
) -> Iterator[Connection]:
    """Yield the connections between pieces of blocks that result from the `connections` between the whole blocks.
    `pieces`: the boxes of nodes into which the blocks are divided, each as (block number, half-open index ranges i, j,
    k). A connection refers to pieces by their positions in this list. `layers`: number of ghost layers. Raises
    HiresxError for a piece with fewer than `layers` nodes behind a connection."""
    of_block = _PieceFinder(blocks, pieces)
    ends = of_block([(c.block, c.range) for c in connections])
    cut = [(c, n, range_) for c, found in zip(connections, ends, strict=True) for n, range_ in found]
    wanted = []
    for c, _, range_ in cut:
        d, n_d = direction(c.face), blocks[c.block].size[direction(c.face)]
        ghosts = (-layers, 0) if side(c.face) < 0 else (n_d, n_d + layers)
        wanted.append((c.donor, image(_with(range_, d, ghosts), c.matrix, c.offset)))
    for (c, n, _), found in zip(cut, of_block(wanted), strict=True):
        inverse = triple(zip(*c.matrix, strict=True))
        origin = tuple(-o for o in _moved(c.offset, inverse))
        own = _moved(tuple(lo for lo, _ in pieces[n][1]), c.matrix)
        for m, shared in found:
            _check_layers(blocks[c.donor], shared, c.donor_direction, layers)
            moves = triple(a + o - lo for a, o, (lo, _) in zip(own, c.offset, pieces[m][1], strict=True))
            back = image(shared, inverse, origin)
            yield replace(c, block=n, range=_on_face(pieces[n][1], c.face, back), donor=m, offset=moves)


def within(box: Range, range_: Range) -> Range:
    """Return the half-open index ranges `range_` (i, j, k) of a block as indexes that count from the first node of the
    piece `box` of this block."""
    return shift_range(range_, triple(-lo for lo, _ in box))


class _PieceFinder:
    """Finds the pieces of blocks that intersect boxes."""

    def __init__(self, blocks: Sequence[Block], pieces: Sequence[Piece]):
        self._numbers = [[n for n, (whole, _) in enumerate(pieces) if whole == b] for b in range(len(blocks))]
        self._boxes = [[pieces[n][1] for n in mine] for mine in self._numbers]

    def __call__(self, wanted: Sequence[Piece]) -> list[list[tuple[int, Range]]]:
        """Return, for each box of a block, the pieces that intersect it, in their order: (number of the piece, the
        common nodes)."""
        found: list[list[tuple[int, Range]]] = [[] for _ in wanted]
        for b, (numbers, boxes) in enumerate(zip(self._numbers, self._boxes, strict=True)):
            asked = [n for n, (block, _) in enumerate(wanted) if block == b]
            if asked and numbers:
                for n, m, shared in common_boxes([wanted[n][1] for n in asked], boxes):
                    found[asked[n]].append((numbers[m], shared))
        return found


def _with(box: Range, d: int, range_: tuple[int, int]) -> Range:
    return triple(range_ if e == d else box[e] for e in range(3))


def _on_face(box: Range, face: str, ghosts: Range) -> Range:
    """Return the nodes on `face` of the piece `box` behind which the box `ghosts` of the block lies, in the indexes of
    the piece."""
    d = direction(face)
    size = triple(hi - lo for lo, hi in box)
    return _with(within(box, ghosts), d, face_range(face, size)[d])


def image(box: Range, matrix: Sequence[Sequence[int]], offset: Sequence[int]) -> Range:
    """Return the half-open index ranges onto which the index map `matrix` @ (i, j, k) + `offset` takes the nodes of
    `box`. `matrix` (3, 3): a signed permutation. `offset` (3,): integers."""
    first, last = (_moved(tuple(ends), matrix) for ends in zip(*((lo, hi - 1) for lo, hi in box), strict=True))
    return triple((min(a, b) + o, max(a, b) + o + 1) for a, b, o in zip(first, last, offset, strict=True))


def _moved(node: Sequence[int], matrix: Sequence[Sequence[int]]) -> list[int]:
    i, j, k = node
    return [a * i + b * j + c * k for a, b, c in matrix]


def _check_layers(block: Block, donors: Range, d: int, layers: int) -> None:
    if donors[d][1] - donors[d][0] != layers:
        _refuse_layers(block, donors, layers)


def _refuse_layers(block: Block, donors: Range, layers: int) -> None:
    raise HiresxError(
        f"block '{block.name}' is cut so that ghost nodes would come from two of its pieces: {donors}",
        f"keep {layers + 1} nodes or more between a face and a cut",
    )
