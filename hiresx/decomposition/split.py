"""Blocks cut into parts: what surrounds each part follows from what surrounded the blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hiresx.decomposition.parts import Part, intersection, moved, whole_box
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import FACES, Range, direction, face_range, side

# Ghost layers, whose donors must lie in one part.
LAYERS = 3


def split(decomposition: Decomposition, parts: Sequence[Part]) -> Decomposition:
    """The decomposition whose blocks are `parts` of the blocks of `decomposition`, in that order; coordinates are
    views.

    Every node of a block must be in exactly one part. No node is doubled at a cut: the ghosts of a part there are the
    nodes of the part beyond, so what is computed does not depend on the cuts. Raises HiresxError when the parts do not
    cover the blocks once, and when a part is so thin that ghosts would come from two.
    """
    blocks = decomposition.blocks
    of_whole: list[list[int]] = [[] for _ in blocks]
    for n, part in enumerate(parts):
        of_whole[part.whole].append(n)
    _check_cover(blocks, parts, of_whole)
    return Decomposition(
        tuple(_block(blocks[p.whole], p, n, len(of_whole[p.whole])) for n, p in _numbered(parts)),
        (*_cuts(blocks, parts, of_whole), *_connections(decomposition, parts, of_whole)),
        tuple(_patches(decomposition, parts, of_whole)),
        tuple(parts),
    )


def _numbered(parts: Sequence[Part]) -> Iterator[tuple[int, Part]]:
    """Each part with its number among those of its block."""
    count: dict[int, int] = {}
    for part in parts:
        count[part.whole] = count.get(part.whole, -1) + 1
        yield count[part.whole], part


def _block(block: Block, part: Part, number: int, count: int) -> Block:
    if count == 1:
        return block
    nodes = (c[part.slices] for c in (block.x, block.y, block.z))
    return Block(f"{block.name}.{number}", *nodes)


def _check_cover(blocks: Sequence[Block], parts: Sequence[Part], of_whole: list[list[int]]) -> None:
    for block, mine in zip(blocks, of_whole, strict=True):
        boxes = [parts[n].box for n in mine]
        inside = all(intersection(box, whole_box(block.size)) == box for box in boxes)
        apart = all(intersection(a, b) is None for n, a in enumerate(boxes) for b in boxes[:n])
        if not (inside and apart and sum(parts[n].points for n in mine) == block.points):
            raise HiresxError(
                f"the parts {boxes} do not cover block '{block.name}' of {block.size} nodes once", "correct the parts"
            )


def _cuts(blocks: Sequence[Block], parts: Sequence[Part], of_whole: list[list[int]]) -> Iterator[Connection]:
    """Connections between parts of one block."""
    for n, part in enumerate(parts):
        size = blocks[part.whole].size
        for face in FACES:
            d, s = direction(face), side(face)
            lo, hi = part.box[d]
            if size[d] == 1 or (lo == 0 if s < 0 else hi == size[d]):
                continue
            beyond = _with(part.box, d, (lo - LAYERS, lo) if s < 0 else (hi, hi + LAYERS))
            for m in of_whole[part.whole]:
                shared = intersection(beyond, parts[m].box)
                if m == n or shared is None:
                    continue
                _check_layers(blocks[part.whole], shared, d)
                yield Connection(
                    block=n,
                    face=face,
                    range=_on_face(part, face, shared),
                    donor=m,
                    offset=tuple(a - b for a, b in zip(part.first, parts[m].first, strict=True)),
                )


def _connections(
    decomposition: Decomposition, parts: Sequence[Part], of_whole: list[list[int]]
) -> Iterator[Connection]:
    """The connections of the blocks, cut to the parts on both sides."""
    for c in decomposition.connections:
        d = direction(c.face)
        matrix, offset = np.array(c.matrix), np.array(c.offset)
        size = decomposition.blocks[c.block].size
        for n in of_whole[c.block]:
            range_ = intersection(parts[n].box, c.range)
            if range_ is None:
                continue
            ghosts = _with(range_, d, (-LAYERS, 0) if side(c.face) < 0 else (size[d], size[d] + LAYERS))
            wanted = _image(ghosts, matrix, offset)
            for m in of_whole[c.donor]:
                found = intersection(wanted, parts[m].box)
                if found is None:
                    continue
                _check_layers(decomposition.blocks[c.donor], found, c.donor_direction)
                back = _image(found, matrix.T, -matrix.T @ offset)
                moves = matrix @ np.array(parts[n].first) + offset - np.array(parts[m].first)
                yield replace(
                    c, block=n, face=c.face, range=_on_face(parts[n], c.face, back), donor=m,
                    offset=tuple(int(o) for o in moves),
                )  # fmt: skip


def _patches(decomposition: Decomposition, parts: Sequence[Part], of_whole: list[list[int]]) -> Iterator[Patch]:
    for place, patch in enumerate(decomposition.patches):
        for n in of_whole[patch.block]:
            range_ = intersection(parts[n].box, patch.range)
            if range_ is not None:
                yield Patch(n, patch.face, _local(parts[n], range_), patch.condition, place)


def _with(box: Range, d: int, range_: tuple[int, int]) -> Range:
    return tuple(range_ if e == d else box[e] for e in range(3))


def _local(part: Part, box: Range) -> Range:
    return moved(box, tuple(-n for n in part.first))


def _on_face(part: Part, face: str, ghosts: Range) -> Range:
    """The nodes on `face` of a part behind which the box `ghosts` of its whole block lies, in its own indexes."""
    d = direction(face)
    return _with(_local(part, ghosts), d, face_range(face, part.size)[d])


def _image(box: Range, matrix: np.ndarray, offset: np.ndarray) -> Range:
    """The box to which a signed permutation and a shift bring `box`."""
    ends = np.array([[lo, hi - 1] for lo, hi in box])
    image = matrix @ ends + np.asarray(offset)[:, None]
    return tuple((int(a.min()), int(a.max()) + 1) for a in image)


def _check_layers(block: Block, donors: Range, d: int) -> None:
    if donors[d][1] - donors[d][0] != LAYERS:
        raise HiresxError(
            f"block '{block.name}' is cut so that ghost nodes would come from two of its parts: {donors}",
            f"keep {LAYERS + 1} nodes or more between a face and a cut",
        )
