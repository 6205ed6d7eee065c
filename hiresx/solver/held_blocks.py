"""States on a device of blocks of one solver, from which the next solver copies at nodes that its blocks have, too."""

from dataclasses import dataclass
from typing import Any

from hiresx.decomposition.levels import Tile
from hiresx.grid.blocks import Range, shift_range, slices


@dataclass(frozen=True, eq=False)
class HeldBlock:
    """The state `q` of a block with the nodes `tile`, a box of nodes of a level of refinement, and with `halo` ghost
    layers along i, j, k, as in a BlockState."""

    tile: Tile
    halo: tuple[int, int, int]
    q: Any

    def at(self, box: Range) -> Any:
        """Return a view [..., k, j, i] of the state at the nodes in the half-open index ranges `box` (i, j, k) of the
        level."""
        (hi, hj, hk), ((i, _), (j, _), (k, _)) = self.halo, self.tile.box
        return self.q[(..., *slices(shift_range(box, (hi - i, hj - j, hk - k))))]
