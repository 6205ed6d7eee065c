"""Rings of nodes around a pole (a block face that has collapsed to a line, as on the axis of a polar grid), in one
block or over several blocks, and the nodes on their opposite sides.

The nodes of a ring are counted in the indexes of one of its blocks, continued through the connections around the pole.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.base.arrays import triple
from hiresx.equations.stencil import DIFFERENCE_REACH
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, FACES, Block, direction, side
from hiresx.grid.connections import IDENTITY, TOLERANCE, Connection
from hiresx.grid.motions import Motion, reflection
from hiresx.grid.singular import PAGE, collapsed_direction


@dataclass(frozen=True)
class RingBlock:
    """A block of a ring around a pole. A node with the indexes I of the ring has the indexes (i, j, k) = `matrix` @ I +
    `offset` of block number `block`.

    `face`: the face that has collapsed to the pole. `first`, `last`: the first and the last node of the block around
    the pole, in the indexes of the ring."""

    block: int
    face: str
    matrix: np.ndarray
    offset: np.ndarray
    first: int
    last: int


@dataclass(frozen=True)
class Ring:
    """The ring of blocks around a pole, `members` in the order in which they follow each other.

    `normal`, `around`, `along`: which indexes of the ring run away from the pole, around it and along its line. `pole`:
    the index of the pole in the direction `normal`. `nodes`: the number of different nodes around the pole; in a half
    model the number of steps from end to end. `mirror`: the reflection at the plane of symmetry of a half model, or
    None.
    """

    members: tuple[RingBlock, ...]
    normal: int
    around: int
    along: int
    pole: int
    nodes: int
    mirror: Motion | None = None

    def member(self, block: int) -> RingBlock:
        """Return the entry for block number `block` in this ring of blocks around a pole."""
        return next(m for m in self.members if m.block == block)

    def shares(self, member: RingBlock) -> tuple[float, float]:
        """Return the weights, 1 or 1/2, of the first and the last node of one block in a mean over all nodes around a
        pole (a line to which block faces have collapsed). `member`: the block's entry in this ring of blocks. The
        weight is 1/2 if a neighbouring block of the ring has the same node. It is also 1/2 at the ends of a half model,
        where every other node represents two nodes of the whole ring."""
        if self.mirror is not None and len(self.members) == 1:
            return 0.5, 0.5
        number = [m.block for m in self.members].index(member.block)
        before, after = (self.members[(number + step) % len(self.members)] for step in (-1, 1))
        doubled_before = (before.last - member.first) % self.nodes == 0
        doubled_after = (after.first - member.last) % self.nodes == 0
        return 0.5 if doubled_before else 1.0, 0.5 if doubled_after else 1.0


def ring(
    where: str,
    blocks: Sequence[Block],
    connections: Sequence[Connection],
    b: int,
    face: str,
    planes: Collection[tuple[int, str]] = (),
    layers: int = DIFFERENCE_REACH,
) -> Ring:
    """Return the ring of connected blocks around a pole, which is a block face that has collapsed to a line. `b`,
    `face`: the number of the block and its collapsed face. `planes`: symmetry planes as (block number, face); half a
    ring may lie between two of them. `layers`: number of layers of nodes needed beyond the pole. Raises HiresxError if
    the face has not collapsed to a line, if the ring is neither whole nor half, if one of its blocks has too few nodes
    next to the pole, and if the number of nodes around the pole is odd. `where`: the beginning of the error message."""
    block = blocks[b]
    around = collapsed_direction(block, face)
    if around is None:
        raise HiresxError(
            f"{where}: the face {face} of block '{block.name}' has not collapsed to a line",
            f"a pole is a face whose nodes lie at one place along one of its directions: {PAGE}",
        )
    normal = direction(face)
    along = 3 - normal - around
    own = RingBlock(b, face, np.eye(3, dtype=int), np.zeros(3, dtype=int), 0, block.size[around] - 1)
    members, nodes = [own], None
    for way in (1, -1):
        while nodes is None:
            at = members[-1 if way > 0 else 0]
            following = _following(where, blocks, connections, at, around, way, layers + 1)
            if following is None:
                break
            if following.block == b:
                nodes = _steps_around(where, blocks, following, around)
                break
            if following.block in [m.block for m in members]:
                raise _open(where, blocks, b, face, around)
            members.insert(len(members) if way > 0 else 0, following)
    pole = 0 if side(face) < 0 else block.size[normal] - 1
    if nodes is not None:
        if nodes % 2:
            raise HiresxError(
                f"{where}: block '{block.name}' has {nodes} nodes around the pole on {face}, along {AXES[around]}: "
                "from an odd number none lies across it",
                f"give an even number of nodes around; {PAGE}",
            )
        return Ring(tuple(members), normal, around, along, pole, nodes)
    ends = [(m.block, _face(m, around, way)) for m, way in ((members[0], -1), (members[-1], 1))]
    if not all(end in planes for end in ends):
        raise _open(where, blocks, b, face, around)
    nodes = members[-1].last - members[0].first
    half = Ring(tuple(members), normal, around, along, pole, nodes)
    mirror = _mirror(where, blocks, half, ends)
    return Ring(tuple(members), normal, around, along, pole, nodes, mirror)


def _face(member: RingBlock, d: int, way: int) -> str:
    """Return the face of a member on the side `way` along the direction `d` of the ring's indexes."""
    e = int(np.flatnonzero(member.matrix[:, d])[0])
    return FACES[2 * e + (way * member.matrix[e, d] > 0)]


def _following(
    where: str,
    blocks: Sequence[Block],
    connections: Sequence[Connection],
    member: RingBlock,
    around: int,
    way: int,
    depth: int,
) -> RingBlock | None:
    """Return the block that comes after (way 1) or before (-1) a member, with `depth` nodes from the pole on; None if
    no block is connected there."""
    block, face = blocks[member.block], _face(member, around, way)
    normal = direction(member.face)
    along = 3 - normal - direction(face)
    at = 0 if side(member.face) < 0 else block.size[normal] - 1
    touching = [
        c
        for c in connections
        if not c.over_a_pole
        and (c.block, c.face) == (member.block, face)
        and c.range[normal][0] <= at < c.range[normal][1]
    ]
    if not touching:
        return None
    (c, *others) = touching
    deep = range(at, at - side(member.face) * depth, -side(member.face))
    if (
        others
        or tuple(c.range[along]) != (0, block.size[along])
        or not all(c.range[normal][0] <= n < c.range[normal][1] for n in deep)
    ):
        raise HiresxError(
            f"{where}: the nodes beside the pole on {member.face} of block '{block.name}' do not go on in one block "
            f"beyond {face}",
            f"rings may go from block to block, but each must hold all of the pole's line and {depth} nodes beside "
            f"it; {PAGE}",
        )
    if c.rotation is not None or any(c.translation):
        raise HiresxError(
            f"{where}: block '{block.name}' is a sector of a ring, joined to its own image on {face}",
            f"give the whole ring, or a half of it between planes of symmetry; {PAGE}",
        )
    matrix = np.array(c.matrix)
    a, o = matrix @ member.matrix, matrix @ member.offset + np.array(c.offset)
    corners = a.T @ (np.array([[0] * 3, [n - 1 for n in blocks[c.donor].size]]).T - o[:, None])
    d = int(np.flatnonzero(member.matrix[normal])[0])  # away from the pole, in the ring's indexes
    e = int(np.flatnonzero(a[:, d])[0])
    inwards = -side(member.face) * matrix[e, normal]
    ends = sorted(int(n) for n in corners[around])
    found = RingBlock(c.donor, FACES[2 * e + (inwards < 0)], a, o, *ends)
    line = sorted(int(n) for n in corners[3 - d - around])
    own = sorted(int(n) for n in (member.matrix.T @ (_corners(block) - member.offset[:, None]))[3 - d - around])
    if line != own or collapsed_direction(blocks[c.donor], found.face) is None:
        raise HiresxError(
            f"{where}: block '{blocks[c.donor].name}', which follows around the pole, does not end at the same line",
            f"rings may go from block to block, but each must hold all of the pole's line; {PAGE}",
        )
    return found


def _corners(block: Block) -> np.ndarray:
    return np.array([[0] * 3, [n - 1 for n in block.size]]).T


def _steps_around(where: str, blocks: Sequence[Block], again: RingBlock, around: int) -> int:
    """Return the number of steps that lead around to the first block again."""
    nodes = abs(int(again.offset[around]))
    still = all(again.offset[d] == 0 for d in range(3) if d != around)
    if not (np.array_equal(again.matrix, np.array(IDENTITY)) and still and nodes):
        raise HiresxError(
            f"{where}: the rings of block '{blocks[again.block].name}' come back to it turned over",
            f"correct the connections around the pole; {PAGE}",
        )
    return nodes


def _open(where: str, blocks: Sequence[Block], b: int, face: str, around: int) -> HiresxError:
    low, high = FACES[2 * around], FACES[2 * around + 1]
    return HiresxError(
        f"{where}: block '{blocks[b].name}' does not close on itself around the pole on {face}, along {AXES[around]}",
        f"join {low} and {high}, or the blocks that follow there, to a whole ring, or end a half ring at two planes "
        f'with type = "symmetry"; {PAGE}',
    )


def _mirror(where: str, blocks: Sequence[Block], half: Ring, ends: Sequence[tuple[int, str]]) -> Motion:
    """Return the reflection at the plane in which both ends of half a ring lie."""
    both = half.members[0].first, half.members[-1].last
    places = np.concatenate([_nodes(blocks, half, g, 1 + DIFFERENCE_REACH).reshape(3, -1) for g in both], 1)
    centre = places.mean(axis=1, keepdims=True)
    normal = np.linalg.svd(places - centre)[0][:, 2]
    normal = np.where(np.abs(normal) < TOLERANCE, 0.0, normal)
    normal /= np.linalg.norm(normal)
    extent = max(blocks[half.members[0].block].extents)
    height = float(normal @ centre[:, 0])
    height = 0.0 if abs(height) < TOLERANCE * extent else height
    off = np.abs(normal @ places - height)
    if not off.max() <= TOLERANCE * extent:
        (b, face), (p, other) = ends
        raise HiresxError(
            f"{where}: the ends of half a ring, {face} of block '{blocks[b].name}' and {other} of block "
            f"'{blocks[p].name}', do not lie in one plane",
            f"a half model ends at its plane of symmetry on both sides of the pole; {PAGE}",
        )
    return reflection(normal, height)


def _nodes(blocks: Sequence[Block], found: Ring, g: int, layers: int) -> np.ndarray:
    """Return the coordinates (3, layers, nodes along) of the nodes at `g` around the pole, from the pole on."""
    member = next(m for m in found.members if m.first <= g <= m.last)
    block, step = blocks[member.block], 1 if found.pole == 0 else -1
    ends = (member.matrix.T @ (_corners(block) - member.offset[:, None]))[found.along]
    line = np.arange(ends.min(), ends.max() + 1)
    index = np.zeros((3, layers, len(line)), dtype=int)
    index[found.normal], index[found.around] = (found.pole + step * np.arange(layers))[:, None], g
    index[found.along] = line
    return block.node(*(np.tensordot(member.matrix, index, axes=1) + member.offset[:, None, None]))


def connections_across(blocks: Sequence[Block], found: Ring, b: int) -> Iterator[Connection]:
    """Yield the connections across a pole (a block face that has collapsed to a line), which lead from block number `b`
    to the nodes on the opposite side of the pole. `found`: the ring of blocks around the pole. In a half model the
    nodes on the opposite side are mirror images of nodes of the ring."""
    member = found.member(b)
    size = blocks[b].size
    e = int(np.flatnonzero(member.matrix[:, found.around])[0])
    for first, last, (other, turn, shift) in _stretches(found, member):
        # (i, j, k) of this block -> the ring's indexes -> those across -> (i, j, k) of the other block
        over = np.eye(3, dtype=int)
        over[found.normal, found.normal], over[found.around, found.around] = -1, turn
        moved = np.zeros(3, dtype=int)
        moved[found.normal], moved[found.around] = 2 * found.pole, shift
        back = member.matrix.T
        matrix = other.matrix @ over @ back
        offset = other.matrix @ (moved - over @ back @ member.offset) + other.offset
        here = sorted(int(member.matrix[e, found.around] * g + member.offset[e]) for g in (first, last))
        d = direction(member.face)
        at = 0 if side(member.face) < 0 else size[d] - 1
        range_ = triple(
            (here[0], here[1] + 1) if a == e else (at, at + 1) if a == d else (0, size[a]) for a in range(3)
        )
        motion = found.mirror or Motion()
        yield Connection(
            b, member.face, range_, other.block, triple(triple(int(n) for n in row) for row in matrix),
            triple(int(n) for n in offset), motion.translation, motion.rotation, over_a_pole=True,
        )  # fmt: skip


def _stretches(found: Ring, member: RingBlock) -> Iterator[tuple[int, int, tuple[RingBlock, int, int]]]:
    """Yield the ranges of a member: (first, last, (member across, turn, shift)). Node g of the ring lies opposite node
    turn * g + shift."""
    begun: tuple[int, tuple[RingBlock, int, int]] | None = None
    for g in range(member.first, member.last + 1):
        there = _opposite(found, g)
        if begun is None or there[1:] != begun[1][1:] or there[0] is not begun[1][0]:
            if begun is not None:
                yield begun[0], g - 1, begun[1]
            begun = (g, there)
    if begun is not None:
        yield begun[0], member.last, begun[1]


def _opposite(found: Ring, g: int) -> tuple[RingBlock, int, int]:
    if found.mirror is not None:
        shift = found.members[0].first + found.members[-1].last
        turn, wraps = -1, [0]
    else:
        shift, turn, wraps = found.nodes // 2, 1, [0, -found.nodes, found.nodes, -2 * found.nodes, 2 * found.nodes]
    best = None
    for wrap in wraps:
        at = turn * g + shift + wrap
        for m in found.members:
            if m.first <= at <= m.last:
                # if two members have the node, the one that begins with it is used
                if at < m.last:
                    return m, turn, shift + wrap
                best = best or (m, turn, shift + wrap)
    assert best is not None  # together the members have every node of the ring
    return best


def check_opposite(where: str, blocks: Sequence[Block], found: Ring, b: int, face: str) -> None:
    """Raise HiresxError unless each node next to a pole and the node half a ring further lie on opposite sides of the
    pole. The pole is the collapsed face `face` ("imin", "imax", ...) of block number `b`. `where`: the beginning of the
    error message. `found`: the ring of blocks around the pole."""
    first = found.members[0].first
    steps = []
    for g in range(first, first + found.nodes + (found.mirror is not None)):
        at = g if any(m.first <= g <= m.last for m in found.members) else g - found.nodes
        near = _nodes(blocks, found, at, 2)
        steps.append(near[:, 1] - near[:, 0])
    if found.mirror is not None:
        image = np.array(found.mirror.rotation)
        steps += [image @ steps[g] for g in range(found.nodes - 1, 0, -1)]
    away = np.stack(steps)
    other = np.roll(away, len(away) // 2, axis=0)
    # only the part normal to the line changes its sign
    mean = away.mean(axis=0)
    if not (((away - mean) * (other - mean)).sum(axis=1) < 0).all():
        raise HiresxError(
            f"{where}: a node next to the pole on {face} of block '{blocks[b].name}' and the node half a ring further "
            "do not lie on opposite sides of the pole",
            f"spread the nodes evenly around the pole; {PAGE}",
        )
