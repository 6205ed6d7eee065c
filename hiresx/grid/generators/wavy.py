"""Box whose nodes are displaced by a product of sine waves, one block named "wavy"."""

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.threads import map_all, planes
from hiresx.case.grids import Wavy
from hiresx.grid.blocks import Block
from hiresx.grid.connections import Grid
from hiresx.grid.generators.box import box_nodes, box_period, unit_lines


def generate(spec: Wavy) -> Grid:
    """Return the grid of a rectangular box whose nodes are displaced by a product of sine waves, with the parameters
    `spec`, the table [grid] of a case file, in reference lengths.

    The node that would lie at X is displaced along coordinate c by amplitude_c times the product, over the directions d
    with more than one node, of sin(2 pi waves_d (X_d - lower_d) / L_d), where L_d is the length of the box along d.
    With amplitude = [0.5, 0.5, 0] and waves = [1, 1, 1] in two dimensions it is the grid of the isentropic vortex of Ye
    et al. (2022). A direction may be periodic if its number of waves is a whole number."""
    lines = unit_lines(spec)
    coordinates = box_nodes(spec, lines)
    waves = [
        np.sin(2 * np.pi * spec.waves[d] * s) if spec.n[d] > 1 else np.ones(1) for d, s in enumerate(lines)
    ]  # fmt: skip
    nodes = np.empty((3, *coordinates[0].shape))

    def fill(rows: slice) -> None:
        wave = 1.0 * waves[0] * waves[1][:, None] * waves[2][rows, None, None]
        for to, c, amplitude in zip(nodes, coordinates, spec.amplitude, strict=True):
            np.add(c[rows], amplitude * wave, out=to[rows])

    map_all(fill, planes(spec.n[2], spec.n[0] * spec.n[1]))
    directions = [d for d in range(3) if float(spec.waves[d]).is_integer()]
    return Grid((Block("wavy", *triple(nodes)),), period=(box_period(spec, directions),))
