"""Singular lines: faces whose nodes have collapsed, ring by ring, to a line, and what goes on across them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, FACES, Block, Range, direction, face_range, side, slices
from hiresx.grid.connections import IDENTITY, Connection

# Rings shorter than this share of the block's extent are points.
COLLAPSED = 1e-9
PAGE = "docs/grids.md says what a pole needs (singular lines)"


@dataclass(frozen=True)
class Ring:
    """The rings around a collapsed face: nodes run around it along `direction`, `nodes` different ones; `doubled`: the
    block holds the first of them at its end once more."""

    direction: int
    nodes: int
    doubled: bool


def collapsed(block: Block, face: str) -> int | None:
    """The direction along which every line of nodes on `face` is a point; None if there is none, or more than one."""
    if len(block.active) < 3:
        return None
    extent = max(block.extents)
    part = np.stack([c[slices(face_range(face, block.size))] for c in (block.x, block.y, block.z)])
    found = []
    for d in block.active:
        if d != direction(face):
            size = np.ptp(part, axis=3 - d)
            if float(size.max()) <= COLLAPSED * extent:
                found.append(d)
    return found[0] if len(found) == 1 else None


def ring(where: str, blocks: Sequence[Block], connections: Sequence[Connection], b: int, face: str) -> Ring:
    """The rings around the collapsed `face` of block `b`. Raises HiresxError, beginning with `where`, when the face has
    not collapsed to a line, when the block does not close on itself around it, and for an odd number of nodes there."""
    block = blocks[b]
    d = collapsed(block, face)
    if d is None:
        raise HiresxError(
            f"{where}: the face {face} of block '{block.name}' has not collapsed to a line",
            f"a pole is a face whose nodes lie at one place along one of its directions: {PAGE}",
        )
    for c in connections:
        closes = c.block == c.donor == b and c.face == FACES[2 * d] and c.matrix == IDENTITY
        if closes and c.rotation is None and not any(c.translation) and c.offset[d] >= block.size[d] - 1:
            nodes = c.offset[d]
            if nodes % 2:
                raise HiresxError(
                    f"{where}: block '{block.name}' has {nodes} nodes around the pole on {face}, along {AXES[d]}: from "
                    "an odd number none lies across it",
                    f"give an even number of nodes around; {PAGE}",
                )
            return Ring(d, nodes, nodes == block.size[d] - 1)
    raise HiresxError(
        f"{where}: block '{block.name}' does not close on itself around the pole on {face}, along {AXES[d]}",
        f"join {FACES[2 * d]} and {FACES[2 * d + 1]}; half models, and rings of several blocks, are not computed: put "
        f"the whole ring into one block; {PAGE}",
    )


def across(block: Block, b: int, face: str, found: Ring) -> list[Connection]:
    """The two connections that lead over the pole: from each half of the ring to the nodes opposite."""
    d, e = direction(face), found.direction
    half, n = found.nodes // 2, block.size[d]
    matrix = tuple(tuple((-1 if row == d else 1) * (row == column) for column in range(3)) for row in range(3))
    back = 0 if side(face) < 0 else 2 * (n - 1)
    result = []
    for (first, last), shift in (((0, half), half), ((half, block.size[e]), -half)):
        range_: Range = tuple((first, last) if a == e else part for a, part in enumerate(face_range(face, block.size)))
        offset = tuple(back if a == d else shift if a == e else 0 for a in range(3))
        result.append(Connection(b, face, range_, b, matrix, offset))
    return result


def check_opposite(where: str, block: Block, face: str, found: Ring) -> None:
    """Raises HiresxError unless the nodes next to the pole lie across it from those half a ring on."""
    d, e = direction(face), found.direction
    at, next_ = (0, 1) if side(face) < 0 else (block.size[d] - 1, block.size[d] - 2)
    xyz = np.stack([block.x, block.y, block.z])
    away = np.moveaxis(np.take(xyz, next_, 3 - d) - np.take(xyz, at, 3 - d), 0, -1)
    axis = [a for a in (2, 1, 0) if a != d].index(e)
    away = np.take(away, range(found.nodes), axis)
    other = np.roll(away, found.nodes // 2, axis)
    # only the part square to the line turns round
    mean = away.mean(axis=axis, keepdims=True)
    cosine = ((away - mean) * (other - mean)).sum(-1)
    if not (cosine < 0).all():
        raise HiresxError(
            f"{where}: half a ring on from a node beside the pole on {face} of block '{block.name}' the nodes do not "
            "lie on the other side of it",
            f"spread the nodes evenly around the pole; {PAGE}",
        )
