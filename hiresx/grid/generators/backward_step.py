"""Channel behind which the floor drops by a step: three Cartesian blocks, the edge of the step at x = y = 0.

    +---------+----------------+
    | channel |     above      |    channel   x <= 0, y >= 0
    +---------+----------------+    above     x >= 0, y >= 0
              |     below      |    below     x >= 0, y <= 0
              +----------------+

Blocks that meet share the nodes there. Regions: "inlet" (channel, imin), "outlet" (above and below, imax), "top"
(channel and above, jmax), "bottom" (below, jmin), "step" (channel, jmin, and below, imin: the walls that meet in the
edge).
"""

import numpy as np

from hiresx.case.grids import BackwardStep
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, face_range
from hiresx.grid.connections import Grid
from hiresx.grid.matching import matched_connections


def generate(spec: BackwardStep) -> Grid:
    """Return the grid of a channel with a backward-facing step, three Cartesian blocks, with the parameters `spec`, the
    table [grid] of a case file. Lengths are in reference lengths. Raises HiresxError for a length that is not a
    multiple of the spacing."""
    upstream, length, height, depth = (
        _cells(name, getattr(spec, name), spec.spacing) for name in ("upstream", "length", "height", "depth")
    )
    channel = _block("channel", spec.spacing, (-upstream, 0), (0, height))
    above = _block("above", spec.spacing, (0, length), (0, height))
    below = _block("below", spec.spacing, (0, length), (-depth, 0))
    for block, faces in (
        (channel, {"inlet": "imin", "step": "jmin", "top": "jmax"}),
        (above, {"outlet": "imax", "top": "jmax"}),
        (below, {"outlet": "imax", "step": "imin", "bottom": "jmin"}),
    ):
        block.regions.update({name: ((face, face_range(face, block.size)),) for name, face in faces.items()})
    blocks = (channel, above, below)
    return Grid(blocks, tuple(matched_connections(blocks)))


def _cells(name: str, length: float, spacing: float) -> int:
    cells = round(length / spacing)
    if abs(cells * spacing - length) > 1e-6 * length:
        raise HiresxError(
            f"grid.{name} = {length:g} is no multiple of grid.spacing = {spacing:g}",
            f"give {max(cells, 1) * spacing:g}, or another grid.spacing",
        )
    return cells


def _block(name: str, spacing: float, columns: tuple[int, int], rows: tuple[int, int]) -> Block:
    """Return a block with the nodes from the first to the last column and row, in spacings from the edge of the
    step."""
    y, x = np.meshgrid(*(spacing * np.arange(lo, hi + 1) for lo, hi in (rows, columns)), indexing="ij")
    return Block(name, x[None], y[None], np.zeros_like(x)[None])
