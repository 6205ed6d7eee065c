"""Box whose nodes are displaced by a product of sine waves, one block named "wavy"."""

import numpy as np

from hiresx.arrays import triple
from hiresx.case.grids import Wavy
from hiresx.grid.blocks import Block
from hiresx.grid.connections import Grid
from hiresx.grid.generators.box import box_nodes, box_period, unit_lines


def generate(spec: Wavy) -> Grid:
    """Grid of a `wavy` table: that of a `box`, and amplitude, waves (`hiresx.case.grids.Wavy`), in reference lengths.

    The node that would lie at X is displaced along coordinate c by amplitude_c times the product, over the directions
    d with more than one node, of sin(2 pi waves_d (X_d - lower_d) / L_d). amplitude = [0.5, 0.5, 0] and waves =
    [1, 1, 1] in two dimensions is the wavy grid of the reference vortex.

    A direction may be periodic when a whole number of waves fits every one that has more than one node there.
    """
    lines = unit_lines(spec)
    coordinates = box_nodes(spec, lines)
    wave = np.ones_like(coordinates[0])
    for d, s in enumerate(lines):
        if spec.n[d] > 1:
            wave = wave * np.sin(2 * np.pi * spec.waves[d] * s).reshape([-1 if 2 - d == a else 1 for a in range(3)])
    nodes = [c + amplitude * wave for c, amplitude in zip(coordinates, spec.amplitude, strict=True)]
    directions = [d for d in range(3) if float(spec.waves[d]).is_integer()]
    return Grid((Block("wavy", *triple(nodes)),), period=(box_period(spec, directions),))
