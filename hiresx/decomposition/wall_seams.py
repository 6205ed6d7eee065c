"""Walls that end at the boundary between two blocks. A node there that belongs to both blocks is a wall node in both.
The neighbouring block, whose face continues as a connection or with another condition, gets a line of wall nodes for
this purpose."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.boundaries import Condition, ModelledWall, NoSlipWall, Place, SlipWall
from hiresx.grid.blocks import FACES, Block, Range, direction, intersection, layer, side
from hiresx.grid.connections import Connection
from hiresx.grid.orientation import opposite

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
    """Return the boundary conditions of face nodes, changed where a wall of one block and another condition of another
    block share a line of nodes: these nodes have the condition of the wall in both blocks. A no-slip wall takes
    precedence over a modelled wall, this over slip walls and planes of symmetry, and these over faces through which gas
    flows. Of two no-slip or modelled walls with different keys the one that was placed first takes precedence.
    `placed`: the conditions in the order in which they were placed, each as (block number, face, half-open index
    ranges, condition). `connections`: the connections of `blocks`."""
    position = {id(one[3]): n for n, one in reversed([*enumerate(placed)])}

    def yields(condition: Condition, wall: Condition) -> bool:
        if condition.kernel in (None, "patched", "axis", "pole"):
            return False
        weaker, stronger = _strength(condition), _strength(wall)
        if weaker == stronger and weaker > 1 and not _same_keys(condition, wall):
            return position[id(condition)] > position[id(wall)]
        return weaker < stronger

    found = list(placed)
    left = [one for one in found if _strength(one[3])]
    while left:
        wall = left.pop()
        for b, face, line in _shared_lines(blocks, connections, wall):
            for n, (block, own, range_, condition) in enumerate(found):
                part = intersection(range_, line)
                if (block, own) != (b, face) or part is None or not yields(condition, wall[3]):
                    continue
                made = (b, face, part, wall[3])
                rest = [(b, face, nodes, condition) for nodes in _without(range_, part)]
                found[n : n + 1] = [made, *rest]
                left.append(made)
                break
    return found


def _strength(condition: Condition) -> int:
    """Return a number that is larger for a condition that takes precedence at nodes which two blocks share."""
    if isinstance(condition, ModelledWall):
        return 2
    return {_NO_SLIP: 3, _SLIP: 1}.get(condition.kernel or "", 0)


def _same_keys(one: Condition, other: Condition) -> bool:
    """Return whether two conditions differ at most in their places."""
    return len({condition.model_dump_json(exclude={*Place.model_fields}) for condition in (one, other)}) == 1


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


def connected_over_steps(
    blocks: Sequence[Block], connections: Sequence[Connection], placed: Sequence[PlacedCondition]
) -> tuple[list[Connection], list[PlacedCondition], list[PlacedCondition]]:
    """Connect blocks along the edge of a step, where walls of two blocks meet that are set in the same way (`_alike`).
    The two blocks are connected to each other, or both to a third block. With the new connection all blocks have the
    same ghosts at the edge, so their copies of its nodes have the same flow. Returns the connections with the new ones,
    the conditions without the nodes on such edges, and the conditions that these nodes had. At no-slip walls the third
    list also has a condition for the nodes of the third block, and the connection there is divided. `placed`: the
    conditions, each as (block number, face, half-open index ranges, condition)."""
    kept, made, left, taken = [*connections], list[Connection](), list[PlacedCondition](), list[PlacedCondition]()
    for wall in placed:
        for edge, between in _over_step(blocks, connections, placed, wall):
            made.append(edge)
            if between is not None and wall[3].kernel == _NO_SLIP and all(one[::2] != between[::2] for one in taken):
                taken.append(between)
                n, behind = next((n, c) for n, c in enumerate(kept) if _holds(c, between))
                pieces = between[2], *_without(behind.range, between[2])
                kept[n : n + 1] = [replace(behind, range=piece) for piece in pieces]
    for b, face, range_, condition in placed:
        parts = [range_]
        for edge in made:
            if (edge.block, edge.face) == (b, face) and (held := intersection(range_, edge.range)) is not None:
                taken.append((b, face, held, condition))
                parts = [rest for part in parts for rest in _outside(part, held)]
        left += [(b, face, part, condition) for part in parts]
    return [*kept, *made], left, taken


def _holds(c: Connection, place: PlacedCondition) -> bool:
    """Return whether a connection contains all nodes of a place."""
    b, face, range_, _ = place
    return (c.block, c.face) == (b, face) and intersection(c.range, range_) == range_


def _over_step(
    blocks: Sequence[Block],
    connections: Sequence[Connection],
    placed: Sequence[PlacedCondition],
    wall: PlacedCondition,
) -> Iterator[tuple[Connection, PlacedCondition | None]]:
    """Yield the new connections along edges of steps at the ends of a wall, each with the condition of the wall at the
    nodes of the third block, or None without such a block."""
    b, face, _, condition = wall

    def at_wall(block: int, face: str, line: Range) -> bool:
        return any(
            (n, f) == (block, face) and _alike(w, condition) and intersection(r, line) == line for n, f, r, w in placed
        )

    for c, nodes in _ends(blocks, connections, wall):
        there = c.donors(nodes)
        edge, line, own = _box(nodes), _box(there), same_face(face, c, nodes)
        if line[direction(own)] != layer(own, blocks[c.donor].size):  # the face of the neighbour has the other wall
            if at_wall(c.donor, c.donor_face, line):
                yield replace(c, face=face, range=edge), None
                yield replace(opposite(c, blocks), range=line), None
            continue
        for behind in connections:
            between = (c.donor, own, line, condition)
            if not _holds(behind, between):
                continue
            if at_wall(behind.donor, same_face(c.donor_face, behind, there), _box(behind.donors(there))):
                motion = behind.motion.then(c.motion)
                matrix, offset = np.array(behind.matrix), np.array(behind.offset)
                turn = (matrix @ np.array(c.matrix)).tolist()
                over = Connection(
                    b, face, edge, behind.donor, (triple(turn[0]), triple(turn[1]), triple(turn[2])),
                    triple((matrix @ np.array(c.offset) + offset).tolist()), motion.translation, motion.rotation,
                )  # fmt: skip
                yield over, between


def _alike(one: Condition, other: Condition) -> bool:
    """Return whether nodes on the edge between two walls are set in the same way by both of them: slip walls, or
    no-slip walls with the same keys through which no gas passes."""
    if isinstance(one, NoSlipWall) and isinstance(other, NoSlipWall):
        return _same_keys(one, other) and one.normal_velocity is one.mass_flux is None
    return isinstance(one, SlipWall) and isinstance(other, SlipWall)


def _shared_lines(
    blocks: Sequence[Block], connections: Sequence[Connection], wall: PlacedCondition
) -> Iterator[tuple[int, str, Range]]:
    """Yield the lines of nodes at the edges of a wall that other blocks have, too: the block, its face that continues
    that of the wall, and the nodes."""
    for c, nodes in _ends(blocks, connections, wall):
        yield c.donor, same_face(wall[1], c, nodes), _box(c.donors(nodes))


def _ends(
    blocks: Sequence[Block], connections: Sequence[Connection], wall: PlacedCondition
) -> Iterator[tuple[Connection, np.ndarray]]:
    """Yield the lines of nodes at the edges of a wall that other blocks have, too: the connection to such a block, and
    the indexes i, j, k (3, n) of the nodes in the block of the wall."""
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
                if contains_nodes(blocks[c.donor], c.donors(nodes)):
                    yield c, nodes


def _box(nodes: np.ndarray) -> Range:
    """The half-open ranges of the nodes (3, n) of a line."""
    return triple((int(lo), int(hi) + 1) for lo, hi in zip(nodes.min(axis=1), nodes.max(axis=1), strict=True))


def _outside(range_: Range, part: Range) -> Iterator[Range]:
    """Yield the nodes of a range that are not in `part`, as ranges."""
    common = intersection(range_, part)
    yield from [range_] if common is None else _without(range_, common)


def _without(range_: Range, part: Range) -> Iterator[Range]:
    """Yield the nodes of a range that are not in its `part`, as ranges."""
    left = list(range_)
    for d, (first, last) in enumerate(part):
        for lo, hi in ((left[d][0], first), (last, left[d][1])):
            if lo < hi:
                yield triple((lo, hi) if e == d else left[e] for e in range(3))
        left[d] = first, last
