"""Nodes behind connected faces of a block, which continue its index space, and the stencils of interpolation that use
them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import prod

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.decomposition.held_arrays import sizes
from hiresx.grid.blocks import FACES, Range, direction, face_range, intersection, side, whole_box
from hiresx.grid.connections import IDENTITY, Connection
from hiresx.grid.cutting import image
from hiresx.grid.motions import IntMatrix
from hiresx.grid.patched import WIDTH


@dataclass(frozen=True)
class NodesBehind:
    """A box of nodes of a block that continue the index space of another block, or of the same block, behind connected
    faces. `box`: half-open index ranges (i, j, k) in that index space. `block`: the number of the block that has the
    nodes. `matrix`, `offset`: the node with the index m in that index space is the node `matrix` @ m + `offset` of the
    block. `matrix` (3, 3) is a signed permutation."""

    box: Range
    block: int
    matrix: IntMatrix = IDENTITY
    offset: Size = (0, 0, 0)

    def there(self, box: Range) -> Range:
        """Return the index ranges in the block that has the nodes, of a `box` of the continued index space."""
        return image(box, self.matrix, self.offset)

    def here(self, box: Range) -> Range:
        """Return the index ranges in the continued index space, of a `box` of the block that has the nodes."""
        back = np.array(self.matrix).T
        return image(box, back.tolist(), (-back @ self.offset).tolist())


def nodes_behind(
    b: int, of_blocks: Sequence[Size], connections: Mapping[int, Sequence[Connection]], layers: int
) -> tuple[NodesBehind, ...]:
    """Return the nodes that continue the index space of block number `b` by `layers` layers behind its connected faces,
    edges and corners, as disjoint boxes. `of_blocks`: (ni, nj, nk) of all blocks. `connections`: those of each block.
    Behind an edge or a corner nodes count only if all ways to them, over one face after another, lead to the same node.
    So there are none where three or five blocks meet in an edge. Connections over poles and those that rotate vectors
    are left out."""
    faces = sorted({(direction(c.face), side(c.face)) for c in connections.get(b, ())})
    found: dict[tuple[tuple[int, int], ...], list[NodesBehind]] = {(): [NodesBehind(whole_box(of_blocks[b]), b)]}
    for count in range(1, 4):
        for crossed in combinations(faces, count):
            if len({d for d, _ in crossed}) < count:
                continue
            ways = [
                _beyond(
                    found[tuple(f for f in crossed if f != face)], *face, of_blocks[b], of_blocks, connections, layers
                )
                for face in crossed
            ]
            same = ways[0]
            for others in ways[1:]:
                same = [
                    NodesBehind(shared, a.block, a.matrix, a.offset)
                    for a, o in product(same, others)
                    if (a.block, a.matrix, a.offset) == (o.block, o.matrix, o.offset)
                    for shared in [intersection(a.box, o.box)]
                    if shared is not None
                ]
            found[crossed] = same
    return tuple(n for crossed, of in found.items() if crossed for n in of)


def _beyond(
    before: Sequence[NodesBehind], d: int, way: int, size: Size, of_blocks: Sequence[Size],
    connections: Mapping[int, Sequence[Connection]], layers: int,
) -> list[NodesBehind]:  # fmt: skip
    """Return the nodes that follow those of `before` along direction `d`, in the sense `way`, beyond the ends of a
    block of `size`."""
    found = []
    for n in before:
        ends = list(n.box)
        ends[d] = (-layers, 0) if way < 0 else (size[d], size[d] + layers)
        there = n.there(triple(ends))
        e = next(e for e in range(3) if n.matrix[e][d])
        face = FACES[2 * e + (way * n.matrix[e][d] > 0)]
        own = intersection(there, whole_box(of_blocks[n.block]))
        if own is not None:  # a longer block beside this one
            found.append(NodesBehind(n.here(own), n.block, n.matrix, n.offset))
        for c in connections.get(n.block, ()):
            if c.face != face or c.over_a_pole or c.rotation is not None:
                continue
            ghosts = list(c.range)
            (edge, _) = face_range(face, of_blocks[n.block])[e]
            ghosts[e] = (edge - layers, edge) if side(face) < 0 else (edge + 1, edge + 1 + layers)
            shared = intersection(there, triple(ghosts))
            donors = None if shared is None else image(shared, c.matrix, c.offset)
            donors = None if donors is None else intersection(donors, whole_box(of_blocks[c.donor]))
            if donors is not None:
                matrix = np.array(c.matrix) @ n.matrix
                offset = np.array(c.matrix) @ n.offset + c.offset
                made = NodesBehind(donors, c.donor, tuple(map(tuple, matrix.tolist())), triple(offset.tolist()))
                found.append(NodesBehind(made.here(donors), c.donor, made.matrix, made.offset))
    return found


# For each direction, whether stencils may use nodes before the first and behind the last node of a block.
Ends = tuple[tuple[bool, bool], ...]
CLOSED: Ends = ((False, False),) * 3


def usable(n: int, ends: tuple[bool, bool], layers: int) -> tuple[int, int]:
    """Return the first and the last + 1 of the nodes that stencils along a direction with `n` nodes may use. `ends`:
    whether they may use `layers` nodes before the first and behind the last node."""
    return -layers * ends[0], n + layers * ends[1]


def divided_by_stencils(box: Range, size: Size, behind: Sequence[Range], layers: int) -> Iterator[tuple[Range, Ends]]:
    """Divide a box of nodes of a finer level into parts, in each of which the stencils of all nodes may extend beyond
    the same ends of their block, that is, in which there are nodes at all places of these stencils. Yields each part
    with these ends.

    `box`: half-open index ranges (i, j, k) on the finer level. `size`: the numbers of nodes of the block on the coarser
    level. `behind`: the boxes of nodes of the coarser level behind its faces, in `layers` layers. If stencils could
    extend beyond either of two ends, but not beyond both, as at an edge in which three blocks meet, they extend beyond
    neither of them."""
    exist = [(any(of[d][0] < 0 for of in behind), any(of[d][1] > n for of in behind)) for d, n in enumerate(size)]
    crossed = _crossed(box, size, exist)
    if not any(map(any, crossed)) or _complete(box, size, behind, crossed, layers):
        yield box, crossed
        return
    along = []
    for d, (lo, hi) in enumerate(box):
        # Between these nodes stencils cross the same ends of boxes.
        ends = {t for of in (whole_box(size), *behind) for t in of[d]} if size[d] > 1 else set()
        marks = {m for t in ends for m in (2 * (t - WIDTH // 2), 2 * (t + WIDTH // 2 - 1))}
        along.append([*pairwise(sorted({lo, hi, *(m for m in marks if lo < m < hi)}))])
    for i, j, k in product(*along):
        part = i, j, k
        yield part, _open_ends(part, size, behind, _crossed(part, size, exist), layers)


def _crossed(box: Range, size: Size, exist: Sequence[tuple[bool, bool]]) -> Ends:
    """Return the ends of a block that centred stencils of a box of finer nodes cross, among those that `exist`."""
    beyond: Ends = ((True, True),) * 3
    places = _places(box, size, beyond, max(size))
    return tuple((a and lo < 0, b and hi > n) for (a, b), (lo, hi), n in zip(exist, places, size, strict=True))


def _places(box: Range, size: Size, ends: Ends, layers: int) -> Range:
    """Return the nodes of the coarser level that the stencils of a box of finer nodes use."""
    found = []
    for (lo, hi), n, of in zip(box, size, ends, strict=True):
        low, high = usable(n, of, layers)
        first, last = (min(max(m // 2 - WIDTH // 2 + 1, low), high - WIDTH) for m in (lo, hi - 1))
        found.append((first, last + WIDTH) if n > 1 else (0, 1))
    return triple(found)


def _complete(box: Range, size: Size, behind: Sequence[Range], ends: Ends, layers: int) -> bool:
    """Return whether there are nodes at all places beyond the block that the stencils of a box of finer nodes use."""
    places = _places(box, size, ends, layers)
    within = [shared for of in (whole_box(size), *behind) if (shared := intersection(places, of)) is not None]
    return sum(prod(sizes(of)) for of in within) == prod(sizes(places))


def _open_ends(box: Range, size: Size, behind: Sequence[Range], crossed: Ends, layers: int) -> Ends:
    """Return the ends of a block, among those `crossed`, beyond which the stencils of a box of finer nodes extend."""
    places = [(d, s) for d, ends in enumerate(crossed) for s in (0, 1) if ends[s]]
    for count in range(len(places), 0, -1):
        fits = [set(some) for some in combinations(places, count) if _complete(box, size, behind, _of(some), layers)]
        if fits:
            common = _of(set.intersection(*fits))
            return common if _complete(box, size, behind, common, layers) else CLOSED
    return CLOSED


def _of(places: Collection[tuple[int, int]]) -> Ends:
    return tuple(((d, 0) in places, (d, 1) in places) for d in range(3))
