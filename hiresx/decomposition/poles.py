"""What lies behind a pole: the block's own nodes, half a ring on."""

from collections.abc import Sequence

from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import face_range
from hiresx.grid.singular import PAGE, across, check_opposite, ring


def over_the_pole(who: str, blocks: Sequence[Block], connections: Sequence[Connection], patch) -> list[Connection]:
    """The connections behind the pole `patch` of the whole blocks. Raises HiresxError beginning with `who` where the
    face is no pole, or one that is not supported."""
    block = blocks[patch.block]
    found = ring(who, blocks, connections, patch.block, patch.face)
    if patch.range != face_range(patch.face, block.size):
        raise HiresxError(
            f"{who}: a pole is a whole face, not nodes {patch.range} of {patch.face}", f"leave out range; {PAGE}"
        )
    check_opposite(who, block, patch.face, found)
    return across(block, patch.block, patch.face, found)
