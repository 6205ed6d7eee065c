"""Connections over poles (block faces that have collapsed to a line): the ghosts behind a pole are the nodes on the
opposite side of the ring of nodes around it, in the same block or in another one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import face_range
from hiresx.grid.rings import Ring, check_opposite, connections_across, ring
from hiresx.grid.singular import PAGE

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Patch


def pole_rings(
    blocks: Sequence[Block], connections: Sequence[Connection], patches: "Sequence[Patch]", halo: int
) -> list[Ring]:
    """Return the rings of blocks around all poles (block faces that have collapsed to a line), each ring once.
    `connections`, `patches`: the connections and boundary conditions of `blocks`. `halo`: number of ghost layers that
    the ring must provide. Raises HiresxError for a face that is not a pole, for a pole that is not supported, and for a
    block of a ring whose face does not have the condition `pole`."""
    poles = [patch for patch in patches if patch.condition.kernel == "pole"]
    planes = {
        (patch.block, patch.face)
        for patch in patches
        if patch.condition.kernel == "reflect" and patch.range == face_range(patch.face, blocks[patch.block].size)
    }
    named = {(patch.block, patch.face) for patch in poles}
    found: list[Ring] = []
    known: set[tuple[int, str]] = set()
    for patch in poles:
        block = blocks[patch.block]
        who = f"pole on {patch.face} of block '{block.name}'"
        if patch.range != face_range(patch.face, block.size):
            raise HiresxError(
                f"{who}: a pole is a whole face, not nodes {patch.range} of {patch.face}", f"leave out range; {PAGE}"
            )
        if (patch.block, patch.face) in known:
            continue
        rings = ring(who, blocks, connections, patch.block, patch.face, planes, halo)
        for member in rings.members:
            if (member.block, member.face) not in named:
                raise HiresxError(
                    f"{who}: its ring continues in block '{blocks[member.block].name}', whose {member.face} is no pole",
                    f"give {member.face} of block '{blocks[member.block].name}' the type \"pole\" as well; {PAGE}",
                )
            known.add((member.block, member.face))
        check_opposite(who, blocks, rings, patch.block, patch.face)
        found.append(rings)
    return found


def pole_connections(
    blocks: Sequence[Block], connections: Sequence[Connection], patches: "Sequence[Patch]", halo: int
) -> list[Connection]:
    """Return the connections across all poles (block faces that have collapsed to a line): ghosts behind a pole are
    nodes on its opposite side. `connections`, `patches`: the connections and boundary conditions of `blocks`. `halo`:
    number of ghost layers. Raises HiresxError for a face that is not a pole, and for a pole that is not supported
    (`pole_rings`)."""
    rings = pole_rings(blocks, connections, patches, halo)
    return [c for found in rings for member in found.members for c in connections_across(blocks, found, member.block)]
