"""Who holds which node of a face where patches are given with their rims: as in CGNS, neighbours name a line twice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.base.arrays import triple
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, direction, layer, rectangles


@dataclass(frozen=True)
class Claim:
    """Nodes of a face that `who` (in words) wants; `range` as of `Connection`."""

    block: int
    face: str
    range: Range
    who: str


def settled(
    blocks: Sequence[Block], claims: Sequence[Claim], held: Sequence[Claim] = (), strict: bool = True
) -> list[list[Range]]:
    """Per claim the nodes that no earlier one holds, as disjoint ranges; mostly one, the claim itself or the claim
    without a line of its rim. `held` come before all, and may overlap each other as they like.

    `strict`: two claims may share a line of nodes (in two dimensions a node), no more; raises HiresxError naming both
    and the first node that they share. Otherwise a later one loses whatever an earlier one holds.
    """
    holders: dict[tuple[int, str], np.ndarray] = {}
    left: list[list[Range]] = []
    everyone = [*held, *claims]
    for number, claim in enumerate(everyone):
        block, d = blocks[claim.block], direction(claim.face)
        across = [e for e in (2, 1, 0) if e != d]
        holder = holders.setdefault((claim.block, claim.face), np.full([block.size[e] for e in across], -1))
        part = holder[tuple(slice(*claim.range[e]) for e in across)]
        if number >= len(held):
            if strict:
                _check_thin(block, claim, everyone, part, across)
            left.append([])
            for rectangle in rectangles(part < 0):
                range_ = [layer(claim.face, block.size)] * 3
                for e, (lo, hi) in zip(across, rectangle, strict=True):
                    range_[e] = (lo + claim.range[e][0], hi + claim.range[e][0])
                left[-1].append(triple(range_))
        part[part < 0] = number
    return left


def _check_thin(block: Block, claim: Claim, claims: Sequence[Claim], part: np.ndarray, across: list[int]) -> None:
    for other in np.unique(part[part >= 0]):
        held = np.argwhere(part == other)
        width = held.max(axis=0) - held.min(axis=0)
        wide = [w > 0 for w, e in zip(width, across, strict=True) if block.size[e] > 1]
        if wide and not all(wide):
            continue
        node = [claim.range[e][0] for e in range(3)]
        for e, at in zip(across, held[0], strict=True):
            node[e] += int(at)
        raise HiresxError(
            f"block '{block.name}', face {claim.face}: {claim.who} and {claims[other].who} overlap from node "
            f"(i, j, k) = ({node[0]}, {node[1]}, {node[2]}) on",
            "correct their ranges: patches of a face may share a line of nodes, no more",
        )
