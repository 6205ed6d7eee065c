"""Flat plate along y = 0 with free flow ahead of its leading edge: one block named "plate".

Regions of the face jmin: "plate" from the leading edge (that node included) on, "upstream" the nodes ahead of it.
"""

import numpy as np

from hiresx.case.grids import Plate
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Regions
from hiresx.grid.connections import Grid
from hiresx.grid.spacing import nodes_from_centre, nodes_from_wall


def generate(spec: Plate) -> Grid:
    """Return the grid of a flat plate along y = 0 with free flow ahead of its leading edge, one block, with the
    parameters `spec`, the table [grid] of a case file. Lengths are in reference lengths.

    Along x the spacing grows from `leading_edge_spacing` at the leading edge by a hyperbolic sine to both sides. The
    leading edge is a node. The ni - 1 cells are divided between the two sides so that the spacing grows equally fast on
    both. Along y the spacing grows by a hyperbolic sine from `first_spacing` at the wall. Along z there are nk nodes.
    The period along z is `width`, and the node at the upper end is left out. Raises HiresxError for spacings that do
    not fit the numbers of nodes."""
    ni, nj, nk = spec.n
    if nj == 1:
        raise HiresxError("a plate grid has nj > 1: j runs from the wall outwards", "give grid.n = [ni, nj, 1]")
    ahead = _cells_ahead(ni - 1, spec.upstream, spec.length, spec.leading_edge_spacing)
    keys = spec.leading_edge_spacing, "grid.leading_edge_spacing", "the first of grid.n"
    before = nodes_from_centre(ahead, spec.upstream, *keys)
    after = nodes_from_centre(ni - 1 - ahead, spec.length, *keys)
    x = spec.leading_edge + np.concatenate([-before[:0:-1], after])
    y = nodes_from_wall(nj - 1, spec.height, spec.first_spacing, "grid.first_spacing", "the second of grid.n")
    z, y, x = np.meshgrid(np.arange(nk) * (spec.width / nk), y, x, indexing="ij")
    regions: Regions = {
        "upstream": (("jmin", ((0, ahead), (0, 1), (0, nk))),),
        "plate": (("jmin", ((ahead, ni), (0, 1), (0, nk))),),
    }
    period = {"k": (0.0, 0.0, float(spec.width))} if nk > 1 else {}
    return Grid((Block("plate", x, y, z, regions),), period=(period,))


def _cells_ahead(cells: int, upstream: float, length: float, spacing: float) -> int:
    """Return the number of cells ahead of the edge for which both sides grow alike. With x = (spacing/b) sinh(b n) a
    length needs asinh(b length/spacing)/b cells; b -> 0 is the uniform grid."""
    low, high = 1e-9, 10.0
    for _ in range(100):
        b = np.sqrt(low * high)
        needed = (np.arcsinh(b * upstream / spacing) + np.arcsinh(b * length / spacing)) / b
        low, high = (b, high) if needed > cells else (low, b)
    share = np.arcsinh(b * upstream / spacing) / (np.arcsinh(b * upstream / spacing) + np.arcsinh(b * length / spacing))
    return min(max(round(cells * float(share)), 1), cells - 1)
