"""Ownership of face nodes. In many files two neighbouring patches both include the line of nodes between them; each
node must belong to one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, directions_along, in_face, rectangles_of_face


@dataclass(frozen=True)
class FacePart:
    """A rectangle of nodes of a block face that belong to one boundary condition or connection. `block`: the number of
    the block. `range`: half-open index ranges (i, j, k). `owner`: the name of the condition or connection for messages.
    """

    block: int
    face: str
    range: Range
    owner: str


def assign_nodes(
    blocks: Sequence[Block], parts: Sequence[FacePart], owned: Sequence[FacePart] = (), strict: bool = True
) -> list[list[Range]]:
    """Give each face node to the first boundary condition or connection that claims it. `parts`: the claimed rectangles
    of face nodes, the first one with priority. Returns, for each of `parts`, the nodes that no earlier rectangle has,
    as disjoint half-open ranges (i, j, k). Usually this is one range: the whole rectangle, or the rectangle without a
    line of nodes at its border. `owned`: further rectangles, which have priority over `parts` and may overlap each
    other; the result does not contain them.

    If `strict` is true, two rectangles may share one line of nodes (in two dimensions one node). If they share more, a
    HiresxError names both and the first common node. If `strict` is false, any number of nodes may be shared."""
    owners: dict[tuple[int, str], np.ndarray] = {}
    assigned: list[list[Range]] = []
    everything = [*owned, *parts]
    for number, part in enumerate(everything):
        block, across = blocks[part.block], directions_along(part.face)
        of_face = owners.setdefault((part.block, part.face), np.full([block.size[e] for e in across], -1))
        nodes = of_face[in_face(part.face, part.range)]
        if number >= len(owned):
            if strict:
                _check_overlap(block, part, everything, nodes, across)
            assigned.append(rectangles_of_face(part.face, part.range, nodes < 0))
        nodes[nodes < 0] = number
    return assigned


def _check_overlap(
    block: Block, part: FacePart, everything: Sequence[FacePart], nodes: np.ndarray, across: list[int]
) -> None:
    """Raises HiresxError if a part shares more than a line of nodes with an earlier one."""
    for other in np.unique(nodes[nodes >= 0]):
        shared = np.argwhere(nodes == other)
        width = shared.max(axis=0) - shared.min(axis=0)
        wide = [w > 0 for w, e in zip(width, across, strict=True) if block.size[e] > 1]
        if wide and not all(wide):
            continue
        node = [part.range[e][0] for e in range(3)]
        for e, at in zip(across, shared[0], strict=True):
            node[e] += int(at)
        raise HiresxError(
            f"block '{block.name}', face {part.face}: {part.owner} and {everything[other].owner} overlap from node "
            f"(i, j, k) = ({node[0]}, {node[1]}, {node[2]}) on",
            "correct their ranges: patches of a face may share a line of nodes, no more",
        )
