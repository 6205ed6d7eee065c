"""Walls that end at the boundary between two blocks. A node there that belongs to both blocks is a wall node in both.
The neighbouring block, whose face continues as a connection, a slip wall or a symmetry plane, gets a line of wall nodes
for this purpose."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.boundaries import Condition, ModelledWall, NoSlipWall, SlipWall
from hiresx.grid.blocks import FACES, Block, Range, direction, intersection, side
from hiresx.grid.connections import Connection

# block, face, nodes, condition
PlacedCondition = tuple[int, str, Range, Condition]

WALLS = (SlipWall, NoSlipWall, ModelledWall)
_NO_SLIP, _SLIP = "no_slip", "reflect"


def same_face(face: str, c: Connection, nodes: np.ndarray) -> str:
    """Return the face of the donor block that continues `face` of the other block across connection `c`. `nodes` (3,
    n): indexes i, j, k of nodes on `face` at the connection."""
    inward = np.zeros((3, 1), dtype=nodes.dtype)
    inward[direction(face)] = -side(face)
    step = (c.donors(nodes + inward) - c.donors(nodes))[:, 0]
    axis = int(np.argmax(np.abs(step)))
    return FACES[2 * axis + int(step[axis] < 0)]


def contains_nodes(block: Block, nodes: np.ndarray) -> bool:
    """Return whether all nodes with the indexes i, j, k in `nodes` (3, n) exist in the block."""
    return bool(((nodes >= 0) & (nodes < np.array(block.size)[:, None])).all())


def walls_over_seams(
    blocks: Sequence[Block], connections: Sequence[Connection], placed: Sequence[PlacedCondition]
) -> list[PlacedCondition]:
    """Return the boundary conditions of face nodes, changed where a no-slip wall of one block and a slip wall of
    another share a line of nodes: these nodes have the no-slip condition in both blocks. `placed`: the conditions, each
    as (block number, face, half-open index ranges, condition). `connections`: the connections of `blocks`."""
    found = list(placed)
    left = [one for one in found if one[3].kernel == _NO_SLIP]
    while left:
        wall = left.pop()
        for b, face, line in _shared_lines(blocks, connections, wall):
            for n, (block, own, range_, condition) in enumerate(found):
                part = intersection(range_, line)
                if (block, own) != (b, face) or part is None or condition.kernel != _SLIP:
                    continue
                made = (b, face, part, wall[3])
                rest = [(b, face, nodes, condition) for nodes in _without(range_, part)]
                found[n : n + 1] = [made, *rest]
                left.append(made)
                break
    return found


def walls_over_connections(
    blocks: Sequence[Block], connections: Sequence[Connection], placed: Sequence[PlacedCondition]
) -> tuple[list[Connection], list[PlacedCondition]]:
    """Return the connections and the boundary conditions, changed where a wall of one block and a connection of another
    share a line of nodes, as where a wake block begins at a trailing edge: these nodes belong to the wall in both
    blocks. At an edge of a step, where two faces of a block would get the nodes, the connections keep the nodes, unless
    both walls are no-slip walls. `placed`: the conditions, each as (block number, face, half-open index ranges,
    condition). `connections`: the connections of `blocks`."""
    kept, found = list(connections), list(placed)
    given = -1
    while given < len(found):  # once more, because the blocks that get nodes may have neighbours with a part of them
        given, claims = len(found), list(_claims(blocks, kept, found))
        for b, face, part, condition in claims:
            rivals = [
                c for c in claims if c[0] == b and direction(c[1]) != direction(face) and intersection(c[2], part)
            ]
            if rivals and any(c.kernel != _NO_SLIP for c in (condition, *(rival[3] for rival in rivals))):
                continue
            for c in list(kept):
                if (c.block, c.face) == (b, face) and (held := intersection(c.range, part)) is not None:
                    n = kept.index(c)
                    kept[n : n + 1] = [replace(c, range=rest) for rest in _without(c.range, held)]
                    found.append((b, face, held, condition))
    return kept, found


def _claims(
    blocks: Sequence[Block], connections: Sequence[Connection], placed: Sequence[PlacedCondition]
) -> Iterator[PlacedCondition]:
    """Yield the connected nodes that walls of other blocks contain, each as (block number, face, half-open index
    ranges, condition of the wall)."""
    for wall in placed:
        if isinstance(wall[3], WALLS):
            for b, face, line in _shared_lines(blocks, connections, wall):
                for c in connections:
                    if (c.block, c.face) == (b, face) and (part := intersection(c.range, line)) is not None:
                        yield b, face, part, wall[3]


def _shared_lines(
    blocks: Sequence[Block], connections: Sequence[Connection], wall: PlacedCondition
) -> Iterator[tuple[int, str, Range]]:
    """Yield the lines of nodes at the edges of a wall that other blocks have, too: the block, its face that continues
    that of the wall, and the nodes."""
    b, face, range_, _ = wall
    block = blocks[b]
    for e in block.active:
        if e == direction(face):
            continue
        for upper in (False, True):
            at = block.size[e] - 1 if upper else 0
            if not range_[e][0] <= at < range_[e][1]:
                continue
            edge = triple((at, at + 1) if d == e else range_[d] for d in range(3))
            for c in connections:
                if c.block != b or c.face != FACES[2 * e + upper] or (shared := intersection(c.range, edge)) is None:
                    continue
                nodes = np.array(np.meshgrid(*(np.arange(*ends) for ends in shared), indexing="ij")).reshape(3, -1)
                donors = c.donors(nodes)
                if contains_nodes(blocks[c.donor], donors):
                    lows, highs = donors.min(axis=1), donors.max(axis=1)
                    line = triple((int(lo), int(hi) + 1) for lo, hi in zip(lows, highs, strict=True))
                    yield c.donor, same_face(face, c, nodes), line


def _without(range_: Range, part: Range) -> Iterator[Range]:
    """Yield the nodes of a range that are not in its `part`, as ranges."""
    left = list(range_)
    for d, (first, last) in enumerate(part):
        for lo, hi in ((left[d][0], first), (last, left[d][1])):
            if lo < hi:
                yield triple((lo, hi) if e == d else left[e] for e in range(3))
        left[d] = first, last
